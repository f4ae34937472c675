// SPDX-License-Identifier: Apache-2.0
// Compress<Compressor>: an option of DataParallel: in what form gradients travel.
// DataParallel{world, Compress<comm::HalfCodec<bf16>>{}} sends half the bytes; what is not linear (Int8Codec, TopK) is gathered
// instead of added. Xu et al., "Compressed communication for distributed deep learning", 2020, has the survey.
#pragma once
#include <concepts>
#include <type_traits>

#include "../exchange/encoded_exchange.hpp"
#include "data_parallel.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
/// Compress can make one for each bucket, by its default constructor, or for each matrix, by for_matrix().
template <class C> inline constexpr bool is_made_for_buckets = comm::TakesMatrices<C> || std::default_initializable<C>;
template <class C> consteval bool assert_made_for_buckets() {
  static_assert(
      is_made_for_buckets<C>,
      "Compress makes a compressor for each bucket: it needs a default constructor (numbers as template arguments, as in "
      "TopK<100>), or by_matrix with for_matrix(seed, rows)");
  return true;
}
}  // namespace detail

/// The compressor encodes gradients before they are sent. Each bucket (PowerSgd: each matrix) has its own compressor, which gets
/// the values without padding. comm::ErrorFeedback<C> keeps the errors; TopK and PowerSgd need it to converge. Its residuals are
/// saved with the training. Under a loss scale (models of 16 bits) residuals have the scale of their step, and a step that is
/// skipped for an overflow loses what it sent. planned() of the policy state has the bytes of a step. All ranks get the same
/// bits.
template <class Compressor> struct Compress : OptionBase {
  static constexpr OptionKind kind = OptionKind::compress;
  static_assert((comm::assert_compressor<Compressor>(), true));
  static_assert(detail::assert_made_for_buckets<Compressor>());
  template <class E> using Exchange =
      std::conditional_t<detail::is_made_for_buckets<Compressor>, EncodedExchange<Compressor, typename E::algorithm>, E>;
};

}  // namespace skein::inline SKEIN_ABI::parallel
