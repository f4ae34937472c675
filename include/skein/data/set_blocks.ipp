// SPDX-License-Identifier: Apache-2.0
// The bodies of set_blocks.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "finite.hpp"
#include "set_blocks.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE SetBlocks::SetBlocks(std::string caller, const DatasetView& set, PackedAs as, bool with_targets)
    : caller_(std::move(caller)), set_(set), as_(as) {
  skein::detail::demand_value(caller_.c_str(), "PackedAs", as, PackedAs::tokens, "floats, bytes or tokens");
  const bool tokens = as == PackedAs::tokens;
  if (tokens ? !set.gives_tokens() : !set.gives_numbers())
    throw ArgumentError(caller_ + (tokens ? ": this set gives no tokens: write PackedAs::bytes or PackedAs::floats"
                                          : ": this set gives tokens: write PackedAs::tokens"));
  if ((set.target().kind != TargetKind::none) != with_targets)
    throw ArgumentError(caller_ + (with_targets ? ": this set has neither labels nor targets: name none"
                                                : ": this set has labels or targets: name a place for them too"));
}

template <class Scalar> void SetBlocks::serve(std::vector<Scalar>& x) {
  const long pitch = set_.sample_extents().count();
  const std::size_t beside = indices_.size() * static_cast<std::size_t>(each());
  x.resize(indices_.size() * static_cast<std::size_t>(pitch));
  Destination<Scalar> to{.x = x.data(), .pitch = pitch};
  if (labels()) labels_.resize(beside), to.labels = labels_.data();
  const bool vectors = set_.target().kind == TargetKind::vector;
  if (vectors) vectors_.resize(beside);
  if constexpr (std::is_same_v<Scalar, float>) {
    if (vectors) to.targets = vectors_.data(), to.target_pitch = each();
    set_.serve(indices_, to);
  } else {  // vectors are numbers, which do not come with tokens
    set_.serve(indices_, to);
    if (vectors) set_.targets(indices_, vectors_.data(), each());
  }
}

SKEIN_INLINE void SetBlocks::check_written() const {
  const auto sample = [&](long at, long each) { return text(" of sample {}", first() + at / each); };
  for (std::size_t i = 0; i < labels_.size(); ++i)
    if (labels_[i] == unwritten_label)
      throw ArgumentError(caller_ + ": the label" + sample(static_cast<long>(i), each()) +
                          " is left out by read() or labels() of the data set: write it");
  if (set_.non_finite() != NonFinite::refuse) return;
  const auto look = [&](const std::vector<float>& values, const char* what, long each) {
    if (const long at = detail::first_not_finite(std::span<const float>(values.data(), values.size())); at >= 0)
      throw ArgumentError(
          text("{}: {}{}{} is {}: correct it, or write it where a data set of your own leaves it out; if such values are "
               "intended, give the data set data::NonFinite non_finite() const, which returns data::NonFinite::keep",
               caller_, what, at % each, sample(at, each),
               detail::not_finite_text(static_cast<double>(values[static_cast<std::size_t>(at)]))));
  };
  look(numbers_, "value ", set_.sample_extents().count());
  look(vectors_, "target value ", each());
}

SKEIN_INLINE bool SetBlocks::next() {
  constexpr std::int64_t most = 64;
  const std::int64_t begin = indices_.empty() ? 0 : indices_.back() + 1;
  indices_.resize(static_cast<std::size_t>(std::min(most, set_.size() - begin)));
  std::iota(indices_.begin(), indices_.end(), begin);
  if (indices_.empty()) return false;
  if (as_ == PackedAs::tokens) return serve(tokens_), check_written(), true;
  serve(numbers_);
  check_written();
  if (as_ == PackedAs::floats) return true;
  bytes_.resize(numbers_.size());
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const float scaled = numbers_[i] * 255, byte = std::round(scaled);
    if (!(byte >= 0 && byte <= 255 && std::abs(scaled - byte) <= 1e-3f))
      throw ArgumentError(text(
          "{}: sample {}{}, which is no byte / 255: pack the set as it is before normalize(), set.normalize(0, 1), or write "
          "PackedAs::floats",
          caller_, begin + static_cast<std::int64_t>(i) / set_.sample_extents().count(), text(" has the value {}", numbers_[i])));
    bytes_[i] = static_cast<std::uint8_t>(byte);
  }
  return true;
}

SKEIN_INLINE std::span<const unsigned char> SetBlocks::samples() const {
  const auto bytes = [](const auto& v) {
    return std::span(reinterpret_cast<const unsigned char*>(v.data()), v.size() * sizeof(v[0]));
  };
  return as_ == PackedAs::bytes ? bytes(bytes_) : as_ == PackedAs::floats ? bytes(numbers_) : bytes(tokens_);
}
SKEIN_INLINE std::span<const unsigned char> SetBlocks::targets() const {
  if (labels()) return {reinterpret_cast<const unsigned char*>(labels_.data()), labels_.size() * sizeof(std::int32_t)};
  return {reinterpret_cast<const unsigned char*>(vectors_.data()), vectors_.size() * sizeof(float)};
}
SKEIN_INLINE std::vector<long> SetBlocks::extents() const {
  std::vector<long> extents{static_cast<long>(set_.size())};
  const Extents sample = set_.sample_extents();
  extents.insert(extents.end(), sample.e, sample.e + sample.rank);
  return extents;
}
SKEIN_INLINE std::vector<long> SetBlocks::target_extents() const {
  std::vector<long> extents{static_cast<long>(set_.size())};
  if (!labels() || each() > 1) extents.push_back(each());
  return extents;
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
