// SPDX-License-Identifier: Apache-2.0
// Is a type a model that may be trained and executed: what a Trainer, a Predictor and an Executor take first.
#pragma once
#include <type_traits>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Model is what Model& of a Trainer, a Predictor or an Executor stands for: it has a network, and is not const.
template <class Model> inline constexpr bool takes_part = requires { typename Model::network; }
&&!std::is_const_v<Model>;

namespace detail {
template <class Model> inline constexpr bool is_a_model = requires { typename Model::network; };
}  // namespace detail
/// Refuses, with one sentence, what is no model, or a const one.
template <class Model> consteval void assert_model() {
  static_assert(detail::is_a_model<Model>,
                "the first argument is a model, by its name: *model of a pointer to one, trainer.model() of a trainer");
  static_assert(!detail::is_a_model<Model> || takes_part<Model>,
                "a trainer, a predictor and an executor take the model as Model&, not const: they write into what it has beside "
                "its weights, and a trainer into these");
}

}  // namespace skein::inline SKEIN_ABI::nn
