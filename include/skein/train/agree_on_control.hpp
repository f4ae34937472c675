// SPDX-License-Identifier: Apache-2.0
// What the callbacks and the signals of one rank ask for becomes what all ranks do: stop, keep weights, another rate.
#pragma once
#include <string>

#include "../core/clock.hpp"
#include "../core/error.hpp"
#include "fit_work.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// One signal on one rank ends the fit on all. `of_all`: the sums over the ranks, as FitSignals counts.
template <class Scalar> void stop_at_signal(FitWork<Scalar>& work, const double* of_all) {
  if (work.signals.take(of_all)) work.control.stop(name_of_signal(work.signals.ending()));
}

/// Keeps them for the callback of this name.
template <class Scalar> void keep_weights(FitWork<Scalar>& work, const std::string& name) {
  work.training.keep_weights();
  work.position.kept_by = name;
  work.control.agree_to_keep(false, work.position.rate_factor);
}

/// What callbacks asked for becomes what all ranks do: they stop and keep weights where one asks to; the rate is rank 0's.
template <class Scalar> void agree_on_control(FitWork<Scalar>& work) {
  FitControl& control = work.control;
  const FitFacts& facts = work.facts;
  const bool keeps = control.keeps_weights();
  if (facts.ranks > 1) {
    double asked[7] = {control.stopping() ? 1.0 : 0.0, keeps ? 1.0 : 0.0, facts.rank == 0 ? control.rate_factor() : 0.0,
                       control.finishing() ? 1.0 : 0.0};
    work.signals.count(work.training.signal_of_servers(), asked + 4);
    work.training.reduce(asked);
    control.agree_to_stop(asked[0] > 0);
    control.agree_to_finish(asked[3] > 0);
    control.agree_to_keep(asked[1] > 0, asked[2]);
    stop_at_signal(work, asked + 4);
  } else {
    double own[3];
    work.signals.count(work.training.signal_of_servers(), own);
    stop_at_signal(work, own);
  }
  work.position.rate_factor = control.rate_factor();
  if (facts.serves && work.position.rate_factor != 1)
    throw ArgumentError(
        "fit: a callback asks for another rate, but the servers that make the updates hear of none: take a .schedule");
  if (!control.keeps_weights()) return;
  keep_weights(work, keeps ? work.callbacks.keeper() : std::string(unknown_keeper));
}

/// An exception ends the fit of this rank: a file that is saved now has no batch behind the last step, and what callbacks have
/// asked for before one of them threw.
template <class Scalar> void take_control_alone(FitWork<Scalar>& work) {
  work.training.give_up_accumulation();
  work.position.rate_factor = work.control.rate_factor();
  if (work.control.keeps_weights()) try {
      keep_weights(work, work.callbacks.keeper());
    } catch (...) {  // the exception that ends the fit is the one to hear of
    }
}

/// What a callback of any rank wants of the fit that begins: records of steps, after which all ranks agree then; the weights that
/// a loaded training kept, which are nobody's else.
template <class Scalar> void agree_on_callbacks(FitWork<Scalar>& work) {
  double wanted[2] = {work.callbacks.wants_steps() ? 1.0 : 0.0,
                      work.callbacks.keeps_weights_of(work.position.kept_by) ? 1.0 : 0.0};
  work.training.reduce(wanted);
  work.steps_wanted = wanted[0] > 0;
  if (wanted[1] > 0) return;
  work.training.forget_kept_weights();
  work.position.kept_by.clear();
}

/// All ranks throw after what all have done together.
template <class Scalar> [[noreturn]] void leave_by_signal(FitWork<Scalar>& work) {
  (void)work.training.texts_of_all({});  // ranks that serve take part
  throw Interrupted(work.signals.ending(), ended_by_signal(work.signals.ending(), work.training.steps(),
                                                           work.options.checkpoint.folder.path(), work.facts.serves));
}

/// After an update.
template <class Scalar> void look_for_signal(FitWork<Scalar>& work) {
  FitSignals& signals = work.signals;
  const FitFacts& facts = work.facts;
  if (!signals.updated()) return;
  if (facts.ranks == 1) {
    if (signals.heard(work.training.signal_of_servers()) != 0) agree_on_control(work);
    return;
  }
  if (work.steps_wanted || !facts.asks || !signals.due([&] { return work.training.all_met(); })) return;
  double heard[4] = {};
  signals.count(work.training.signal_of_servers(), heard);
  const double now = seconds_now();
  if (facts.rank == 0) heard[3] = signals.next_round(now);
  work.training.reduce(heard);
  signals.asked(now, heard[3]);
  stop_at_signal(work, heard);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
