// SPDX-License-Identifier: Apache-2.0
// What stands for an Executor whose first argument is no model, or a const one: it says so in one sentence.
#pragma once
#include "../fwd.hpp"
#include "check_model.hpp"
#include "executor_options.hpp"

namespace skein::inline SKEIN_ABI {

template <class Model, class Loss, class Run>
requires(!nn::takes_part<Model>) class Executor<Model, Loss, Run> {
  static_assert((nn::assert_model<Model>(), true));

 public:
  template <class Any> Executor(Any&&, const Loss&) {}
  template <class Any> Executor(Any&&, const Loss&, const ExecutorOptions&) {}
};

}  // namespace skein::inline SKEIN_ABI
