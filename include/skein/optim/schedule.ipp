// SPDX-License-Identifier: Apache-2.0
// The bodies of schedule.hpp.
#pragma once
#include "../core/text.hpp"
#include "schedule.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE Schedule Schedule::bound(const FitLength& fit) const {
  Schedule same = *this;
  if (bind_) bind_(same.storage_, fit);
  return same;
}

}  // namespace skein::inline SKEIN_ABI::optim

namespace skein::inline SKEIN_ABI::optim::schedules {

namespace detail {
/// How much of a length has gone, in [0, 1].
inline double gone(std::int64_t step, const Length& length) { return std::min(1.0, static_cast<double>(step) / length.steps()); }
/// From `from` to `to` along half a cosine.
inline double along_cosine(double from, double to, double t) {
  return to + (from - to) * (1 + std::cos(3.141592653589793 * t)) / 2;
}
}  // namespace detail

SKEIN_INLINE float Step::operator()(std::int64_t step) const {
  return static_cast<float>(std::pow(gamma, static_cast<double>(step / static_cast<std::int64_t>(every.steps()))));
}

SKEIN_INLINE float Warmup::operator()(std::int64_t step) const {
  return static_cast<float>(std::min(1.0, static_cast<double>(step + 1) / steps.steps()));
}

SKEIN_INLINE float OneCycle::operator()(std::int64_t step) const {
  const double last = steps.steps() - 1, top = rise * steps.steps() - 1, at = static_cast<double>(step);
  if (last < 1) return static_cast<float>(at > 0 ? end : 1);
  if (at <= top) return static_cast<float>(detail::along_cosine(start, 1, top > 0 ? at / top : 1));
  return static_cast<float>(detail::along_cosine(1, end, std::min(1.0, (at - top) / std::max(1e-9, last - top))));
}

SKEIN_INLINE float MultiStep::operator()(std::int64_t step) const {
  int passed = 0;
  for (int i = 0; i < count; ++i) passed += static_cast<double>(step) >= milestones[static_cast<std::size_t>(i)].steps();
  return static_cast<float>(std::pow(gamma, passed));
}

SKEIN_INLINE float Cosine::operator()(std::int64_t step) const {
  return static_cast<float>(detail::along_cosine(1, floor, detail::gone(step, steps)));
}

SKEIN_INLINE float Linear::operator()(std::int64_t step) const {
  return static_cast<float>(from + (to - from) * detail::gone(step, steps));
}

SKEIN_INLINE float Polynomial::operator()(std::int64_t step) const {
  return static_cast<float>(std::pow(1 - detail::gone(step, steps), power));
}

SKEIN_INLINE void demand_steps(const char* name, const Length& length) {
  if (length.known() && length.value() < 1)
    throw ArgumentError(text("{}: {} steps; it takes a positive number", name, static_cast<std::int64_t>(length.value())));
  if (!(length.value() > 0) || std::isinf(length.value()))
    throw ArgumentError(text("{}: {} epochs, or of the fit; it takes a positive number, and a finite one", name, length.value()));
}

/// In a fit of one step that one is any share of it, at least.
SKEIN_INLINE void demand_second_part(const Length& first, const FitLength& fit) {
  const auto steps = static_cast<std::int64_t>(first.steps());
  if (!fit.refuses_longer || fit.steps < 1 || steps < std::max<std::int64_t>(2, fit.steps)) return;
  throw ArgumentError(
      text("then: the first part has {} steps, and the fit has {} for both: the second would never come; give the first fewer "
           "steps, or the fit more .epochs",
           steps, fit.steps));
}

SKEIN_INLINE void demand_factor(const char* schedule, const char* name, double factor) {
  if (factor >= 0 && factor <= 3.4e38) return;
  throw ArgumentError(
      text("{}: {} is {}: the rate would be negative, or no finite number; give 0 or more", schedule, name, factor));
}

}  // namespace skein::inline SKEIN_ABI::optim::schedules

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE schedules::Constant constant(double factor) {
  schedules::demand_factor("constant", "the factor", factor);
  return {{}, factor};
}

SKEIN_INLINE schedules::Step step(Length every, double gamma) {
  schedules::demand_steps("step", every);
  schedules::demand_factor("step", "gamma", gamma);
  return {{}, every, gamma};
}

SKEIN_INLINE schedules::MultiStep multi_step(std::initializer_list<Length> milestones, double gamma) {
  schedules::demand_factor("multi_step", "gamma", gamma);
  schedules::MultiStep s;
  if (milestones.size() > s.milestones.size())
    throw ArgumentError(
        text("multi_step has {} milestones; it takes at most {}: multiply two of them", milestones.size(), s.milestones.size()));
  for (const Length& milestone : milestones) schedules::demand_steps("multi_step", milestone);
  std::copy(milestones.begin(), milestones.end(), s.milestones.begin());
  s.count = static_cast<int>(milestones.size());
  s.gamma = gamma;
  return s;
}

SKEIN_INLINE schedules::Exponential exponential(double gamma) {
  schedules::demand_factor("exponential", "gamma", gamma);
  return {{}, gamma};
}

SKEIN_INLINE schedules::Cosine cosine(Length steps, double floor) {
  schedules::demand_steps("cosine", steps);
  schedules::demand_factor("cosine", "floor", floor);
  return {{}, steps, floor};
}

SKEIN_INLINE schedules::Linear linear(double from, double to, Length steps) {
  schedules::demand_steps("linear", steps);
  schedules::demand_factor("linear", "from", from);
  schedules::demand_factor("linear", "to", to);
  return {{}, from, to, steps};
}

SKEIN_INLINE schedules::Polynomial polynomial(Length steps, double power) {
  schedules::demand_steps("polynomial", steps);
  schedules::demand_factor("polynomial", "power", power);
  return {{}, steps, power};
}

SKEIN_INLINE schedules::Warmup warmup(Length steps) {
  schedules::demand_steps("warmup", steps);
  return {{}, steps.of_warmup()};
}

SKEIN_INLINE schedules::OneCycle one_cycle(Length steps, double rise, double start, double end) {
  schedules::demand_steps("one_cycle", steps);
  schedules::demand_factor("one_cycle", "start", start);
  schedules::demand_factor("one_cycle", "end", end);
  if (!(rise > 0 && rise < 1))
    throw ArgumentError("one_cycle: the share of the steps in which the rate rises is between 0 and 1");
  return {{}, steps, rise, start, end};
}

SKEIN_INLINE schedules::Linear linear_scaling(int ranks, std::int64_t warmup_steps) {
  if (ranks < 1) throw ArgumentError(text("linear_scaling({}): there is at least one rank", ranks));
  if (warmup_steps < 0)
    throw ArgumentError(text("linear_scaling: a warm-up of {} steps; give 0 or more, 0: the whole rate at once", warmup_steps));
  const Length steps = std::max<std::int64_t>(1, warmup_steps);
  return {{}, warmup_steps > 0 ? 1.0 : ranks, static_cast<double>(ranks), ranks > 1 ? steps.of_warmup() : steps};
}

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
