// SPDX-License-Identifier: Apache-2.0
// Prediction of the rows of a table as they come, which Trainer::predict and Predictor::predict have in common.
#pragma once
#include <span>

#include "../data/table_encoder.hpp"
#include "../tensor/tensor.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The outputs for each row of a table, in the units of the table: (rows, outputs). predict(data::DatasetView) gives those of the
/// encoded rows.
template <class Scalar, class Predict>
Tensor<Scalar, 2> predict_table(const data::TableEncoder& encoder, const data::Table& rows, const Predict& predict) {
  const auto samples = encoder.encode(rows);
  Tensor<Scalar, 2> outputs = predict(data::DatasetView(samples)).template to<Cpu>();
  const auto width = static_cast<std::size_t>(outputs.extent(1));
  for (long i = 0; i < outputs.extent(0); ++i) encoder.restore(std::span(outputs.data() + i * outputs.extent(1), width));
  return outputs;
}

}  // namespace skein::inline SKEIN_ABI::train
