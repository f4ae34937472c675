// SPDX-License-Identifier: Apache-2.0
// The bodies of npy_pair.hpp.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "../tensor/npy.hpp"
#include "npy_pair.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

namespace detail {
SKEIN_INLINE Extents sample_of_npy(const std::string& path, const std::vector<long>& extents) {
  if (extents.empty() || extents.size() > 5)
    throw FileError(path, 0,
                    "holds an array of " + std::to_string(extents.size()) +
                        " extents: a data set has that of the samples, and one to four of each sample");
  Extents sample;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i] < 1 || extents[i] > std::numeric_limits<int>::max())
      throw FileError(path, 0, "has samples of " + std::to_string(extents[i]) + " values along extent " + std::to_string(i));
    sample.e[sample.rank++] = static_cast<int>(extents[i]);
  }
  return sample.rank == 0 ? Extents{1, {1}} : sample;
}

template <class Number> std::vector<Number> numbers_of_npy(const std::string& path, std::size_t rank) {
  const auto flat = [](const auto& t) { return std::vector<Number>(t.data(), t.data() + t.size()); };
  return rank == 1 ? flat(load_npy<Number, 1>(path, NpyTypes::convert)) : flat(load_npy<Number, 2>(path, NpyTypes::convert));
}

template <class Real> void read_npy_targets_as(const std::string& path, std::int64_t samples, int classes, NpyTargets<Real>& to) {
  const MappedFile file = map_file(path);
  const NpyHeader header =
      skein::detail::parse_npy_header({file.bytes.get(), file.size}, static_cast<long long>(file.size), path, 0);
  const std::size_t rank = header.extents.size();
  if (rank != 1 && rank != 2)
    throw FileError(path, 0,
                    "holds an array of " + std::to_string(rank) +
                        " extents: labels or targets are (samples), or (samples, n) where a sample has several");
  if (header.extents[0] != samples)
    throw FileError(path, 0,
                    "has targets of " + std::to_string(header.extents[0]) + " samples, and there are " + std::to_string(samples));
  const long each = rank == 2 ? header.extents[1] : 1;
  if (each < 1 || each > std::numeric_limits<int>::max())
    throw FileError(path, 0, "has " + std::to_string(each) + " targets a sample");
  if (header.kind == 'f') {
    to.vectors = numbers_of_npy<Real>(path, rank);
    to.target = Target::vector(static_cast<int>(each));
  } else {
    to.labels = numbers_of_npy<std::int32_t>(path, rank);
    to.target = Target::labels(classes, static_cast<int>(each));
  }
}
SKEIN_INLINE void read_npy_targets(const std::string& path, std::int64_t samples, int classes, NpyTargets<float>& to) {
  read_npy_targets_as(path, samples, classes, to);
}
SKEIN_INLINE void read_npy_targets(const std::string& path, std::int64_t samples, int classes, NpyTargets<double>& to) {
  read_npy_targets_as(path, samples, classes, to);
}

/// A .npy file that is written piece by piece.
class NpyWriter {
 public:
  NpyWriter(const std::string& path, char kind, int width, const std::vector<long>& extents)
      : path_(path), file_(skein::detail::open_file(path, "wb")) {
    const std::string header = skein::detail::npy_header_text(kind, width, extents.data(), static_cast<int>(extents.size()));
    write(std::span<const char>(header));
  }
  template <class Value> void write(std::span<const Value> values) {
    if (std::fwrite(values.data(), sizeof(Value), values.size(), file_.get()) != values.size()) fail();
  }
  void end() {
    if (std::fflush(file_.get()) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw FileError(path_, -1, std::string("cannot be written: ") + std::strerror(errno)); }
  std::string path_;
  skein::detail::File file_;
};

/// A value as the byte that is served as it.
inline std::uint8_t byte_of(float value, std::int64_t sample) {
  const float scaled = value * 255, byte = std::round(scaled);
  if (!(byte >= 0 && byte <= 255 && std::abs(scaled - byte) <= 1e-3f))
    throw ArgumentError(
        "to_npy: sample " + std::to_string(sample) + " has the value " + std::to_string(value) +
        ", which is no byte / 255: pack the set as it is before normalize(), set.normalize(0, 1), or write NpyStored::floats");
  return static_cast<std::uint8_t>(byte);
}

/// A set on its way into two files, a block of samples at a time.
class NpyPacker {
 public:
  NpyPacker(const DatasetView& set, const std::string& samples, const std::string& targets, NpyStored stored)
      : set_(set), stored_(stored), x_(samples, kind(), stored == NpyStored::bytes ? 1 : 4, shape()) {
    const Target target = set.target();
    const bool labels = target.kind == TargetKind::label;
    each_ = labels ? target.each : target.count;
    if (targets.empty()) return;
    std::vector<long> extents{static_cast<long>(set.size())};
    if (!labels || each_ > 1) extents.push_back(each_);
    y_.emplace(targets, labels ? 'i' : 'f', 4, extents);
  }
  void write_all() {
    constexpr std::int64_t block = 64;
    std::vector<std::int64_t> indices;
    for (std::int64_t first = 0; first < set_.size(); first += block) {
      indices.resize(static_cast<std::size_t>(std::min(block, set_.size() - first)));
      std::iota(indices.begin(), indices.end(), first);
      if (stored_ == NpyStored::tokens) write_block(indices, integers_);
      else write_block(indices, numbers_);
    }
    x_.end();
    if (y_) y_->end();
  }

 private:
  char kind() const { return stored_ == NpyStored::tokens ? 'i' : stored_ == NpyStored::bytes ? 'u' : 'f'; }
  std::vector<long> shape() const {
    std::vector<long> extents{static_cast<long>(set_.size())};
    const Extents sample = set_.sample_extents();
    extents.insert(extents.end(), sample.e, sample.e + sample.rank);
    return extents;
  }
  template <class Scalar> void write_block(Indices indices, std::vector<Scalar>& x) {
    const long count = set_.sample_extents().count();
    const std::size_t beside = indices.size() * static_cast<std::size_t>(each_);
    x.resize(indices.size() * static_cast<std::size_t>(count));
    Destination<Scalar> to{.x = x.data(), .pitch = count};
    std::vector<Scalar> vectors;
    if (set_.target().kind == TargetKind::label) labels_.resize(beside), to.labels = labels_.data();
    if (set_.target().kind == TargetKind::vector) vectors.resize(beside), to.targets = vectors.data(), to.target_pitch = each_;
    set_.serve(indices, to);
    if (stored_ == NpyStored::bytes) write_bytes(x, indices[0], count);
    else x_.write(std::span<const Scalar>(x));
    if (to.labels) y_->write(std::span<const std::int32_t>(labels_));
    else if (y_) y_->write(std::span<const Scalar>(vectors));
  }
  template <class Scalar> void write_bytes(const std::vector<Scalar>& x, std::int64_t first, long count) {
    bytes_.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      bytes_[i] = byte_of(static_cast<float>(x[i]), first + static_cast<std::int64_t>(i) / count);
    x_.write(std::span<const std::uint8_t>(bytes_));
  }

  const DatasetView& set_;
  NpyStored stored_;
  long each_ = 0;
  NpyWriter x_;
  std::optional<NpyWriter> y_;
  std::vector<float> numbers_;
  std::vector<std::int32_t> integers_, labels_;
  std::vector<std::uint8_t> bytes_;
};
}  // namespace detail

SKEIN_INLINE void to_npy(const DatasetView& set, const std::string& samples, const std::string& targets, NpyStored stored) {
  const bool tokens = stored == NpyStored::tokens;
  if (tokens ? !set.gives_tokens() : !set.gives_numbers())
    throw ArgumentError(tokens ? "to_npy: this set gives no tokens: write NpyStored::bytes or NpyStored::floats"
                               : "to_npy: this set gives tokens: write NpyStored::tokens");
  if ((set.target().kind == TargetKind::none) != targets.empty())
    throw ArgumentError(targets.empty() ? "to_npy: this set has labels or targets: name a file for them too"
                                        : "to_npy: this set has neither labels nor targets for " + targets);
  detail::NpyPacker(set, samples, targets, stored).write_all();
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
