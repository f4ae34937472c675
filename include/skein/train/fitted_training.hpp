// SPDX-License-Identifier: Apache-2.0
// What an evaluation, the look for numbers that are not finite, and the loop of a fit ask of a training: virtual functions,
// called once a step or less often, so that their code is compiled once and not once a network. Each of the three has its own
// class, the next one's base: a function says by its parameter how much of a training it may touch.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../nn/executor_options.hpp"
#include "../nn/loss/loss.hpp"
#include "../optim/step_options.hpp"
#include "fit_facts.hpp"
#include "metrics/any_metric.hpp"
#include "saved_training.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// What one pass over a data set asks.
template <class Scalar> class EvaluatedTraining : public SavedTraining {
 public:
  virtual FitFacts facts() = 0;
  /// Makes memory for batches of so many samples; and whatever layers want beforehand for one of `count`.
  virtual void reserve(const ExecutorOptions& options) = 0;
  virtual void prepare(long count) = 0;
  /// Samples of the largest batch that there is memory for; 0 before reserve().
  virtual long capacity() = 0;
  /// Running statistics become those of all ranks, where each has its own.
  virtual void average_buffers() = 0;
  /// Forward and loss alone; `more`: the sums are those of the calls before too.
  virtual void evaluate(const data::Batch<Scalar>& batch, bool more) = 0;
  /// The sums of the last evaluation, or step. A device is waited for.
  virtual nn::LossSums sums() = 0;
  /// Labels of the batch that the loss ignores.
  virtual std::int64_t ignored_labels(const data::Batch<Scalar>& batch) = 0;
  /// Gives the metrics the outputs of the batch that has been evaluated.
  virtual void feed(std::vector<AnyMetric>& metrics, const data::Batch<Scalar>& batch) = 0;

 protected:
  ~EvaluatedTraining() = default;
};

/// What LossJudge asks besides: of the last step, and of what the steps have left.
template <class Scalar> class JudgedTraining : public EvaluatedTraining<Scalar> {
 public:
  /// The sums of the epoch. A device is waited for.
  virtual nn::LossSums totals() = 0;
  virtual void set_totals(const nn::LossSums& sums) = 0;
  virtual double rate() = 0;  ///< the optimizer's, without the schedule
  /// The last step was not made: see optim::StepOptions::finite.
  virtual bool left_out() = 0;
  /// The loss is scaled, and a step whose gradients overflow is skipped.
  virtual bool scales_loss() = 0;
  /// An overflow lowers the scale of the loss.
  virtual bool scale_can_fall() = 0;
  /// The norm of the last step's gradient, where that is known, else 0. `made`: its update was, by what a chain's stages may have
  /// made of the gradient.
  virtual double gradient_norm(bool made) = 0;
  /// What of the batch's step is not finite, in a sentence without its end; the weights stay as they are.
  virtual std::string first_not_finite(const data::Batch<Scalar>& batch) = 0;
  /// What is not finite of what this rank's steps have left, in a sentence without its end: a weight that it trains, a running
  /// statistic, an array of the optimizer, a factor of Kfac, memory of the policy; "" where all is. A device is waited for.
  virtual std::string part_not_finite() = 0;

 protected:
  ~JudgedTraining() = default;
};

/// What the loop asks besides: steps, epochs, the policy's exchanges between them. Functions that may change the parameters
/// announce it to the model.
template <class Scalar> class FittedTraining : public JudgedTraining<Scalar> {
 public:
  /// .finite has no effect where the facts say that no step can be left out.
  virtual void step(const data::Batch<Scalar>& batch, const optim::StepOptions& options) = 0;
  /// Batches that wait for the rest of their step wait no longer, and have left nothing.
  virtual void give_up_accumulation() = 0;
  /// Optimizer steps that a batch of so many samples makes: one, but for PipeDream's.
  virtual std::int64_t updates_of(long samples) = 0;
  virtual std::string_view note() = 0;  ///< why a step is not what it could be
  virtual void epoch_begins(std::int64_t number) = 0;
  virtual void epoch_ends(std::int64_t number) = 0;
  /// The last step was made; `signal` ended the fit, or 0.
  virtual void finish(int signal) = 0;
  /// A signal that a rank which serves has got; 0: none.
  virtual int signal_of_servers() = 0;
  /// Seconds so far in which this rank waited for an exchange that nothing hid.
  virtual double exposed_seconds() = 0;
  /// A small sum after this step is cheap, though not after every one; the same on all ranks.
  virtual bool all_met() = 0;
  /// Throws CommError where weights differ that the policy promises to be the same on all ranks.
  virtual void compare_weights(std::string_view when) = 0;
  /// Keeps a copy of weights and buffers, in place of the one before; and gives it back to the model.
  virtual void keep_weights() = 0;
  virtual bool has_kept_weights() = 0;
  virtual void forget_kept_weights() = 0;
  virtual void give_back_weights() = 0;

 protected:
  ~FittedTraining() = default;
};

}  // namespace skein::inline SKEIN_ABI::train::detail
