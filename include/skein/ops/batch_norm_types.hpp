// SPDX-License-Identifier: Apache-2.0
// The memory of one call of batch normalisation, on any device.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// `samples` times `pixels` rows of Channels values, rows as long as the face's Columns: what is between are gaps (flat samples
/// are padded rows), written as zeros. Value: of the rows; Parameter: of all that there is one of a channel.
template <class Value, class Parameter = Value> struct BatchNormCall {
  long samples = 0, pixels = 1;
  double epsilon = 0, momentum = 0;  ///< momentum: the weight of the new statistics
  bool training = true;              ///< by the batch's statistics, else by the running ones
  bool has_relu = false;             ///< a ReLU behind it, behind the sum where there is an addend
  const Value* x = nullptr;
  Value* y = nullptr;             ///< backward reads it where it rectifies: on a GPU, and behind a sum
  const Value* addend = nullptr;  ///< of the Cpu: added before the ReLU
  const Value* dy = nullptr;
  Value* dx = nullptr;    ///< null: nobody wants it
  Value* dsum = nullptr;  ///< behind a sum: gets the gradient of the addend, from which that of x is made
  const Parameter* weight = nullptr;
  const Parameter* bias = nullptr;
  Parameter* dweight = nullptr;  ///< added to
  Parameter* dbias = nullptr;
  Parameter* running_mean = nullptr;
  Parameter* running_variance = nullptr;
  Parameter* mean = nullptr;     ///< of the batch, from forward to backward
  Parameter* inverse = nullptr;  ///< 1 / deviation, likewise
  Parameter* scale = nullptr;    ///< of the Cpu, with a ReLU, likewise: y = max(0, (x - mean) scale + shift)
  Parameter* shift = nullptr;
  Parameter* workspace = nullptr;  ///< of the Cpu: cpu::batch_norm_workspace(columns)
  bool fused = false;              ///< dx is made in parts, by what stands in front: it is wanted, though null

  long rows() const { return samples * pixels; }
  bool wants_dx() const { return dx || fused; }
};

}  // namespace skein::inline SKEIN_ABI::ops
