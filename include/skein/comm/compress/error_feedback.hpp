// SPDX-License-Identifier: Apache-2.0
// Error feedback: what a compressor has left out is added to the next values. So the sum of all that was decoded, plus what is
// kept, equals the sum of all inputs. Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019.
#pragma once
#include <utility>
#include <vector>

#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// A compressor around another: the same wire, with a residual of n floats. One object for one range of values. What ranks add on
/// a 16-bit wire is rounded once more, which no rank sees and no residual keeps. A NaN or infinity is sent once: no residual
/// keeps it, and what the residual had there is lost.
template <class C> class ErrorFeedback {
 public:
  static constexpr std::string_view name = C::name;
  static constexpr bool linear = C::linear;
  static constexpr int rounds = C::rounds;
  static constexpr bool keeps_residual = true, remembers = Remembers<C>, by_matrix = TakesMatrices<C>;
  using Element = typename C::Element;

  constexpr explicit ErrorFeedback(C compressor = C()) : compressor_(std::move(compressor)) { assert_compressor<C>(); }

  constexpr std::size_t elements(std::size_t n, int round) const { return compressor_.elements(n, round); }
  void encode(std::span<const float> values, std::span<Element> wire, int round) {
    if (round == 0) {
      residual_.resize(values.size(), 0.0f);
      decoded_.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) residual_[i] += values[i];
    }
    compressor_.encode(std::span<const float>(residual_), wire, round);
    if (round + 1 < rounds) return;
    compressor_.decode(std::span<const Element>(wire), std::span<float>(decoded_));  // what this rank alone has said
    for (std::size_t i = 0; i < residual_.size(); ++i) {
      const float left = residual_[i] - decoded_[i];
      residual_[i] = left - left == 0 ? left : 0;  // NaN - NaN and infinity - infinity are NaN
    }
  }
  void take(std::span<const Element> wire, int round) requires(rounds > 1) { compressor_.take(wire, round); }
  void decode(std::span<const Element> wire, std::span<float> values) { compressor_.decode(wire, values); }

  /// What has not been said yet.
  std::span<const float> residual() const { return residual_; }
  /// Goes on with what was saved.
  void set_residual(std::span<const float> residual) {
    residual_.assign(residual.begin(), residual.end());
    decoded_.resize(residual_.size());
  }
  void reset() { residual_.assign(residual_.size(), 0.0f); }
  C& compressor() { return compressor_; }

  static ErrorFeedback for_matrix(std::uint64_t seed, std::size_t rows) requires by_matrix {
    return ErrorFeedback(C::for_matrix(seed, rows));
  }
  std::span<const float> memory() const requires remembers { return compressor_.memory(); }
  void remember(std::span<const float> kept, std::size_t n) requires remembers { compressor_.remember(kept, n); }

 private:
  C compressor_;
  std::vector<float> residual_, decoded_;
};

}  // namespace skein::inline SKEIN_ABI::comm
