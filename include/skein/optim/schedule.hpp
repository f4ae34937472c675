// SPDX-License-Identifier: Apache-2.0
// Schedules of the learning rate: pure functions from the step (0 is the first) to a factor of the optimizer's lr. Small
// values that compose, `warmup(epochs(1)) * cosine()` or `then(warmup(500), 500, cosine(9500))`; Schedule holds any of them
// without memory of its own. A length is a number of steps, epochs(3), or share(0.1) of the whole fit; the trainer says what that
// is in steps. Formulas as in torch.optim.lr_scheduler (its closed forms).
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

#include "schedule_length.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Any function object from the step to a factor.
template <class F> concept ScheduleFunction = std::copy_constructible<F> && requires(const F& f, std::int64_t step) {
  { f(step) } -> std::convertible_to<float>;
};

class Schedule;

namespace schedules {
/// Base of the library's own schedules: what makes `*` find them. One with lengths has each_length(visit) of its own.
struct Composable {
  template <class Visit> void each_length(const Visit&) {}
};

/// The base of a schedule of type Own: cosine().bound({.steps = 1000, .steps_per_epoch = 100}) has its lengths in steps.
template <class Own> struct ComposableOf : Composable { Schedule bound(const FitLength& fit) const; };

/// Calls visit(length) for the lengths of a schedule. A function of the user's has none.
template <class F, class Visit> void visit_lengths(F&, const Visit&) {}
template <std::derived_from<Composable> F, class Visit> void visit_lengths(F& function, const Visit& visit) {
  function.each_length(visit);
}
/// The lengths of F become steps of this fit.
template <class F> void bind(F& function, const FitLength& fit) {
  visit_lengths(function, [&](Length& length) { length = length.bound(fit); });
}
/// Whether F has a length that is no number of steps yet.
template <class F> bool wants_lengths(F function) {
  bool wants = false;
  visit_lengths(function, [&](const Length& length) { wants = wants || !length.known(); });
  return wants;
}

/// The same factor for ever.
struct Constant : ComposableOf<Constant> {
  double factor = 1;
  float operator()(std::int64_t) const { return static_cast<float>(factor); }
};
/// Times `gamma` after every `every` steps.
struct Step : ComposableOf<Step> {
  Length every = 1;
  double gamma = 0.1;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) { visit(every); }
};
/// Times `gamma` at each of up to 8 milestones, which are numbers of steps.
struct MultiStep : ComposableOf<MultiStep> {
  std::array<Length, 8> milestones{1, 1, 1, 1, 1, 1, 1, 1};
  int count = 0;
  double gamma = 0.1;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) {
    for (int i = 0; i < count; ++i) visit(milestones[static_cast<std::size_t>(i)]);
  }
};
/// Times `gamma` after every step: what it counts is steps.
struct Exponential : ComposableOf<Exponential> {
  double gamma = 1;
  Length every = 1;
  float operator()(std::int64_t step) const { return static_cast<float>(std::pow(gamma, static_cast<double>(step))); }
  template <class Visit> void each_length(const Visit& visit) { visit(every); }
};
/// From 1 to `floor` in half a cosine over `steps`; then `floor`.
struct Cosine : ComposableOf<Cosine> {
  Length steps = 1;
  double floor = 0;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) { visit(steps); }
};
/// From `from` to `to` in a straight line over `steps`; then `to`.
struct Linear : ComposableOf<Linear> {
  double from = 0, to = 1;
  Length steps = 1;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) { visit(steps); }
};
/// (1 - step / steps) to a power; then 0.
struct Polynomial : ComposableOf<Polynomial> {
  Length steps = 1;
  double power = 1;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) { visit(steps); }
};
/// A linear warm-up: 1/steps in the first step, 1 from the last one on.
struct Warmup : ComposableOf<Warmup> {
  Length steps = 1;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) { visit(steps); }
};
/// Up from `start` to 1 in the first `rise` of the steps, and down to `end`, along half cosines.
struct OneCycle : ComposableOf<OneCycle> {
  Length steps = whole_fit;
  double rise = 0.3, start = 1 / 25.0, end = 1 / 25e4;
  float operator()(std::int64_t step) const;
  template <class Visit> void each_length(const Visit& visit) { visit(steps); }
};
/// The product of two schedules.
template <class A, class B> struct Product : ComposableOf<Product<A, B>> {
  A a;
  B b;
  float operator()(std::int64_t step) const { return a(step) * b(step); }
  template <class Visit> void each_length(const Visit& visit) {
    visit_lengths(a, visit);
    visit_lengths(b, visit);
  }
};
/// `first` for so many steps, then `next`, which counts from 0 again; the whole fit is for it what is left.
template <class A, class B> struct Then : ComposableOf<Then<A, B>> {
  A first;
  Length steps = 1;
  B next;
  float operator()(std::int64_t step) const {
    const std::int64_t n = static_cast<std::int64_t>(steps.steps());
    return step < n ? static_cast<float>(first(step)) : static_cast<float>(next(step - n));
  }
  template <class Visit> void each_length(const Visit& visit) {
    visit(steps);
    visit_lengths(first, visit);
    visit_lengths(next, visit);
  }
};
/// Throws ArgumentError where the first part of a Then, of so many steps, leaves nothing of a fit to the second.
void demand_second_part(const Length& first, const FitLength& fit);
/// Turns the lengths of a Then into steps of this fit; for `next` the fit is what `first` leaves of it.
template <class A, class B> void bind(Then<A, B>& function, const FitLength& fit) {
  function.steps = function.steps.bound(fit);
  demand_second_part(function.steps, fit);
  bind(function.first, fit);
  const std::int64_t left = fit.steps - static_cast<std::int64_t>(function.steps.steps());
  bind(function.next, FitLength{std::max<std::int64_t>(1, left), fit.steps_per_epoch, fit.refuses_longer});
}
template <class A, class B> void bind(Product<A, B>& function, const FitLength& fit) {
  bind(function.a, fit);
  bind(function.b, fit);
}

/// F has a factor for every step. A function of the user's may have them for the steps of its fit alone, as a table has.
template <class F> inline constexpr bool has_all_steps = std::derived_from<F, Composable>;
// clang-format off
template <class A, class B> inline constexpr bool has_all_steps<Then<A, B>> = has_all_steps<A> && has_all_steps<B>;
template <class A, class B> inline constexpr bool has_all_steps<Product<A, B>> = has_all_steps<A> && has_all_steps<B>;
// clang-format on

/// F counts steps: a length of it is a number of these, or it has none, as a function of the user's. Else all its lengths are in
/// epochs or shares of the fit.
template <class F> bool counts_steps(F function) {
  bool counts = !has_all_steps<F>;
  visit_lengths(function, [&](const Length& length) { counts = counts || length.known(); });
  return counts;
}

/// Throws ArgumentError, with the schedule's name, where a length is not positive, or infinite.
void demand_steps(const char* name, const Length& length);
/// Throws ArgumentError where a number of that name would make the schedule's factors negative, or no finite ones.
void demand_factor(const char* schedule, const char* name, double factor);

/// The product of two schedules.
template <class A, class B>
requires std::derived_from<A, Composable> && std::derived_from<B, Composable> Product<A, B>
operator*(A a, B b) { return {{}, a, b}; }
}  // namespace schedules

/// The same factor always.
schedules::Constant constant(double factor);
/// gamma^(step / every), in whole periods. PyTorch's StepLR.
schedules::Step step(Length every, double gamma = 0.1);
/// gamma for each milestone that is reached; at most eight. PyTorch's MultiStepLR.
schedules::MultiStep multi_step(std::initializer_list<Length> milestones, double gamma = 0.1);
/// gamma^step. PyTorch's ExponentialLR.
schedules::Exponential exponential(double gamma);
/// From 1 down to `floor` along half a cosine, over the whole fit as it comes, and `floor` after. PyTorch's CosineAnnealingLR
/// until its T_max.
schedules::Cosine cosine(Length steps = whole_fit, double floor = 0);
/// From one factor to another along a line, and the second after. PyTorch's LinearLR.
schedules::Linear linear(double from, double to, Length steps = whole_fit);
/// From 1 to 0 as (1 - step / steps)^power, and 0 after. PyTorch's PolynomialLR.
schedules::Polynomial polynomial(Length steps = whole_fit, double power = 1);
/// Linear warm-up: 1/steps in the first step, 2/steps in the second, 1 from the last one on.
schedules::Warmup warmup(Length steps);
/// What Smith and Topin call one cycle (arXiv:1708.07120), over the whole fit as it comes: from `start` up to 1 in the first
/// `rise` of the steps, then down to `end`. PyTorch's OneCycleLR with max_lr the optimizer's lr; momentum stays as it is. A cycle
/// of one step is 1 there (PyTorch's is `end`).
schedules::OneCycle one_cycle(Length steps = whole_fit, double rise = 0.3, double start = 1 / 25.0, double end = 1 / 25e4);
/// The linear scaling rule: lr * ranks, reached from lr in `warmup_steps` (0: at once), which a fit refuses where it is shorter.
/// Goyal et al., arXiv:1706.02677.
schedules::Linear linear_scaling(int ranks, std::int64_t warmup_steps = 0);
/// `first` for so many steps, then `next` from its own step 0 on. A fit that ends before `next` begins refuses it. PyTorch's
/// SequentialLR.
template <ScheduleFunction A, ScheduleFunction B> schedules::Then<A, B> then(A first, Length steps, B next) {
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
    has_all_steps_ = schedules::has_all_steps<F>;
    counts_steps_ = schedules::counts_steps(function);
    call_ = [](const void* f, std::int64_t step) { return static_cast<float>((*static_cast<const F*>(f))(step)); };
    if constexpr (std::derived_from<F, schedules::Composable>) {
      bind_ = [](void* f, const FitLength& fit) { schedules::bind(*static_cast<F*>(f), fit); };
      wants_ = [](const void* f) { return schedules::wants_lengths(*static_cast<const F*>(f)); };
    }
  }
  /// The same schedule with its lengths, which are in epochs or shares of the fit, in steps: what Trainer::fit calls.
  Schedule bound(const FitLength& fit) const;
  /// Whether it has such lengths.
  bool wants_lengths() const { return wants_ && wants_(storage_); }
  /// Whether it has a factor for every step: it is made of the library's schedules alone.
  bool has_all_steps() const { return has_all_steps_; }
  /// Whether a part of it counts steps: was made with a number of steps, or with no length, as exponential() and a function of
  /// the user's. Else its lengths were given in epochs or shares of the fit.
  bool counts_steps() const { return counts_steps_; }
  /// The factor of lr in this step; 0 is the first.
  float operator()(std::int64_t step) const { return call_(storage_, step); }

 private:
  alignas(16) unsigned char storage_[256] = {};
  float (*call_)(const void*, std::int64_t) = nullptr;
  void (*bind_)(void*, const FitLength&) = nullptr;  // null: it has no lengths
  bool (*wants_)(const void*) = nullptr;
  bool has_all_steps_ = false, counts_steps_ = false;
};

template <class Own> Schedule schedules::ComposableOf<Own>::bound(const FitLength& fit) const {
  return Schedule(static_cast<const Own&>(*this)).bound(fit);
}

}  // namespace skein::inline SKEIN_ABI::optim

#if !SKEIN_COMPILED
#include "schedule.ipp"
#endif
