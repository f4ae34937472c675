// SPDX-License-Identifier: Apache-2.0
// Schedules of the learning rate: pure functions from the step (0 is the first) to a factor of the optimizer's lr. Small
// values that compose, `warmup(500) * cosine(10000)` or `then(warmup(500), 500, cosine(9500))`; Schedule holds any of them
// without memory of its own. Formulas as in torch.optim.lr_scheduler (its closed forms).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Any function object from the step to a factor.
template <class F> concept ScheduleFunction = std::copy_constructible<F> && requires(const F& f, std::int64_t step) {
  { f(step) } -> std::convertible_to<float>;
};

namespace schedules {
/// Base of the library's own schedules: what makes `*` find them.
struct Composable {};

/// The same factor for ever.
struct Constant : Composable {
  double factor = 1;
  float operator()(std::int64_t) const { return static_cast<float>(factor); }
};
/// Times `gamma` after every `every` steps.
struct Step : Composable {
  std::int64_t every = 1;
  double gamma = 0.1;
  float operator()(std::int64_t step) const { return static_cast<float>(std::pow(gamma, static_cast<double>(step / every))); }
};
/// Times `gamma` at each of up to 8 milestones, which are numbers of steps.
struct MultiStep : Composable {
  std::array<std::int64_t, 8> milestones{};
  int count = 0;
  double gamma = 0.1;
  float operator()(std::int64_t step) const;
};
/// Times `gamma` after every step.
struct Exponential : Composable {
  double gamma = 1;
  float operator()(std::int64_t step) const { return static_cast<float>(std::pow(gamma, static_cast<double>(step))); }
};
/// From 1 to `floor` in half a cosine over `steps`; then `floor`.
struct Cosine : Composable {
  std::int64_t steps = 1;
  double floor = 0;
  float operator()(std::int64_t step) const;
};
/// From `from` to `to` in a straight line over `steps`; then `to`.
struct Linear : Composable {
  double from = 0, to = 1;
  std::int64_t steps = 1;
  float operator()(std::int64_t step) const;
};
/// (1 - step / steps) to a power; then 0.
struct Polynomial : Composable {
  std::int64_t steps = 1;
  double power = 1;
  float operator()(std::int64_t step) const;
};
/// The product of two schedules.
template <class A, class B> struct Product : Composable {
  A a;
  B b;
  float operator()(std::int64_t step) const { return a(step) * b(step); }
};
/// `first` for so many steps, then `next`, which counts from 0 again.
template <class A, class B> struct Then : Composable {
  A first;
  std::int64_t steps = 0;
  B next;
  float operator()(std::int64_t step) const { return step < steps ? first(step) : next(step - steps); }
};

/// Throws ArgumentError, with the schedule's name, where a number of steps is not positive.
void demand_steps(const char* name, std::int64_t steps);

/// The product of two schedules.
template <class A, class B>
requires std::derived_from<A, Composable> && std::derived_from<B, Composable> Product<A, B>
operator*(A a, B b) { return {{}, a, b}; }
}  // namespace schedules

/// The same factor always.
inline schedules::Constant constant(double factor) { return {{}, factor}; }
/// gamma^(step / every), in whole periods. PyTorch's StepLR.
schedules::Step step(std::int64_t every, double gamma = 0.1);
/// gamma for each milestone that is reached; at most eight. PyTorch's MultiStepLR.
schedules::MultiStep multi_step(std::initializer_list<std::int64_t> milestones, double gamma = 0.1);
/// gamma^step. PyTorch's ExponentialLR.
inline schedules::Exponential exponential(double gamma) { return {{}, gamma}; }
/// From 1 down to `floor` along half a cosine, and `floor` after. PyTorch's CosineAnnealingLR until its T_max.
schedules::Cosine cosine(std::int64_t steps, double floor = 0);
/// From one factor to another along a line, and the second after. PyTorch's LinearLR.
schedules::Linear linear(double from, double to, std::int64_t steps);
/// From 1 to 0 as (1 - step / steps)^power, and 0 after. PyTorch's PolynomialLR.
schedules::Polynomial polynomial(std::int64_t steps, double power = 1);
/// Linear warm-up: 1/steps in the first step, 2/steps in the second, 1 from the last one on.
schedules::Linear warmup(std::int64_t steps);
/// The linear scaling rule: lr * ranks, reached from lr in `warmup_steps` (0: at once). Goyal et al., arXiv:1706.02677.
schedules::Linear linear_scaling(int ranks, std::int64_t warmup_steps = 0);
/// `first` for so many steps, then `next` from its own step 0 on. PyTorch's SequentialLR.
template <ScheduleFunction A, ScheduleFunction B> schedules::Then<A, B> then(A first, std::int64_t steps, B next) {
  schedules::demand_steps("then", steps);
  return {{}, first, steps, next};
}

/// Any schedule as one type, kept inside the object: a call allocates nothing. The default is the factor 1.
class Schedule {
 public:
  Schedule() : Schedule(constant(1)) {}
  template <class F>
  requires(!std::same_as<F, Schedule>) && ScheduleFunction<F>  // in this order: the concept asks for a copy of F
      Schedule(F function) {
    static_assert(sizeof(F) <= sizeof(storage_) && std::is_trivially_copyable_v<F>,
                  "a schedule is a small trivially copyable function of the step (at most 256 bytes): keep large tables "
                  "outside and capture a pointer");
    new (storage_) F(function);
    call_ = [](const void* f, std::int64_t step) { return static_cast<float>((*static_cast<const F*>(f))(step)); };
  }
  /// The factor of lr in this step; 0 is the first.
  float operator()(std::int64_t step) const { return call_(storage_, step); }

 private:
  alignas(16) unsigned char storage_[256] = {};
  float (*call_)(const void*, std::int64_t) = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::optim

#if !SKEIN_COMPILED
#include "schedule.ipp"
#endif
