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
  bool has_relu = false;             ///< a ReLU behind it
  const Value* x = nullptr;
  Value* y = nullptr;  ///< backward reads it where it rectifies
  const Value* dy = nullptr;
  Value* dx = nullptr;  ///< null: nobody wants it
  const Parameter* weight = nullptr;
  const Parameter* bias = nullptr;
  Parameter* dweight = nullptr;  ///< added to
  Parameter* dbias = nullptr;
  Parameter* running_mean = nullptr;
  Parameter* running_variance = nullptr;
  Parameter* mean = nullptr;       ///< of the batch, from forward to backward
  Parameter* inverse = nullptr;    ///< 1 / deviation, likewise
  Parameter* workspace = nullptr;  ///< of the Cpu: 4 column_period(columns)

  long rows() const { return samples * pixels; }
};

}  // namespace skein::inline SKEIN_ABI::ops
