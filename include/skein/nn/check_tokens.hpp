// SPDX-License-Identifier: Apache-2.0
// Are the tokens of a batch those that its network knows? Asked on the host before a step, since a device's kernel cannot say so.
#pragma once
#include <string>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "../device/batch_view.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Out of line: a step looks at each batch.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_tokens() {
  throw ArgumentError("the batch has tokens and the network calculates with numbers: give it .x");
}
}  // namespace detail

/// Throws ArgumentError for a batch of numbers where the network takes tokens, or the other way round, and for the first token
/// that is not from 0 to one below the network's number of them. Of a batch on a device its owner knows.
template <class Model, class Batch> void check_tokens(const Batch& batch, [[maybe_unused]] const SampleNames& names = {}) {
  constexpr long length = Model::input::count, most = Model::sizes.tokens;
  if constexpr (!is_tokens<typename Model::input>) {
    if (batch.tokens) [[unlikely]]
      detail::refuse_tokens();
  } else {
    if (batch.count > 0 && (!batch.tokens || batch.pitch != length))
      throw ArgumentError(
          text("the network takes {} tokens a sample: give the batch .tokens, 32-bit integers without gaps, and .pitch = {}",
               length, length));
    if constexpr (on_host<DeviceOf<Batch>>)
      for (long i = 0; i < batch.count * length; ++i)
        if (batch.tokens[i] < 0 || batch.tokens[i] >= most)
          throw ArgumentError(text("{} has the token {} at position {}; the network has {} tokens, the integers 0 to {}",
                                   names(i / length), batch.tokens[i], i % length, most, most - 1));
  }
}

}  // namespace skein::inline SKEIN_ABI::nn
