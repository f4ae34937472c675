// SPDX-License-Identifier: Apache-2.0
// What users set for a training: aggregates without templates, written as {.epochs = 5, .batch = 128, .validate = test}.
#pragma once
#include <optional>
#include <vector>

#include "../core/random.hpp"
#include "../data/loader.hpp"
#include "../data/partition.hpp"
#include "../data/view.hpp"
#include "../nn/executor.hpp"
#include "../optim/loss_scaler.hpp"
#include "../optim/schedule.hpp"
#include "callback.hpp"
#include "metrics/any_metric.hpp"

namespace skein::inline SKEIN_ABI {

/// Of Trainer::fit. `.batch` counts the samples of a step over all ranks, `.batch_per_rank` those of one rank: give one.
struct FitOptions {
  int epochs = 1;
  long batch = 0;
  long batch_per_rank = 0;
  data::DatasetView validate{};  ///< evaluated after every epoch; must outlive the fit
  bool shuffle = true;
  Seed seed{};                 ///< of order and dropout; 0: the model's
  int accumulate = 1;          ///< batches whose gradients make one step
  optim::Schedule schedule{};  ///< factor of the optimizer's lr, by optimizer step
  double clip_norm = 0;        ///< global norm of the gradients; 0: no clipping
  data::Partition partition = data::Partition::shared;
  data::LastBatch last = data::LastBatch::keep;
  std::vector<train::AnyMetric> metrics{};  ///< of the validation
  train::Callbacks callbacks{};
  bool record_steps = false;  ///< a StepRecord of every step in the History
  bool progress = true;       ///< lines on the terminal, rank 0 only
  Execution execution = Execution::automatic;
  int threads = 0;  ///< workers of this rank; 0: its cores
  Denormals denormals =
      Denormals::flush;  ///< within steps, numbers below the smallest normal one (1.2e-38 in float) are zero; or kept
  data::Prefetch prefetch = data::Prefetch::automatic;
  std::optional<optim::LossScaling>
      loss_scaling{};  ///< of a model with 16-bit activations; empty: dynamic for fp16, none for bf16
  bool graph = true;   ///< a step may become one captured graph, on a device that has such
};

/// Of Trainer::evaluate.
struct EvaluateOptions {
  long batch = 0;  ///< samples of all ranks at a time; 0: what fits into the executor
  std::vector<train::AnyMetric> metrics{};
};

}  // namespace skein::inline SKEIN_ABI
