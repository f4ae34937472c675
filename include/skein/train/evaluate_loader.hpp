// SPDX-License-Identifier: Apache-2.0
// One pass over a data set, in order, by all ranks: its loss, its accuracy and its metrics.
#pragma once
#include <vector>

#include "../data/loader.hpp"
#include "fitted_training.hpp"
#include "history.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// How a data set is evaluated: in order, each sample once, not prefetched. `name`: "the validation data set".
data::LoaderOptions evaluation_options(const FitFacts& facts, long batch, const char* name);
/// The scores over all that the loader has, summed over all ranks. Throws ArgumentError for metrics that are in another
/// evaluation.
template <class Scalar> Scores evaluate_loader(EvaluatedTraining<Scalar>& training, const FitFacts& facts,
                                               data::Loader<Scalar>& loader, std::vector<AnyMetric>& metrics);

}  // namespace skein::inline SKEIN_ABI::train::detail

#if !SKEIN_COMPILED
#include "evaluate_loader.ipp"
#endif
