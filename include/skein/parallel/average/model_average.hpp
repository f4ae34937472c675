// SPDX-License-Identifier: Apache-2.0
// ModelAverage<Comm, Period<N>>: each rank trains by itself, and every so often the models of all ranks become their mean. With
// an outer optimizer the mean is not taken as it is: the way to it is a gradient for that optimizer (DiLoCo, Douillard et al.
// 2023; streaming by fragments: Douillard et al. 2025). McMahan et al., "Communication-Efficient Learning", AISTATS 2017; Stich,
// "Local SGD Converges Fast", ICLR 2019.
#pragma once
#include <utility>

#include "model_average_options.hpp"
#include "model_average_state.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Every rank trains alone; after every so many steps (or epochs) each weight becomes its mean over the ranks:
/// ModelAverage{world, Period<4>{}}, ModelAverage{world, {.weighted = false}, Period<2, Every::epoch>{}}. With an outer
/// optimizer, ModelAverage{world, Period<500>{}, DiLoCo{}}, the way to the mean is its gradient; streaming: {.fragments = 4,
/// .delay = 5, .keep = 0.5}. The communicator must outlive the training. With Period<1> and plain SGD it is DataParallel.
template <class Comm, class When, class Outer = PlainAverage> class ModelAverage : public PolicyBase {
 public:
  using communicator = Comm;
  explicit ModelAverage(Comm& comm, ModelAverageOptions options = {}, When = {}) : comm_(&comm), options_(options) {}
  explicit ModelAverage(Comm& comm, When) : ModelAverage(comm) {}
  ModelAverage(Comm& comm, ModelAverageOptions options, When, DiLoCo<Outer> outer)
      : comm_(&comm), options_(options), outer_(outer.outer) {}
  ModelAverage(Comm& comm, When when, DiLoCo<Outer> outer) : ModelAverage(comm, {}, when, outer) {}

  template <class R> auto bind(const R& replica) const {
    return ModelAveragePolicyState<When, Outer, Comm, typename R::Scalar, typename R::Device>(*comm_, options_, outer_, replica);
  }
  template <class Device> static constexpr bool fits = comm::sound<Comm, Device>&& detail::fits_as_outer<Outer>;
  template <class Device> static consteval void assert_fits() {
    if constexpr (optim::TakesClosure<Outer>)
      static_assert(detail::fits_as_outer<Outer>,
                    "an outer optimizer of ModelAverage gets the way to the mean as its gradient, of which there is no loss that "
                    "L-BFGS could evaluate: take another, as DiLoCo{optim::Sgd{.lr = 0.7f}}");
    else if constexpr (!detail::fits_as_outer<Outer>) optim::assert_optimizer<Outer>();
    else assert_communicator<Comm, Device>();
  }
  Comm& comm() const { return *comm_; }

 private:
  Comm* comm_;
  ModelAverageOptions options_;
  [[no_unique_address]] Outer outer_{};
};
/// Without a Period it is refused.
template <class Comm, class When, class Outer>
requires(!detail::is_period<When>) class ModelAverage<Comm, When, Outer> : public detail::RefusedPolicy {
  static_assert(detail::has_a_period<When>,
                "ModelAverage is given its period: ModelAverage{world, Period<4>{}}, or Period<2, Every::epoch>{}");
  static_assert(detail::period_or_none<When>,
                "ModelAverage takes behind the communicator, in this order, its options, a Period and a DiLoCo, as in "
                "ModelAverage{world, {.keep = 0.5}, Period<4>{}}: one of what it is given is none of these, or is elsewhere");

 public:
  template <class... Given> explicit ModelAverage(Comm&, const Given&...) {}
  template <class... Given> explicit ModelAverage(Comm&, ModelAverageOptions, const Given&...) {}
};
template <class Comm> ModelAverage(Comm&) -> ModelAverage<Comm, detail::NoPeriod>;
template <class Comm> ModelAverage(Comm&, ModelAverageOptions) -> ModelAverage<Comm, detail::NoPeriod>;
template <class Comm, class When>
requires detail::is_period<When> ModelAverage(Comm&, When)
->ModelAverage<Comm, When>;
template <class Comm, class When>
requires detail::is_period<When> ModelAverage(Comm&, ModelAverageOptions, When)
->ModelAverage<Comm, When>;
template <class Comm, class When, class Outer>
requires(detail::is_period<When>&& detail::is_outer<Outer>) ModelAverage(Comm&, When, Outer)
->ModelAverage<Comm, When, decltype(detail::outer_of(std::declval<const Outer&>()))>;
template <class Comm, class When, class Outer>
requires(detail::is_period<When>&& detail::is_outer<Outer>) ModelAverage(Comm&, ModelAverageOptions, When, Outer)
->ModelAverage<Comm, When, decltype(detail::outer_of(std::declval<const Outer&>()))>;
template <class Comm, class... Given> ModelAverage(Comm&, Given...) -> ModelAverage<Comm, detail::NotTaken<Given...>>;
template <class Comm, class... Given> ModelAverage(Comm&, ModelAverageOptions, Given...)
    -> ModelAverage<Comm, detail::NotTaken<Given...>>;

}  // namespace skein::inline SKEIN_ABI::parallel
