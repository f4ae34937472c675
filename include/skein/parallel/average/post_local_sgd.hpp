// SPDX-License-Identifier: Apache-2.0
// PostLocalSgd: synchronous at first, when weights change fast, and then by averages of models. Lin et al., "Don't Use Large
// Mini-Batches, Use Local SGD", ICLR 2020.
#pragma once
#include "../compose.hpp"
#include "../data/data_parallel.hpp"
#include "model_average.hpp"
#include "../data/sync_every.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Post-local SGD: ranks exchange gradients in the first steps; after that each rank trains alone, and models are averaged every
/// so many steps: PostLocalSgd{world, SyncFirst<500>{}, Period<8>{}}.
template <class Comm, class First, class When> class PostLocalSgd
    : public Compose<DataParallel<Comm, First>, ModelAverage<Comm, When>> {
  using Base = Compose<DataParallel<Comm, First>, ModelAverage<Comm, When>>;
  static ModelAverageOptions behind(ModelAverageOptions options) {
    options.first = First::steps;
    return options;
  }

 public:
  PostLocalSgd(Comm& comm, First first, When when) : PostLocalSgd(comm, {}, first, when) {}
  PostLocalSgd(Comm& comm, ModelAverageOptions average, First first, When when)
      : Base(DataParallel<Comm, First>(comm, first), ModelAverage<Comm, When>(comm, behind(average), when)) {}
};
/// What is given in another order, or is something else, is refused.
template <class Comm, class First, class When>
requires(!detail::is_period<When> || !requires { First::steps; }) class PostLocalSgd<Comm, First, When>
    : public detail::RefusedPolicy {
  static_assert(
      detail::takes_all<First, When>,
      "PostLocalSgd takes behind the communicator, in this order, options of ModelAverage, a SyncFirst and a Period, as in "
      "PostLocalSgd{world, SyncFirst<500>{}, Period<8>{}}: one of them is missing, or what it is given is something else");

 public:
  template <class... Given> explicit PostLocalSgd(Comm&, const Given&...) {}
  template <class... Given> explicit PostLocalSgd(Comm&, ModelAverageOptions, const Given&...) {}
};
template <class Comm, int N, class When>
requires detail::is_period<When> PostLocalSgd(Comm&, SyncFirst<N>, When)
->PostLocalSgd<Comm, SyncFirst<N>, When>;
template <class Comm, int N, class When>
requires detail::is_period<When> PostLocalSgd(Comm&, ModelAverageOptions, SyncFirst<N>, When)
->PostLocalSgd<Comm, SyncFirst<N>, When>;
template <class Comm, class... Given> PostLocalSgd(Comm&, Given...) -> PostLocalSgd<Comm, detail::NotTaken<Given...>, void>;
template <class Comm, class... Given> PostLocalSgd(Comm&, ModelAverageOptions, Given...)
    -> PostLocalSgd<Comm, detail::NotTaken<Given...>, void>;

}  // namespace skein::inline SKEIN_ABI::parallel
