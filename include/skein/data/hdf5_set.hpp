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

#include "../core/text.hpp"
#include "finite.hpp"
#include "hdf5_array.hpp"
#include "hdf5_writer.hpp"
#include "in_memory.hpp"
#include "set_blocks.hpp"

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

/// Which arrays of a file are read, by their names: "x", or "train/x" in a group. Truth values, as h5py writes them, and other
/// enumerations are the integers that stand for them.
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

  /// Throws FileError where the file is none, or has no such arrays of numbers, or they went through a filter, such as lzf, that
  /// the HDF5 library does not have.
  template <bool Linked = SKEIN_WITH_HDF5 != 0> explicit Hdf5Set(const std::string& path, const Hdf5Options& options = {}) {
    detail::assert_hdf5_linked<Linked>();
    if constexpr (Linked) open(path, options);
  }

  /// Shares the file and the targets. There is no other move: a set that was moved from is as it was.
  Hdf5Set(const Hdf5Set&) = default;
  Hdf5Set& operator=(const Hdf5Set&) = default;

  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return sample_; }
  Target target() const { return target_; }
  void serve(Indices indices, const Destination<float>& to) const {
    if (to.x) read(indices, to);
    const std::size_t labels = static_cast<std::size_t>(target_.each), length = static_cast<std::size_t>(target_.count);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(indices[i]);
      if (to.labels) std::copy_n(beside_->labels.data() + at * labels, labels, to.labels + i * labels);
      if (to.targets)
        std::copy_n(beside_->vectors.data() + at * length, length, to.targets + static_cast<long>(i) * to.target_pitch);
    }
  }

 private:
  /// What belongs to the samples; null where nothing does.
  struct Beside {
    std::vector<std::int32_t> labels;
    std::vector<float> vectors;
  };
  void open(const std::string& path, const Hdf5Options& options);
  void open_targets(const std::string& path, const Hdf5Options& options);
  void read(Indices indices, const Destination<float>& to) const;

  std::shared_ptr<const detail::Hdf5Array> samples_;
  std::int64_t size_ = 0;
  Extents sample_{};
  Target target_{};
  std::shared_ptr<const Beside> beside_;
};

/// How to_hdf5 writes.
struct ToHdf5Options {
  std::string samples = "x";      ///< the name of the array of samples; of "train/x" the group is made
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
namespace detail {
/// All class numbers of an array, read as Integer. Throws FileError for one that does not fit 32 bits.
template <class Integer> std::vector<std::int32_t> labels_in(const Hdf5Array& from, const std::string& path,
                                                             const std::string& in, int each, std::size_t values) {
  std::vector<Integer> all(values);
  from.read(0, from.rows(), all.data());
  std::vector<std::int32_t> labels;
  labels.reserve(values);
  for (const Integer label : all) {
    if (!std::in_range<std::int32_t>(label))
      throw FileError(
          path, -1,
          text("has {}the class number {} of sample {}, which does not fit 32 bits with a sign: write labels as int32", in, label,
               labels.size() / static_cast<std::size_t>(each)));
    labels.push_back(static_cast<std::int32_t>(label));
  }
  return labels;
}
}  // namespace detail

inline void Hdf5Set::open(const std::string& path, const Hdf5Options& options) {
  samples_ = std::make_shared<const detail::Hdf5Array>(path, options.samples, options.limit);
  size_ = samples_->rows();
  for (std::size_t i = 1; i < samples_->extents().size(); ++i)
    sample_.e[sample_.rank++] = static_cast<int>(samples_->extents()[i]);
  if (sample_.rank == 0) sample_ = {1, {1}};
  if (!options.targets.empty()) open_targets(path, options);
}
inline void Hdf5Set::open_targets(const std::string& path, const Hdf5Options& options) {
  const detail::Hdf5Array from(path, options.targets, options.limit);
  const std::string in = text("in {} ", in_quotes(options.targets));
  const auto refuse = [&](const std::string& what) { throw FileError(path, -1, text("has {}{}", in, what)); };
  const std::size_t rank = from.extents().size();
  if (rank > 2) refuse(text("an array of {} extents: targets are (samples) or (samples, n); flatten those of each sample", rank));
  if (from.rows() != size_)
    refuse(text("targets of {} samples, and there are {} in {}", from.rows(), size_, in_quotes(options.samples)));
  const int each = rank == 2 ? static_cast<int>(from.extents()[1]) : 1;
  const std::size_t most = static_cast<std::size_t>(options.limit / 12);  // a file of a few bytes can claim any number
  if (static_cast<std::size_t>(size_) > most / static_cast<std::size_t>(each))
    refuse(text("targets of {} samples, {} each: {} are read at most, unless .limit is larger", size_, each, most));
  const std::size_t values = static_cast<std::size_t>(size_) * static_cast<std::size_t>(each);
  Beside beside;
  if (from.integers()) {
    beside.labels = from.with_sign() ? detail::labels_in<std::int64_t>(from, path, in, each, values)
                                     : detail::labels_in<std::uint64_t>(from, path, in, each, values);
    const std::span<const std::int32_t> labels(beside.labels.data(), beside.labels.size());
    target_ = Target::labels(detail::count_classes_of_file(path, in, labels, each, options.classes), each);
  } else {
    beside.vectors.resize(values);
    from.read(0, size_, beside.vectors.data());
    if (const long at = detail::first_not_finite(std::span<const float>(beside.vectors)); at >= 0)
      refuse(text("a value that is no finite number, at sample {}", at / each));
    target_ = Target::vector(each);
  }
  beside_ = std::make_shared<const Beside>(std::move(beside));
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
/// Throws ArgumentError where both are one array, or one is the group of the other.
inline void check_array_names(const std::string& samples, const std::string& targets) {
  const auto holds = [](const std::string& group, const std::string& name) { return name.starts_with(group + '/'); };
  if (samples == targets || holds(samples, targets) || holds(targets, samples))
    throw ArgumentError(text("to_hdf5: .samples is {} and .targets is {}: give each array a name that is no part of the other's",
                             in_quotes(samples), in_quotes(targets)));
}
/// Samples whose targets are in one chunk: up to a mebibyte of them, since HDF5 refuses chunks of 4 GiB.
inline long target_rows(const std::vector<long>& extents) {
  const long each = extents.size() > 1 ? extents[1] : 1;
  return std::clamp((1L << 20) / (4 * each), 1L, 1024L);
}
inline void write_hdf5(const DatasetView& set, const std::string& path, const ToHdf5Options& options) {
  if (options.chunk < 1 || options.level < 0 || options.level > 9)
    throw ArgumentError("to_hdf5: .chunk is one sample or more, .level is 0 to 9");
  if (options.as == PackedAs::tokens) throw ArgumentError("to_hdf5: tokens are written by to_npy");
  if (set.size() == 0) throw ArgumentError("to_hdf5: the data set has no samples, and an HDF5 file of a set has one at least");
  const bool targets = set.target().kind != TargetKind::none;
  if (targets) check_array_names(options.samples, options.targets);
  SetBlocks blocks("to_hdf5", set, options.as, targets);
  NewHdf5File file(path);
  {
    const hid_t type = options.as == PackedAs::bytes ? H5T_NATIVE_UINT8 : H5T_NATIVE_FLOAT;
    Hdf5Writer x(file.path(), file.id(), options.samples, type, blocks.extents(), options.chunk, options.level);
    std::optional<Hdf5Writer> y;
    if (targets)
      y.emplace(file.path(), file.id(), options.targets, blocks.labels() ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT,
                blocks.target_extents(), target_rows(blocks.target_extents()), 0);
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
