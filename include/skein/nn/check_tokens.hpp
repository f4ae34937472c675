// SPDX-License-Identifier: Apache-2.0
// Are the tokens of a batch those that its network knows? Asked on the host before a step, since a device's kernel cannot say so.
#pragma once
#include <string>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "../device/batch.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Throws ArgumentError for the first sample of a batch that has a token which is no integer from 0 to one below the network's
/// number of them. Nothing where the network takes no tokens, or where the batch is a device's, whose owner knows.
template <class Model, class Batch> void check_tokens(const Batch& batch) {
  if constexpr (Model::sizes.tokens > 0 && on_host<DeviceOf<Batch>>) {
    constexpr long most = Model::sizes.tokens;
    for (long i = 0; i < batch.count; ++i)
      for (long t = 0; t < Model::input::count; ++t) {
        const double token = static_cast<double>(batch.x[i * batch.pitch + t]);
        if (token >= 0 && token < most && token == static_cast<double>(static_cast<long>(token))) continue;
        throw ArgumentError("sample " + std::to_string(i) + " has the token " + std::to_string(token) + " at position " +
                            std::to_string(t) + "; the network has " + std::to_string(most) + " tokens, the integers 0 to " +
                            std::to_string(most - 1));
      }
  }
}

}  // namespace skein::inline SKEIN_ABI::nn
