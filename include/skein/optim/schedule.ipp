// SPDX-License-Identifier: Apache-2.0
// The bodies of schedule.hpp.
#pragma once
#include "schedule.hpp"

namespace skein::inline SKEIN_ABI::optim::schedules {

SKEIN_INLINE float MultiStep::operator()(std::int64_t step) const {
  int passed = 0;
  for (int i = 0; i < count; ++i) passed += step >= milestones[static_cast<std::size_t>(i)];
  return static_cast<float>(std::pow(gamma, passed));
}

SKEIN_INLINE float Cosine::operator()(std::int64_t step) const {
  const double t = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return static_cast<float>(floor + (1 - floor) * (1 + std::cos(3.141592653589793 * t)) / 2);
}

SKEIN_INLINE float Linear::operator()(std::int64_t step) const {
  return static_cast<float>(from + (to - from) * static_cast<double>(std::min(step, steps)) / static_cast<double>(steps));
}

SKEIN_INLINE float Polynomial::operator()(std::int64_t step) const {
  return static_cast<float>(std::pow(1 - static_cast<double>(std::min(step, steps)) / static_cast<double>(steps), power));
}

SKEIN_INLINE void demand_steps(const char* name, std::int64_t steps) {
  if (steps <= 0) throw ArgumentError(std::string(name) + ": " + std::to_string(steps) + " steps; it takes a positive number");
}

}  // namespace skein::inline SKEIN_ABI::optim::schedules

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE schedules::Step step(std::int64_t every, double gamma) {
  schedules::demand_steps("step", every);
  return {{}, every, gamma};
}

SKEIN_INLINE schedules::MultiStep multi_step(std::initializer_list<std::int64_t> milestones, double gamma) {
  schedules::MultiStep s;
  if (milestones.size() > s.milestones.size())
    throw ArgumentError("multi_step has " + std::to_string(milestones.size()) + " milestones; it takes at most " +
                        std::to_string(s.milestones.size()) + ": multiply two of them");
  std::copy(milestones.begin(), milestones.end(), s.milestones.begin());
  s.count = static_cast<int>(milestones.size());
  s.gamma = gamma;
  return s;
}

SKEIN_INLINE schedules::Cosine cosine(std::int64_t steps, double floor) {
  schedules::demand_steps("cosine", steps);
  return {{}, steps, floor};
}

SKEIN_INLINE schedules::Linear linear(double from, double to, std::int64_t steps) {
  schedules::demand_steps("linear", steps);
  return {{}, from, to, steps};
}

SKEIN_INLINE schedules::Polynomial polynomial(std::int64_t steps, double power) {
  schedules::demand_steps("polynomial", steps);
  return {{}, steps, power};
}

SKEIN_INLINE schedules::Linear warmup(std::int64_t steps) {
  schedules::demand_steps("warmup", steps);
  if (steps == 1) return {{}, 1, 1, 1};
  return {{}, 1.0 / static_cast<double>(steps), 1, steps - 1};
}

SKEIN_INLINE schedules::Linear linear_scaling(int ranks, std::int64_t warmup_steps) {
  if (ranks < 1) throw ArgumentError("linear_scaling(" + std::to_string(ranks) + "): there is at least one rank");
  return {{}, warmup_steps > 0 ? 1.0 : ranks, static_cast<double>(ranks), warmup_steps > 0 ? warmup_steps : 1};
}

}  // namespace skein::inline SKEIN_ABI::optim
