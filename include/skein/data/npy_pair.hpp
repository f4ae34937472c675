// SPDX-License-Identifier: Apache-2.0
// Data sets packed in files that every tool of the field reads: a .npy file of the samples, mapped into memory and never read as
// a whole, and one of what belongs to them. Many small files (images, see image_folder.hpp) are packed once, and then cost a
// copy.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "in_memory.hpp"
#include "map_npy.hpp"
#include "set_blocks.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
/// What a file of labels or target vectors holds.
template <class Real> struct NpyTargets {
  std::vector<std::int32_t> labels;
  std::vector<Real> vectors;
  Target target{};
};
/// Reads the targets of so many samples; integers are class numbers. Throws FileError where the file has another number.
void read_npy_targets(const std::string& path, std::int64_t samples, int classes, NpyTargets<float>& to);
void read_npy_targets(const std::string& path, std::int64_t samples, int classes, NpyTargets<double>& to);
/// How often a pair is opened anew that to_npy writes over meanwhile.
inline constexpr int pair_attempts = 100;
/// The targets that are beside the samples in a mapped file. False where another file has taken the place of that one before they
/// were read: they may be those of other samples, and both are to be opened anew. The last attempt throws FileError then.
bool read_npy_beside(const MappedFile& file, const std::string& samples, int attempt, const std::function<void()>& read_targets);
/// The extents of a sample of an array: all but the first. Throws FileError where a data set cannot have them.
Extents sample_of_npy(const std::string& path, const std::vector<long>& extents);
}  // namespace detail

/// The samples of a .npy file (samples, ...), mapped: pages come as a batch needs them, so the file may be larger than the
/// memory. Stored is the file's type: std::uint8_t (served as byte / 255, images as height, width, channels), float, double, or
/// std::int32_t for tokens. `targets` names the file of what belongs to them: integers (samples) or (samples, T) are class
/// numbers, other numbers (samples) or (samples, n) target vectors. classes 0: the largest label plus one. Where to_npy writes
/// the pair anew meanwhile, both are of the old pair or both of the new one. Throws FileError.
template <class Stored = std::uint8_t>
InMemory<Stored> from_npy(const std::string& samples, const std::string& targets = "", int classes = 0) {
  for (int attempt = 1;; ++attempt) {
    MappedNpy<Stored> mapped = map_npy<Stored>(samples);
    const Extents sample = detail::sample_of_npy(samples, mapped.extents);
    detail::NpyTargets<typename InMemory<Stored>::Real> beside;
    const auto read_targets = [&] { detail::read_npy_targets(targets, mapped.extents[0], classes, beside); };
    if (!targets.empty() && !detail::read_npy_beside(mapped.file, samples, attempt, read_targets)) continue;
    return InMemory<Stored>(sample, mapped.values, std::move(mapped.file.bytes), std::move(beside.labels),
                            std::move(beside.vectors), beside.target);
  }
}

/// Writes all samples of a set, in its order, to a .npy file (samples, ...), and what belongs to them to another: class numbers
/// as int32, target vectors as float32. Takes the memory of a few samples. A pair that is there stays until the new one is whole,
/// and for those who have mapped it; who is ended while the names change leaves the old targets as PATH.before. Throws FileError
/// where a file cannot be written, ArgumentError where the set does not give what is asked for: bytes of a value that is no byte
/// / 255 (of a set that is normalised), a file of targets for a set without, or none for one with; and where it leaves out a
/// label or a value, or has one that is infinite or not a number and is not to be kept.
void to_npy(const DatasetView& set, const std::string& samples, const std::string& targets = "", PackedAs as = PackedAs::bytes);

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "npy_pair.ipp"
#endif
