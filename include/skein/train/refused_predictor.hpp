// SPDX-License-Identifier: Apache-2.0
// What stands for a Predictor whose argument is no model, or a const one: it says so in one sentence, and takes the calls of a
// program, so that no error is added for each of them.
#pragma once
#include <string>

#include "../fwd.hpp"
#include "../nn/check_model.hpp"
#include "../nn/load_options.hpp"
#include "../tensor/tensor.hpp"

namespace skein::inline SKEIN_ABI {

struct PredictorOptions;

template <class Model>
requires(!nn::takes_part<Model>) class Predictor<Model> {
  static_assert((nn::assert_model<Model>(), true));

 public:
  template <class Any> explicit Predictor(Any&&) {}
  template <class Any> Predictor(Any&&, const PredictorOptions&) {}
  void load(const std::string&, const LoadOptions& = {});
  template <class Samples> Tensor<float, 2> predict(const Samples&);
};

}  // namespace skein::inline SKEIN_ABI
