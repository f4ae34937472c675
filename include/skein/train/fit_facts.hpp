// SPDX-License-Identifier: Apache-2.0
// What the loop of a fit knows of a training, and what it asks of it: a few virtual functions, so that the loop is compiled once.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../data/loader.hpp"
#include "../nn/executor_options.hpp"
#include "../nn/loss/loss.hpp"
#include "../parallel/policy.hpp"
#include "metrics/any_metric.hpp"
#include "saved_training.hpp"
#include "step_options.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// Samples of a step, of all its batches: over all ranks, and this rank's.
struct StepSamples {
  std::int64_t all = 0, own = 0;
};

/// What the loop knows of a training beforehand.
struct FitFacts {
  int rank = 0, ranks = 1, local_ranks = 1;  ///< of the policy; how many share a machine
  int part = 0, parts = 1;                   ///< of a batch: the ranks of a pipeline have one part together
  bool scores = true;                        ///< this rank has its part's outputs: of a pipeline, its last stage
  int virtual_shards = 0;                    ///< of a policy that has such
  bool local_sums = false;                   ///< a step's sums are of this rank alone
  bool labels = false;                       ///< the loss counts correct answers
  long labels_each = 1;                      ///< answers that a sample is asked for
  bool weight_counts = false;                ///< the loss ignores a label, and each other one adds 1 to the sums' weight
  bool host = true;                          ///< the sums of a step are known after it, without waiting for a device
  bool leaves_out = true;                    ///< a step can be left out before its update: not by a pipeline
  bool sees_all_sums = true;                 ///< before its update, all ranks know the sums of all
  bool scales_loss = false;                  ///< as it comes, the loss is scaled, and a step that overflows is skipped
  bool in_step = false;                      ///< ranks make each step together, so that a small sum between steps is cheap
  bool asks = true;                          ///< small sums between steps take no simulated time
  bool serves = false;                       ///< the policy has ranks that make the updates
  parallel::SameWeights same_weights{};      ///< what the policy promises of the ranks' weights
  long metric_rows = 1;                      ///< rows of outputs of a sample, as metrics see them
  bool probabilities = false;                ///< the network ends with Sigmoid or Softmax
  int metric_width = 1, metric_values = 0;   ///< outputs of a row, values that they are compared with (0: a label)
  int threads = 1;                           ///< workers of this rank, where the options do not say
  Seed seed{};                               ///< the model's
  data::LoaderOptions loader{};              ///< how the device likes its batches
};

/// What the loop asks of a training: the train step, the policy's state, the optimizer. Functions that may change the
/// parameters announce it to the model.
template <class Scalar> class FitSteps : public SavedTraining {
 public:
  virtual FitFacts facts() = 0;
  /// Makes memory for batches of so many samples; and whatever layers want beforehand for one of `count`.
  virtual void reserve(const ExecutorOptions& options) = 0;
  virtual void prepare(long count) = 0;
  /// Of the largest batch that there is memory for; 0 before reserve().
  virtual long capacity() = 0;
  virtual void step(const data::Batch<Scalar>& batch, const StepOptions& options) = 0;
  /// Optimizer steps that a batch of so many samples makes: one, but for PipeDream's.
  virtual std::int64_t updates_of(long samples) = 0;
  /// Forward and loss alone; `more`: the sums are those of the calls before too.
  virtual void evaluate(const data::Batch<Scalar>& batch, bool more) = 0;
  /// Of the last step, or evaluation. A device is waited for.
  virtual nn::LossSums sums() = 0;
  /// The last step was not made: see StepOptions::finite.
  virtual bool left_out() = 0;
  /// An overflow lowers the scale of the loss.
  virtual bool scale_can_fall() = 0;
  /// Of the last step, where that is known.
  virtual double gradient_norm() = 0;
  /// What of the batch's step is not finite, in a sentence without its end; the weights stay as they are.
  virtual std::string first_not_finite(const data::Batch<Scalar>& batch) = 0;
  /// What is not finite of what this rank's steps have left, in a sentence without its end: a weight that it trains, a running
  /// statistic, a factor of Kfac; "" where all is. A device is waited for.
  virtual std::string part_not_finite() = 0;
  /// Keeps a copy of weights and buffers, in place of the one before; and gives it back to the model.
  virtual void keep_weights() = 0;
  virtual bool has_kept_weights() = 0;
  virtual void give_back_weights() = 0;
  /// Labels of the batch that the loss ignores.
  virtual std::int64_t ignored_labels(const data::Batch<Scalar>& batch) = 0;
  /// Gives the metrics the outputs of the batch that has been evaluated.
  virtual void feed(std::vector<AnyMetric>& metrics, const data::Batch<Scalar>& batch) = 0;
  /// The sums of the epoch. A device is waited for.
  virtual nn::LossSums totals() = 0;
  virtual void set_totals(const nn::LossSums& sums) = 0;
  virtual double rate() = 0;            ///< the optimizer's, without the schedule
  virtual std::string_view note() = 0;  ///< why a step is not what it could be
  virtual void epoch_begins(std::int64_t number) = 0;
  virtual void epoch_ends(std::int64_t number) = 0;
  /// The last step was made; `signal` ended the fit, or 0.
  virtual void finish(int signal) = 0;
  /// A signal that a rank which serves has got; 0: none.
  virtual int signal_of_servers() = 0;
  virtual void average_buffers() = 0;
  virtual double exposed_seconds() = 0;
  /// A small sum after this step is cheap, though not after every one; the same on all ranks.
  virtual bool all_met() = 0;
  /// Throws CommError where weights differ that the policy promises to be the same on all ranks.
  virtual void compare_weights(std::string_view when) = 0;

 protected:
  ~FitSteps() = default;
};

}  // namespace skein::inline SKEIN_ABI::train::detail
