// SPDX-License-Identifier: Apache-2.0
// A bucket of gradients as a compressor sees it: the logical values of its range (no gaps, not the sums of the batch behind the
// last parameter), as one run of values or as the matrices that the parameters are, each with a compressor of its own, since
// compressors remember. Pure: exchanges nothing.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "../../comm/compress/compressor.hpp"
#include "../../plan/logical.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

template <class C, class Scalar> class CompressedBucket {
 public:
  using Element = typename C::Element;
  static constexpr int rounds = C::rounds;
  static constexpr bool by_matrix = comm::TakesMatrices<C>, keeps_residual = comm::KeepsResidual<C>,
                        remembers = comm::Remembers<C>;
  static_assert(!by_matrix || std::same_as<Element, float>,
                "a compressor of matrices writes floats: beside it vectors travel as they are");

  /// `range` ends at the last parameter. Without entries every stored scalar counts.
  CompressedBucket(std::span<const plan::Entry> entries, plan::Range range) {
    if (entries.empty()) runs_ = {range};
    else runs_ = plan::logical_runs(entries, range);
    values_.resize(static_cast<std::size_t>(plan::count_of(runs_)));
    if constexpr (by_matrix) {
      for (const plan::Entry& e : entries) {
        if (e.offset < range.begin || e.offset + e.stored > range.end) continue;
        const auto n = static_cast<std::size_t>(e.extents.count());
        const std::size_t rows = e.extents.rank > 1 ? n / static_cast<std::size_t>(e.extents.last()) : 1;
        add_unit(C::for_matrix(static_cast<std::uint64_t>(e.offset), rows), n);
      }
      if (entries.empty()) add_unit(C::for_matrix(static_cast<std::uint64_t>(range.begin), 0), values_.size());
    } else {
      add_unit(C(), values_.size());
    }
    for (int round = 0; round < rounds; ++round) wire_.resize(std::max(wire_.size(), elements(round)));
  }

  /// Elements that travel in a round.
  std::size_t elements(int round) const {
    std::size_t n = 0;
    for (const Unit& u : units_) n += u.elements(round);
    return n;
  }
  /// What the last encoding wrote, and then the ranks' sum of it.
  std::span<const Element> wire() const { return std::span<const Element>(wire_).first(written_); }

  /// The gradients' logical values, encoded for round 0.
  std::span<Element> encode(const Scalar* gradients) {
    std::size_t at = 0;
    for (const plan::Range& r : runs_) {
      std::copy(gradients + r.begin, gradients + r.end, values_.begin() + static_cast<std::ptrdiff_t>(at));
      at += static_cast<std::size_t>(r.end - r.begin);
    }
    return encode_round(0);
  }
  /// Takes what the ranks have made of the wire of the round before; returns that of this one, which is not the first.
  std::span<Element> next_round(int round) {
    std::size_t at = 0;
    for (Unit& u : units_) {
      const auto came = std::span<Element>(wire_).subspan(at, u.elements(round - 1));
      if (u.raw && round == 1) std::copy(came.begin(), came.end(), values_.begin() + static_cast<std::ptrdiff_t>(u.begin));
      if constexpr (rounds > 1)
        if (!u.raw) u.compressor.take(std::span<const Element>(came), round - 1);
      at += came.size();
    }
    return encode_round(round);
  }
  /// A wire of the last round becomes gradients: of the sum over the ranks (takes), or of one rank.
  void decode(std::span<const Element> wire, Scalar* gradients, bool takes, bool adds) {
    std::size_t at = 0;
    for (Unit& u : units_) {
      const auto part = wire.subspan(at, u.elements(rounds - 1));
      const auto to = std::span<float>(values_).subspan(u.begin, u.count);
      at += part.size();
      if (u.raw) {
        if constexpr (by_matrix && rounds == 1) std::copy(part.begin(), part.end(), to.begin());
        continue;  // of several rounds it is there since the first
      }
      if constexpr (rounds > 1)
        if (takes) u.compressor.take(part, rounds - 1);
      u.compressor.decode(part, to);
    }
    at = 0;
    for (const plan::Range& r : runs_) {
      const float* from = values_.data() + at;
      at += static_cast<std::size_t>(r.end - r.begin);
      if (!adds) std::copy(from, from + (r.end - r.begin), gradients + r.begin);
      else
        for (long i = r.begin; i < r.end; ++i) gradients[i] += static_cast<Scalar>(*from++);
    }
  }

  std::size_t values() const { return values_.size(); }
  /// What compressors have left out, per value; zeros before the first step.
  void append_residual(std::vector<float>& to) const {
    for (const Unit& u : units_) {
      const std::size_t before = to.size();
      to.resize(before + u.count, 0.0f);
      if constexpr (keeps_residual)
        if (const auto kept = u.compressor.residual(); kept.size() == u.count)
          std::copy(kept.begin(), kept.end(), to.begin() + static_cast<std::ptrdiff_t>(before));
    }
  }
  void set_residual(std::span<const float> from) requires keeps_residual {
    for (Unit& u : units_)
      if (!u.raw) u.compressor.set_residual(from.subspan(u.begin, u.count));
  }
  /// What they have learnt (PowerSgd's Q), the same on all ranks.
  void append_memory(std::vector<float>& to) const requires remembers {
    for (const Unit& u : units_) {
      const auto kept = u.compressor.memory();
      const std::size_t before = to.size(), n = u.raw ? 0 : u.elements(rounds - 1);
      to.resize(before + n, 0.0f);
      if (kept.size() == n) std::copy(kept.begin(), kept.end(), to.begin() + static_cast<std::ptrdiff_t>(before));
    }
  }
  std::size_t memory_size() const {
    std::size_t n = 0;
    for (const Unit& u : units_) n += u.raw ? 0 : u.elements(rounds - 1);
    return n;
  }
  std::size_t set_memory(std::span<const float> from) requires remembers {
    std::size_t at = 0;
    for (Unit& u : units_) {
      if (u.raw) continue;
      u.compressor.remember(from.subspan(at, u.elements(rounds - 1)), u.count);
      at += u.elements(rounds - 1);
    }
    return at;
  }

 private:
  struct Unit {
    C compressor;
    std::size_t begin, count;
    bool raw;
    std::size_t elements(int round) const { return raw ? (round == 0 ? count : 0) : compressor.elements(count, round); }
  };
  void add_unit(C compressor, std::size_t n) {
    const std::size_t begin = units_.empty() ? 0 : units_.back().begin + units_.back().count;
    const bool raw = by_matrix && comm::wire_bytes(compressor, n) >= n * sizeof(float);
    units_.push_back({std::move(compressor), begin, n, raw});
  }
  std::span<Element> encode_round(int round) {
    std::size_t at = 0;
    for (Unit& u : units_) {
      const auto from = std::span<const float>(values_).subspan(u.begin, u.count);
      const auto to = std::span<Element>(wire_).subspan(at, u.elements(round));
      at += to.size();
      if (!u.raw) u.compressor.encode(from, to, round);
      else if constexpr (by_matrix)
        if (round == 0) std::copy(from.begin(), from.end(), to.begin());
    }
    written_ = at;
    return std::span<Element>(wire_).first(at);
  }

  std::vector<plan::Range> runs_;
  std::vector<Unit> units_;
  std::vector<float> values_;
  std::vector<Element> wire_;
  std::size_t written_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
