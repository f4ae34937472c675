// SPDX-License-Identifier: Apache-2.0
// Prediction of the rows of a table as they come, which Trainer::predict and Predictor::predict have in common.
#pragma once
#include <span>

#include "../core/error.hpp"
#include "../data/table_encoder.hpp"
#include "../tensor/tensor.hpp"
#include "kept_objects.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The outputs for each row of a table, in the units of the table: (rows, outputs). predict(data::DatasetView) gives those of the
/// encoded rows.
template <class Model, class Predict> Tensor<typename Model::Scalar, 2> predict_table(const data::TableEncoder& encoder,
                                                                                      const data::Table& rows,
                                                                                      const Predict& predict) {
  const auto samples = [&] {
    if constexpr (is_tokens<typename Model::input>) return encoder.tokens(rows);
    else return encoder.encode(rows);
  }();
  Tensor<typename Model::Scalar, 2> outputs = predict(data::DatasetView(samples)).template to<Cpu>();
  const auto width = static_cast<std::size_t>(outputs.extent(1));
  for (long i = 0; i < outputs.extent(0); ++i) encoder.restore(std::span(outputs.data() + i * outputs.extent(1), width));
  return outputs;
}

/// Throws ArgumentError where a TableEncoder is kept, since the rows of a tensor are not encoded by it.
inline void refuse_rows_of_tensor(const KeptObjects& kept) {
  if (kept.has(data::TableEncoder::kept_as))
    throw ArgumentError(
        "predict: the model was trained on rows that a TableEncoder encoded, and a tensor does not say whether its rows are: "
        "give "
        "the table, predict(sk::data::read_csv(\"new.csv\")), or rows that are encoded as a data set, "
        "predict(encoder.encode(table))");
}

}  // namespace skein::inline SKEIN_ABI::train
