// SPDX-License-Identifier: Apache-2.0
// Calls of fit that other libraries take: each is told in one sentence how it is written here.
#pragma once
#include <type_traits>

#include "check_trainer.hpp"
#include "history.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// What Trainer::fit refuses.
struct RefusedFits {
  /// Samples and targets that are no data set together, and a data set for validation in the second place.
  template <class X, class Y> History fit(const X&, const Y&, const FitOptions&) {
    assert_one_data_set<X, Y>();
    return {};
  }
  /// Options without their names.
  template <class Data, class Epochs, class... More>
  requires std::is_arithmetic_v<Epochs> History fit(const Data&, Epochs, const More&...) {
    static_assert(have_names<Epochs, More...>, "the options of fit have names: trainer.fit(data, {.epochs = 10, .batch = 32})");
    return {};
  }
  /// No options.
  template <class Data> History fit(const Data&) {
    static_assert(have_names<Data>, "fit takes its options too, the epochs at least: trainer.fit(data, {.epochs = 10})");
    return {};
  }
};

}  // namespace skein::inline SKEIN_ABI::train::detail
