// SPDX-License-Identifier: Apache-2.0
// What stands for a Trainer whose parts do not fit: it says why in one sentence and takes the calls of a program, so that clang
// adds no error for each of them.
#pragma once
#include <string>

#include "../fwd.hpp"
#include "../nn/load_options.hpp"
#include "../tensor/tensor.hpp"
#include "check_trainer.hpp"
#include "history.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI {

template <class Model, class Loss, class Optimizer, class Policy>
requires(train::detail::is_refused<Model, Loss, Optimizer, Policy>) class Trainer<Model, Loss, Optimizer, Policy> {
  static constexpr train::detail::Part fault = train::detail::first_fault<Loss, Optimizer, Policy, Model>();
  static_assert(train::detail::assert_trainer<fault, Loss, Optimizer, Policy, Model>());

 public:
  template <class... Any> explicit Trainer(Any&&...) {}
  History fit(data::DatasetView, const FitOptions&);
  train::Scores evaluate(data::DatasetView, EvaluateOptions = {});
  template <class Samples> Tensor<typename Model::Scalar, 2> predict(const Samples&);
  void save(const std::string&);
  void load(const std::string&);
  void save_weights(const std::string&) const;
  void load_weights(const std::string&, const LoadOptions& = {});
  Model& model() const;
};

}  // namespace skein::inline SKEIN_ABI
