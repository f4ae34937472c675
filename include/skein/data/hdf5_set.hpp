// SPDX-License-Identifier: Apache-2.0
// Data sets in HDF5 files, in compressed chunks: read by rows when a batch needs them, and written of any set. Needs the target
// skein::hdf5. Where the space of a disk does not matter, from_npy (npy_pair.hpp) is faster. The library believes its files: one
// that a stranger made makes it read beyond its memory (fuzzing HDF5 1.10.8 finds that in seconds). Sizes are looked at here
// first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "finite.hpp"
#include "hdf5_file.hpp"
#include "in_memory.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
class Hdf5Array;
template <bool Linked> consteval void assert_hdf5_linked() {
  static_assert(
      Linked,
      "data sets in HDF5 files need HDF5, and this program is built without it: link skein::hdf5 (apt install libhdf5-dev, "
      "and configure again)");
}
}  // namespace detail

/// Which arrays of a file are read.
struct Hdf5Options {
  std::string samples = "x";  ///< (samples, ...): bytes, served as byte / 255, or other numbers, served as floats
  std::string targets = "y";  ///< integers (samples) or (samples, T) are class numbers, other numbers target vectors; empty: none
  int classes = 0;            ///< 0: the largest label plus one
  std::uint64_t limit =
      std::uint64_t{1} << 30;  ///< bytes of the targets as they are read, of a sample, and of a compressed chunk
};

/// The samples of an HDF5 file. Rows are read when a batch needs them, one after the other; targets are read at once.
class Hdf5Set {
 public:
  static constexpr bool prefers_ascending = true;  // neighbours may lie in one chunk
  static constexpr bool prefers_threads = false;   // the library takes one call at a time

  /// Throws FileError where the file is none, or has no such arrays of numbers.
  template <bool Linked = SKEIN_WITH_HDF5 != 0> explicit Hdf5Set(const std::string& path, const Hdf5Options& options = {}) {
    detail::assert_hdf5_linked<Linked>();
    if constexpr (Linked) open(path, options);
  }

  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return sample_; }
  Target target() const { return target_; }
  void serve(Indices indices, const Destination<float>& to) const {
    if (to.x) read(indices, to);
    const std::size_t labels = static_cast<std::size_t>(target_.each), length = static_cast<std::size_t>(target_.count);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(indices[i]);
      if (to.labels) std::copy_n(labels_.data() + at * labels, labels, to.labels + i * labels);
      if (to.targets) std::copy_n(vectors_.data() + at * length, length, to.targets + static_cast<long>(i) * to.target_pitch);
    }
  }

 private:
  void open(const std::string& path, const Hdf5Options& options);
  void open_targets(const std::string& path, const Hdf5Options& options);
  void read(Indices indices, const Destination<float>& to) const;

  std::shared_ptr<const detail::Hdf5Array> samples_;
  std::int64_t size_ = 0;
  Extents sample_{};
  Target target_{};
  std::vector<std::int32_t> labels_;
  std::vector<float> vectors_;
};

/// How to_hdf5 writes.
struct ToHdf5Options {
  std::string samples = "x";      ///< the name of the array of samples
  std::string targets = "y";      ///< that of their targets; of a set without, nothing is written
  PackedAs as = PackedAs::bytes;  ///< bytes or floats
  long chunk = 1;                 ///< samples that are compressed together: one, since a batch takes them in random order
  int level = 4;                  ///< deflate's, 0 (not compressed) to 9
};

namespace detail {
void write_hdf5(const DatasetView& set, const std::string& path, const ToHdf5Options& options);
}
/// Writes all samples of a set, in its order, and their targets; until all are written there is the old file, or none. Throws
/// FileError where the file cannot be written, ArgumentError where the set does not give what is asked for, as to_npy does.
template <bool Linked = SKEIN_WITH_HDF5 != 0>
void to_hdf5(const DatasetView& set, const std::string& path, const ToHdf5Options& options = {}) {
  detail::assert_hdf5_linked<Linked>();
  if constexpr (Linked) detail::write_hdf5(set, path, options);
}

#if SKEIN_WITH_HDF5
inline void Hdf5Set::open(const std::string& path, const Hdf5Options& options) {
  samples_ = std::make_shared<const detail::Hdf5Array>(path, options.samples, options.limit);
  size_ = samples_->rows();
  for (std::size_t i = 1; i < samples_->extents().size(); ++i)
    sample_.e[sample_.rank++] = static_cast<int>(samples_->extents()[i]);
  if (sample_.rank == 0) sample_ = {1, {1}};
  if (!options.targets.empty()) open_targets(path, options);
}
inline void Hdf5Set::open_targets(const std::string& path, const Hdf5Options& options) {
  const detail::Hdf5Array targets(path, options.targets, options.limit);
  if (targets.rows() != size_ || targets.extents().size() > 2)
    throw FileError(path, -1,
                    "has in '" + options.targets + "' targets of " + std::to_string(targets.rows()) + " samples, and there are " +
                        std::to_string(size_) + ": (samples) or (samples, n)");
  const int each = targets.extents().size() == 2 ? static_cast<int>(targets.extents()[1]) : 1;
  const std::size_t values = static_cast<std::size_t>(size_) * static_cast<std::size_t>(each);
  const std::size_t most = static_cast<std::size_t>(options.limit / 12);  // a file of a few bytes can claim any number
  if (values > most)
    throw FileError(path, -1,
                    "has in '" + options.targets + "' " + std::to_string(values) + " targets: " + std::to_string(most) +
                        " are read at most, unless .limit is larger");
  if (targets.integers()) {
    std::vector<std::int64_t> labels(values);
    targets.read(0, size_, labels.data());
    labels_.reserve(values);
    for (const std::int64_t label : labels) {
      if (!std::in_range<std::int32_t>(label))
        throw FileError(path, -1, "has in '" + options.targets + "' the class number " + std::to_string(label));
      labels_.push_back(static_cast<std::int32_t>(label));
    }
    target_ = Target::labels(detail::count_classes({labels_.data(), labels_.size()}, options.classes), each);
  } else {
    vectors_.resize(values);
    targets.read(0, size_, vectors_.data());
    if (const long at = detail::first_not_finite(std::span<const float>(vectors_)); at >= 0)
      throw FileError(
          path, -1, "has in '" + options.targets + "' a value that is no finite number, at sample " + std::to_string(at / each));
    target_ = Target::vector(each);
  }
}
/// Neighbours that are asked for one after the other are read at once.
inline void Hdf5Set::read(Indices indices, const Destination<float>& to) const {
  const long count = sample_.count();
  std::vector<std::uint8_t> bytes;
  std::vector<float> numbers;
  for (std::size_t i = 0, end = 0; i < indices.size(); i = end) {
    for (end = i + 1; end < indices.size() && indices[end] == indices[end - 1] + 1;) ++end;
    const std::size_t n = (end - i) * static_cast<std::size_t>(count);
    const auto copy = [&](const auto& from, float unit) {
      for (std::size_t k = 0; k < n; ++k)
        to.x[static_cast<long>(i + k / static_cast<std::size_t>(count)) * to.pitch + static_cast<long>(k) % count] =
            static_cast<float>(from[k]) * unit;
    };
    const auto rows = static_cast<std::int64_t>(end - i);
    if (samples_->bytes()) bytes.resize(n), samples_->read(indices[i], rows, bytes.data()), copy(bytes, 1.0f / 255);
    else numbers.resize(n), samples_->read(indices[i], rows, numbers.data()), copy(numbers, 1);
  }
}

namespace detail {
inline void write_hdf5(const DatasetView& set, const std::string& path, const ToHdf5Options& options) {
  if (options.chunk < 1 || options.level < 0 || options.level > 9)
    throw ArgumentError("to_hdf5: .chunk is one sample or more, .level is 0 to 9");
  if (options.as == PackedAs::tokens) throw ArgumentError("to_hdf5: tokens are written by to_npy");
  if (set.size() == 0) throw ArgumentError("to_hdf5: the data set has no samples, and an HDF5 file of a set has one at least");
  const bool targets = set.target().kind != TargetKind::none;
  SetBlocks blocks("to_hdf5", set, options.as, targets);
  NewHdf5File file(path);
  {
    const hid_t type = options.as == PackedAs::bytes ? H5T_NATIVE_UINT8 : H5T_NATIVE_FLOAT;
    Hdf5Writer x(file.path(), file.id(), options.samples, type, blocks.extents(), options.chunk, options.level);
    std::optional<Hdf5Writer> y;
    if (targets)
      y.emplace(file.path(), file.id(), options.targets, blocks.labels() ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT,
                blocks.target_extents(), 1024, 0);
    while (blocks.next()) {
      x.write(blocks.first(), blocks.count(), blocks.samples().data());
      if (y) y->write(blocks.first(), blocks.count(), blocks.targets().data());
    }
    x.close();
    if (y) y->close();
  }
  file.commit();
}
}  // namespace detail
#endif

}  // namespace skein::inline SKEIN_ABI::data
