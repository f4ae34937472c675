// SPDX-License-Identifier: Apache-2.0
// The bodies of fit_state.hpp.
#pragma once
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "archive.hpp"
#include "fit_state.hpp"
#include "training_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE nn::LossSums sum_over_ranks(SavedTraining& training, const nn::LossSums& own) {
  double all[3] = {own.loss, own.weight, own.correct};
  training.reduce(all);
  return {all[0], all[1], all[2]};
}

SKEIN_INLINE void reduce_sums(TrainingPosition& at, const FitFacts& facts, SavedTraining& training) {
  at.sums_of_ranks.clear();
  if (!facts.local_sums) return;
  at.sums_of_ranks.resize(3 * static_cast<std::size_t>(facts.ranks));
  if (facts.rank < facts.ranks) {  // a rank that serves has none
    double* const own = at.sums_of_ranks.data() + 3 * facts.rank;
    own[0] = at.sums.loss, own[1] = at.sums.weight, own[2] = at.sums.correct;
  }
  training.reduce(at.sums_of_ranks);  // with zeros: exact
  at.sums = sum_over_ranks(training, at.sums);
}

SKEIN_INLINE void FitState::resume(const FitFacts& facts, FileRecords&& records) {
  position_ = records.position;
  if (facts.local_sums) {
    const auto& all = position_.sums_of_ranks;
    if (facts.rank < facts.ranks && all.size() == 3 * static_cast<std::size_t>(facts.ranks)) {
      const double* const own = all.data() + 3 * facts.rank;
      position_.sums = {own[0], own[1], own[2]};
    } else if (facts.rank != 0) {
      position_.sums = {};  // the file's are of all ranks
    }
  }
  history_ = std::move(records.history);
  callback_state_ = std::move(records.callbacks);
  callback_failure_ = {};
  loaded_optimizer_ = std::move(records.optimizer);
  loaded_seed_ = Seed{position_.order.seed};
  moment_ = FitMoment::loaded;
}

SKEIN_INLINE Seed FitState::seed_of(Seed asked, Seed of_model) const {
  if (asked.value != 0) return asked;
  return loaded() && loaded_seed_.value != 0 ? loaded_seed_ : of_model;
}

SKEIN_INLINE void FitState::describe(Seed asked, Seed of_model, NamedValues& to) const {
  to.add("the seed (.seed, else the model's)", seed_of(asked, of_model).value);
  to.add("whether load() was called", loaded());
}

SKEIN_INLINE bool FitState::begin(const EpochOrder& order, std::int64_t steps, Callbacks& callbacks, SavedTraining& training) {
  const bool goes_on = this->goes_on();
  if (goes_on) {  // where it cannot, nothing is changed: the next fit goes on, if that can
    check_order(position_, order);
    if (position_.step > steps)
      throw ArgumentError(
          text("fit: the loaded training was at step {} of its epoch, this data set and batch have {}: go on with the same "
               ".batch and data",
               position_.step, steps));
    load_together(training, [&] { go_on_with(callbacks, training.rank()); });
    if (training.rank() == 0) say_others(loaded_optimizer_, training.optimizer_lines(), position_, order);
  } else {
    position_.base = epochs_before();
    position_.epoch = position_.step = 0;
    position_.sums = {};
    position_.samples = 0;
    position_.rate_factor = 1;
    position_.kept_by.clear();
    position_.updates_of_epoch = position_.schedule_shift = 0;
    position_.first_step = training.steps();
    history_ = History{};
  }
  callback_state_.clear();
  callbacks_ = &callbacks;
  loaded_optimizer_.clear();
  moment_ = FitMoment::outside_epoch;
  position_.running = true;
  position_.ended = false;
  position_.order = order;
  return goes_on;
}

SKEIN_INLINE void FitState::load_callbacks(Callbacks& callbacks, int rank) const {
  const bool by_name = position_.fit_is_over();
  constexpr const char* of = "the callbacks of the loaded training";
  if (rank == 0 && !by_name) return from_bytes(byte_span(callback_state_), callbacks, of);
  for (const std::string& name : callbacks.load_by_name(byte_span(callback_state_), of)) say_begins_anew(name, rank);
}

SKEIN_INLINE void FitState::go_on_with(Callbacks& callbacks, int rank) const {
  if (callback_state_.empty()) return;
  if (callbacks.size() > 0) load_callbacks(callbacks, rank);
  else if (const auto saved = Callbacks::saved_in(byte_span(callback_state_)); saved > 0 && rank == 0) say_no_callbacks(saved);
}

SKEIN_INLINE void FitState::load_together(SavedTraining& training, const std::function<void()>& load) {
  FileFailure own;
  own.note(load);
  const auto throw_own = [&] { std::rethrow_exception(own.exception); };
  constexpr const char* cannot = "cannot give its callbacks the states of the loaded training";
  own.meet([&] {
    if (training.has_servers()) {  // which are serving
      double failed[1] = {own.failed() ? 1.0 : 0.0};
      training.reduce(failed);
      if (own.failed()) throw_own();
      if (failed[0] > 0) throw CommError(text("fit: another rank {}: see its message", cannot));
      return;
    }
    (void)agree_on_failure(training, {}, own.reason, throw_own, [&](int rank, const std::string& reason) {
      return text("fit: rank {} {}: {}", rank, cannot, reason);
    });
  });
}

SKEIN_INLINE void FitState::end_without_fit(Callbacks& callbacks, SavedTraining& training) {
  const auto load = [&] {
    if (!callback_state_.empty() && callbacks.size() > 0) load_callbacks(callbacks, training.rank());
  };
  if (training.has_servers()) load();  // which do not serve now
  else load_together(training, load);
  served();
}

SKEIN_INLINE void FitState::keep_callbacks() {
  callback_failure_ = {};
  callback_failure_.note([&] {
    const std::vector<std::byte> bytes = to_bytes(*callbacks_);
    callback_state_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

SKEIN_INLINE const std::string& FitState::callback_state() {
  if (callbacks_) keep_callbacks();
  return callback_state_;
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
