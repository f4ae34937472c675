// SPDX-License-Identifier: Apache-2.0
// What users set for a training: aggregates without templates, written as {.epochs = 5, .batch = 128, .validate = test}.
#pragma once
#include <cstdint>
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
#include "not_finite.hpp"
#include "refused_options.hpp"
#include "run_folder.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace train {
/// How fit serves the samples: `.loader = {.shuffle = false}`.
struct FitLoader {
  long batch_per_rank = 0;                              ///< samples of a batch on each rank, in place of `.batch`
  bool shuffle = true;                                  ///< false: in the order of the data set
  data::Partition partition = data::Partition::shared;  ///< `local`: each rank's data set is its own shard
  data::LastBatch last = data::LastBatch::keep;         ///< `drop`: samples that fill no batch are left out
  [[no_unique_address]] detail::refused::OfLoader drop_last{};
  data::Prefetch prefetch = data::Prefetch::automatic;  ///< whether threads stage batches ahead
  int prefetch_threads = 0;  ///< 0: one, or more for a set that `prefers_threads`; else so many, on busy cores too
  [[no_unique_address]] detail::refused::OfLoader num_workers{};
};

/// How a step is made of batches: `.step = {.accumulate = 4}`.
struct FitStep {
  int accumulate = 1;  ///< batches whose gradients make one step
  /// of a model with 16-bit activations; empty: as it is, at first dynamic for fp16, none for bf16
  std::optional<optim::LossScaling> loss_scaling{};
};

/// How a step is computed: `.compute = {.execution = Execution::layer_wise}`.
struct FitCompute {
  Execution execution = Execution::automatic;  ///< layer by layer, or depth-first by blocks of samples
  Denormals denormals = Denormals::flush;      ///< numbers below the smallest normal one (1.2e-38 in float) become zero
  bool graph = true;  ///< a step may become one captured graph, on a device that has such; alike on all ranks
};

/// What ranks compare while they train: `.check = {.replicas_every = 100}`.
struct FitCheck {
  std::int64_t replicas_every = 0;  ///< steps between two comparisons of the ranks' weights; 0: at commits and the end of fit
};

/// Which signals end a fit after its step, on all ranks, with a commit where there is a `.checkpoint`: `.interrupt = {.also =
/// SIGUSR1}`. fit throws sk::Interrupted then; a second signal ends the program at once.
struct FitInterrupt {
  bool on_signals = true;  ///< SIGINT (Ctrl-C) and SIGTERM, where the program has no handlers of its own for them
  int also = 0;            ///< another signal, as Slurm's `--signal` sends before the time limit
};

/// Where fit saves the training as it goes, and goes on from where it is started again: `.checkpoint = {.folder = "run", .every =
/// 500}`.
struct FitCheckpoint {
  RunFolder folder{};  ///< of this fit alone, seen by all ranks; empty: nothing is saved
  [[no_unique_address]] detail::refused::OfCheckpoint path{};
  [[no_unique_address]] detail::refused::OfCheckpoint dir{};
  std::int64_t every = 0;  ///< optimizer steps between two commits; 0: one at the end of each epoch
  int keep = 3;            ///< commits that stay, 2 or more; earlier ones are removed
  bool async = false;      ///< a thread writes while steps go on; a commit is on the disk when the next begins, or `fit` returns
};
}  // namespace train

/// Options of Trainer::fit, in the order in which a program writes them. Give one of `.batch` and
/// `.loader = {.batch_per_rank = ...}`.
struct FitOptions {
  int epochs = 1;  ///< passes over the training data
  [[no_unique_address]] train::detail::refused::NumEpochs num_epochs{};
  long batch = 0;  ///< samples of a batch over all ranks; a step has `.step.accumulate` batches
  [[no_unique_address]] train::detail::refused::BatchSize batch_size{};
  data::DatasetView validate{};  ///< evaluated after every epoch; one with a name must outlive the fit
  [[no_unique_address]] train::detail::refused::ValidationData validation{};
  [[no_unique_address]] train::detail::refused::ValidationData validation_data{};
  [[no_unique_address]] train::detail::refused::ValidationSplit validation_split{};
  optim::Schedule schedule{};  ///< factor of the optimizer's rate, by optimizer step
  [[no_unique_address]] train::detail::refused::LearningRate lr{};
  [[no_unique_address]] train::detail::refused::LearningRate learning_rate{};
  double clip_norm = 0;  ///< limit of the gradients' global norm; 0: none
  [[no_unique_address]] train::detail::refused::MaxNorm max_norm{};
  [[no_unique_address]] train::detail::refused::MaxNorm gradient_clip_val{};
  Seed seed{};                              ///< of order and dropout; 0: the model's
  std::vector<train::AnyMetric> metrics{};  ///< of the `.validate` set
  train::Callbacks callbacks{};             ///< called around epochs and steps, in this order
  [[no_unique_address]] train::detail::refused::OfCallbacks callback{};
  [[no_unique_address]] train::detail::refused::OfCallbacks early_stopping{};
  [[no_unique_address]] train::detail::refused::OfCallbacks patience{};
  bool record_steps = false;  ///< a `StepRecord` of every step in the `History`
  bool progress = true;       ///< lines on the terminal, by rank 0 alone
  [[no_unique_address]] train::detail::refused::Verbose verbose{};
  int threads = 0;             ///< workers of this rank; 0: its cores
  OnNan on_nan = OnNan::stop;  ///< where the loss of a step is no finite number: `stop`, `skip` or `go_on`
  train::FitLoader loader{};   ///< how samples are served
  [[no_unique_address]] train::detail::refused::OfLoader shuffle{};
  [[no_unique_address]] train::detail::refused::OfLoader drop_last{};
  [[no_unique_address]] train::detail::refused::OfLoader num_workers{};
  train::FitStep step{};  ///< how a step is made of batches
  [[no_unique_address]] train::detail::refused::OfStep accumulate{};
  [[no_unique_address]] train::detail::refused::OfScale loss_scaling{};
  [[no_unique_address]] train::detail::refused::OfScale amp{};
  train::FitCompute compute{};  ///< how a step is computed
  [[no_unique_address]] train::detail::refused::OfCompute execution{};
  [[no_unique_address]] train::detail::refused::OfCompute denormals{};
  [[no_unique_address]] train::detail::refused::OfCompute graph{};
  train::FitCheck check{};            ///< what ranks compare while they train
  train::FitCheckpoint checkpoint{};  ///< where the training is saved as it goes
  train::FitInterrupt interrupt{};    ///< which signals end the fit after its step
};

/// Options of Trainer::evaluate.
struct EvaluateOptions {
  long batch = 0;  ///< samples of all ranks at a time; 0: 256 a rank
  [[no_unique_address]] train::detail::refused::BatchSize batch_size{};
  std::vector<train::AnyMetric> metrics{};
};

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
