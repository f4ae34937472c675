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

namespace train::detail {
template <class Model> struct ScalarOf { using type = float; };
template <class Model>
requires requires { typename Model::Scalar; }
struct ScalarOf<Model> {
  using type = typename Model::Scalar;
};
}  // namespace train::detail

template <class Model, class Loss, class Optimizer, class Policy>
requires(train::detail::is_refused<Model, Loss, Optimizer, Policy>) class Trainer<Model, Loss, Optimizer, Policy> {
  static constexpr train::detail::Part fault = train::detail::first_fault<Loss, Optimizer, Policy, Model>();
  static_assert(train::detail::assert_trainer<fault, Loss, Optimizer, Policy, Model>());

 public:
  template <class... Any> explicit Trainer(Any&&...) {}
  History fit(data::DatasetView, const FitOptions&);
  train::Scores evaluate(data::DatasetView, EvaluateOptions = {});
  template <class Samples> Tensor<typename train::detail::ScalarOf<Model>::type, 2> predict(const Samples&);
  void save(const std::string&);
  void load(const std::string&);
  void save_weights(const std::string&) const;
  void load_weights(const std::string&, const LoadOptions& = {});
  Model& model() const;
};

}  // namespace skein::inline SKEIN_ABI
