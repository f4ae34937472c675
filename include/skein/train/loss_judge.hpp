// SPDX-License-Identifier: Apache-2.0
// LossJudge: looks in a fit whether the loss is a finite number. For that it asks for nothing of its own: on the host it sees the
// sums of each step, which ranks that add up their gradients have in common; elsewhere those that a record, a progress line or
// the end of an epoch reads anyway, some steps later. The last step of an epoch, and the one before a commit, has no loss behind
// it: the weights are read then, of a device by a copy.
#pragma once
#include <cmath>
#include <string>
#include <utility>

#include "fitted_training.hpp"
#include "not_finite.hpp"
#include "options.hpp"
#include "progress.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Judges the losses of one fit. Throws NotFiniteError for a loss that is not finite, unless .on_nan says otherwise.
template <class Scalar> class LossJudge {
 public:
  using Training = JudgedTraining<Scalar>;

  /// Throws ArgumentError where steps are to be skipped and ranks could skip different ones.
  LossJudge(Training& training, const FitFacts& facts, const FitOptions& options)
      : training_(training), on_nan_(options.on_nan), host_(facts.host), leaves_out_(facts.leaves_out),
        own_loss_(facts.local_sums && facts.ranks > 1), scaled_(training.scales_loss()), steps_before_(training.steps()) {
    if (on_nan_ == OnNan::skip && !facts.sees_all_sums)
      throw ArgumentError(
          "fit: .on_nan = OnNan::skip is for a model on the Cpu and a policy whose ranks add up their gradients in each step: "
          "here ranks would skip different steps; take OnNan::stop");
  }

  /// optim::StepOptions::finite of the next step. Not where a scaled loss may overflow: such a step is skipped and the scale
  /// falls, until it can fall no further. `first`: no batch of the step has gone.
  bool judges_step(bool first) {
    if (host_) steps_ = training_.steps();
    if (host_ && scaled_ && first) totals_ = training_.totals();
    return host_ && on_nan_ != OnNan::go_on && !(scaled_ && training_.scale_can_fall());
  }
  /// After a step with an update that is judged: was it made.
  bool made(const data::Batch<Scalar>& batch, int epoch, double factor) {
    const bool out = training_.left_out();
    const nn::LossSums sums = training_.sums();
    if (!out && std::isfinite(sums.loss)) [[likely]]
      return true;
    if (on_nan_ == OnNan::skip) return left_out_ += out, !out;
    const bool own = !std::isfinite(sums.loss);  // else there is no such layer for this rank's samples
    stop(sums, epoch, factor, false, leaves_out_ && own ? training_.first_not_finite(batch) : "");
  }
  /// Sums of a step, or of an epoch so far, that somebody has asked for.
  void look(const nn::LossSums& sums, int epoch, double factor) {
    if (!std::isfinite(sums.loss) && on_nan_ != OnNan::go_on && !scaled_) [[unlikely]]
      stop(sums, epoch, factor, true, {});
  }
  /// What the steps have left, before it is evaluated or kept: the last one's own loss was finite. Throws NotFiniteError where a
  /// weight, a running statistic, an array of the optimizer or a factor of Kfac is not, also where such steps are left out: no
  /// later step mends them.
  void look_at_parts(int epoch, double factor) {
    if (on_nan_ == OnNan::go_on) return;
    std::string part = training_.part_not_finite();
    if (!part.empty()) [[unlikely]]
      stop(training_.sums(), epoch, factor, true, {}, std::move(part));
  }
  /// A step whose scaled gradients have overflowed was skipped: it has no part in the epoch's mean.
  void skipped() {
    if (!scaled_) return;
    if (host_) training_.set_totals(totals_);  // a device leaves them as they were
    ++skipped_;
  }
  /// Says how many steps of the epoch were left out. Throws where these were all, and where no sample counts: `sums` are those of
  /// all ranks.
  void end_of_epoch(Progress& progress, bool all, const nn::LossSums& sums) {
    if (!all && sums.weight == 0 && on_nan_ != OnNan::go_on)
      throw ArgumentError(
          "fit: no sample of the epoch counts, so that nothing was trained: each label is the one that the loss ignores, or of a "
          "class whose weight is 0, or a loss of your own has said so of each sample");
    const std::int64_t n = std::exchange(left_out_, 0);
    if (n > 0) progress.line(text("{} steps of this epoch were left out: their loss was no finite number", n));
    if (n > 0 && all)
      throw NotFiniteError(
          "fit: all steps of an epoch were left out (.on_nan = OnNan::skip), since their loss was no finite number: "
          "lower the rate, or look at the samples");
    const std::int64_t before = std::exchange(steps_before_, training_.steps());
    if (std::exchange(skipped_, 0) > 0 && training_.steps() == before && on_nan_ != OnNan::go_on && !training_.scale_can_fall())
      throw NotFiniteError(
          "fit: all steps of an epoch were skipped: their gradients overflow by the scale of the loss, which can fall no "
          "further. "
          "Give .step.loss_scaling a smaller scale, or look at the samples");
  }

 private:
  [[noreturn]] void stop(const nn::LossSums& sums, int epoch, double factor, bool late, std::string layer,
                         std::string part = {}) {
    const bool made = late || training_.steps() != steps_;  // not one that was left out, or skipped by the scale of its loss
    throw NotFiniteError(not_finite_message({.step = training_.steps() + (made ? 0 : 1),
                                             .epoch = epoch,
                                             .loss = sums.mean(),
                                             .rate = training_.rate() * factor,
                                             .norm = training_.gradient_norm(made),
                                             .found_late = late,
                                             .made = made && !leaves_out_,
                                             .own_loss = own_loss_,
                                             .layer = std::move(layer),
                                             .part = std::move(part)}));
  }

  Training& training_;
  OnNan on_nan_;
  bool host_, leaves_out_, own_loss_, scaled_;
  std::int64_t left_out_ = 0, steps_ = 0;    // steps_: before the one that is judged
  std::int64_t skipped_ = 0, steps_before_;  // in this epoch, and of those before
  nn::LossSums totals_{};                    // of the epoch, before a step that may be skipped
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
