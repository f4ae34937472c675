// SPDX-License-Identifier: Apache-2.0
// Compress<Compressor>: an option of DataParallel: in what form gradients travel.
// DataParallel{world, Compress<comm::HalfCodec<bf16>>{}} sends half the bytes; what is not linear (Int8Codec, TopK) is gathered
// instead of added. Xu et al., "Compressed communication for distributed deep learning", 2020, has the survey.
#pragma once
#include "../exchange/encoded_exchange.hpp"
#include "data_parallel.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The compressor encodes gradients before they are sent. Each bucket (PowerSgd: each matrix) has its own compressor, which gets
/// the values without padding. comm::ErrorFeedback<C> keeps the errors; TopK and PowerSgd need it to converge. Its residuals are
/// saved with the training. Under a loss scale (models of 16 bits) residuals have the scale of their step, and a step that is
/// skipped for an overflow loses what it sent. planned() of the policy state has the bytes of a step. All ranks get the same
/// bits.
template <class Compressor> struct Compress : OptionBase {
  static constexpr OptionKind kind = OptionKind::compress;
  static_assert((comm::assert_compressor<Compressor>(), true));
  template <class E> using Exchange = EncodedExchange<Compressor, typename E::algorithm>;
};

}  // namespace skein::inline SKEIN_ABI::parallel
