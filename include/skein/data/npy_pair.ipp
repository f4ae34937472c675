// SPDX-License-Identifier: Apache-2.0
// The bodies of npy_pair.hpp.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <span>

#include "../core/text.hpp"
#include "../tensor/npy.hpp"
#include "npy_pair.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

namespace detail {
SKEIN_INLINE Extents sample_of_npy(const std::string& path, const std::vector<long>& extents) {
  if (extents.empty() || extents.size() > 5)
    throw FileError(
        path, 0,
        text("holds an array of {} extents: a data set has that of the samples, and one to four of each sample", extents.size()));
  Extents sample;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i] < 1 || extents[i] > std::numeric_limits<int>::max())
      throw FileError(path, 0, text("has samples of {} values along extent {}", extents[i], i));
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
    throw FileError(
        path, 0,
        text("holds an array of {} extents: labels or targets are (samples), or (samples, n) where a sample has several", rank));
  if (header.extents[0] != samples)
    throw FileError(path, 0, text("has targets of {} samples, and there are {}", header.extents[0], samples));
  const long each = rank == 2 ? header.extents[1] : 1;
  if (each < 1 || each > std::numeric_limits<int>::max()) throw FileError(path, 0, text("has {} targets a sample", each));
  if (header.kind == 'f') {
    to.vectors = numbers_of_npy<Real>(path, rank);
    if (const long at = first_not_finite(std::span<const Real>(to.vectors.data(), to.vectors.size())); at >= 0)
      throw FileError(path, -1, text("has a target value that is no finite number, of sample {}", at / each));
    to.target = Target::vector(static_cast<int>(each));
  } else {
    to.labels = numbers_of_npy<std::int32_t>(path, rank);
    classes = count_classes_of_file(path, "", {to.labels.data(), to.labels.size()}, static_cast<int>(each), classes);
    to.target = Target::labels(classes, static_cast<int>(each));
  }
}
SKEIN_INLINE void read_npy_targets(const std::string& path, std::int64_t samples, int classes, NpyTargets<float>& to) {
  read_npy_targets_as(path, samples, classes, to);
}
SKEIN_INLINE void read_npy_targets(const std::string& path, std::int64_t samples, int classes, NpyTargets<double>& to) {
  read_npy_targets_as(path, samples, classes, to);
}

inline constexpr const char* before_suffix = ".before";
/// commit_pair() moves the old targets away before it puts the new samples in place, and the new targets behind them: beside
/// samples that are still in place there are their own targets, or none: those are waited for.
SKEIN_INLINE bool read_npy_beside(const MappedFile& file, const std::string& samples, int attempt,
                                  const std::function<void()>& read_targets) {
  std::exception_ptr error;
  bool moved_away = false;
  try {
    read_targets();
  } catch (const FileError& e) {
    error = std::current_exception();
    moved_away = e.error() == ENOENT && ::access((e.path() + before_suffix).c_str(), F_OK) == 0;
  }
  if (moved_away && attempt < pair_attempts) return ::usleep(10000), false;
  if (file.is_at(samples)) {
    if (error) std::rethrow_exception(error);
    return true;
  }
  if (attempt < pair_attempts) return false;
  throw FileError(samples, -1,
                  text("was replaced by another file each of {} times that its targets were read: open the pair when the program "
                       "that writes it has ended",
                       attempt));
}

/// The header of a .npy file whose values follow piece by piece.
SKEIN_INLINE void begin_npy(AtomicFile& file, char kind, int width, const std::vector<long>& extents) {
  const std::string header = skein::detail::npy_header_text(kind, width, extents.data(), static_cast<int>(extents.size()));
  file.append(header.data(), header.size());
}

/// The old pair, or the new one. Who is ended between the names leaves samples without targets, never beside those of others; the
/// old targets are then in PATH.before.
SKEIN_INLINE void commit_pair(AtomicFile& samples, AtomicFile& targets) {
  const std::string& path = targets.path();
  const std::string before = path + before_suffix;
  if (samples.path() == before)
    throw ArgumentError(text(
        "to_npy: the targets that are in {} go to {} until the new pair is whole: give the samples another name", path, before));
  samples.sync(), targets.sync();
  const bool replaces = ::rename(path.c_str(), before.c_str()) == 0;
  if (!replaces && errno != ENOENT) throw FileError(path, -1, "cannot be renamed to make room", errno);
  try {
    if (replaces) skein::detail::sync_folder(skein::detail::parent_of(path));
    samples.commit();
  } catch (...) {
    if (replaces && !samples.committed()) (void)::rename(before.c_str(), path.c_str());
    throw;
  }
  targets.commit();
  ::unlink(before.c_str());  // also one of a call that was ended
}
}  // namespace detail

SKEIN_INLINE void to_npy(const DatasetView& set, const std::string& samples, const std::string& targets, PackedAs as) {
  if (samples == targets)
    throw ArgumentError("to_npy: samples and targets have one path, " + samples + ": give each a file of its own");
  SetBlocks blocks("to_npy", set, as, !targets.empty());
  const char kind = as == PackedAs::tokens ? 'i' : as == PackedAs::bytes ? 'u' : 'f';
  AtomicFile x(samples);
  detail::begin_npy(x, kind, as == PackedAs::bytes ? 1 : 4, blocks.extents());
  std::optional<AtomicFile> y;
  if (!targets.empty()) detail::begin_npy(y.emplace(targets), blocks.labels() ? 'i' : 'f', 4, blocks.target_extents());
  while (blocks.next()) {
    x.append(blocks.samples().data(), blocks.samples().size());
    if (y) y->append(blocks.targets().data(), blocks.targets().size());
  }
  if (y) detail::commit_pair(x, *y);
  else x.commit();
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
