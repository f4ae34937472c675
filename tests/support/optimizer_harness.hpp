// SPDX-License-Identifier: Apache-2.0
// Runs an optimizer over a small arena with gaps, in one pass or cut into ranges, with one worker's gradients or several.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <skein/core/shape.hpp>
#include <skein/optim/optimizer.hpp>

#include "apart.hpp"

namespace test {

/// 21 parameters in a row of 32, then 3 in a row of 3: whole vectors, a gap, and a part of a vector.
template <class Scalar, class Optimizer> class OptimizerRun {
 public:
  static constexpr long logical = 24, stored = 35;

  explicit OptimizerRun(Optimizer optimizer) : optimizer_(std::move(optimizer)) {
    optimizer_.check();
    const std::vector<double> start = wave(21, 0.37), more = wave(3, 0.6);
    for (long i = 0; i < 21; ++i) parameters[at(i)] = static_cast<Scalar>(start[static_cast<std::size_t>(i)]);
    for (long i = 0; i < 3; ++i) parameters[at(21 + i)] = static_cast<Scalar>(more[static_cast<std::size_t>(i)]);
    state.assign(static_cast<std::size_t>(optimizer_.state_arrays()), std::vector<Scalar>(stored, Scalar(0)));
  }
  static std::size_t at(long i) { return static_cast<std::size_t>(i < 21 ? i : i + 11); }

  /// Step t (from 1) on the fixture's gradients; `cuts`: where the arena is divided; `workers`: over how many gradients they are
  /// spread; `times`: a factor of the gradients, which a power of two keeps exact.
  void step(std::int64_t t, std::vector<long> cuts = {}, int workers = 1, double scale = 1, double times = 1) {
    step(t, std::move(cuts), workers, scale, times, [](const auto& call, const Optimizer& o) { skein::optim::apply(o, call); });
  }
  /// The same with apply(call, optimizer) in the place of the library's.
  template <class Apply>
  void step(std::int64_t t, std::vector<long> cuts, int workers, double scale, double times, const Apply& apply) {
    const std::vector<double> g = wave(21, 0.1 * static_cast<double>(t), 0.2, 0.5),
                              more = wave(3, 0.3 * static_cast<double>(t), 0.1);
    std::vector<std::vector<Scalar>> gradients(static_cast<std::size_t>(workers), std::vector<Scalar>(stored, Scalar(0)));
    for (long i = 0; i < logical; ++i)  // exact halves and quarters, so that the sum does not round
      for (int w = 0; w < workers; ++w)
        gradients[static_cast<std::size_t>(w)][at(i)] =
            static_cast<Scalar>(i < 21 ? g[static_cast<std::size_t>(i)] : more[static_cast<std::size_t>(i - 21)]) *
            static_cast<Scalar>(times) / static_cast<Scalar>(workers);
    std::vector<const Scalar*> from;
    for (const auto& one : gradients) from.push_back(one.data());
    std::vector<Scalar*> to;
    for (auto& one : state) to.push_back(one.data());
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(stored);
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      skein::optim::UpdateCall<Scalar, skein::Cpu> call;
      call.parameters = parameters.data();
      call.gradients = from.data();
      call.gradient_count = workers;
      call.gradient_scale = static_cast<Scalar>(scale);
      call.state = to.data();
      call.begin = cuts[c];
      call.end = cuts[c + 1];
      call.step = t;
      call.lr = optimizer_.lr;
      call.weight_decay = skein::optim::weight_decay_of(optimizer_);
      apply(call, optimizer_);
    }
  }
  std::vector<double> first21() const { return {parameters.begin(), parameters.begin() + 21}; }
  bool gaps_are_zero() const {
    for (std::size_t i = 21; i < 32; ++i) {
      if (parameters[i] != 0) return false;
      for (const auto& one : state)
        if (one[i] != 0) return false;
    }
    return true;
  }

  std::vector<Scalar> parameters = std::vector<Scalar>(stored, Scalar(0));
  std::vector<std::vector<Scalar>> state;

 private:
  Optimizer optimizer_;
};

/// PyTorch's parameters after one step and after a hundred, on the same gradients.
template <class Optimizer>
void matches_trajectory(const Optimizer& optimizer, const std::vector<double>& one, const std::vector<double>& hundred) {
  OptimizerRun<float, Optimizer> run(optimizer);
  run.step(1);
  const std::vector<double> first = run.first21();
  for (std::size_t i = 0; i < 21; ++i) CHECK(std::abs(first[i] - one[i]) <= 1e-6 * std::max(1.0, std::abs(one[i])));
  for (int t = 2; t <= 100; ++t) run.step(t);
  const std::vector<double> last = run.first21();
  for (std::size_t i = 0; i < 21; ++i) CHECK(std::abs(last[i] - hundred[i]) <= 1e-4 * std::max(1.0, std::abs(hundred[i])));
  CHECK(run.gaps_are_zero());
}

/// The laws of a pass: any cut gives the same bits; gradients of workers add up; the scale is a factor of the gradient; gaps
/// stay zero; double agrees with float.
template <class Optimizer> void keeps_the_laws(const Optimizer& optimizer) {
  OptimizerRun<float, Optimizer> whole(optimizer), cut(optimizer), two(optimizer), four(optimizer), scaled(optimizer);
  OptimizerRun<double, Optimizer> exact(optimizer), doubled(optimizer);
  for (int t = 1; t <= 20; ++t) {
    whole.step(t);
    cut.step(t, {1, 7, 16, 20, 33});
    two.step(t, {}, 2);
    four.step(t, {16}, 4);
    scaled.step(t, {16}, 2, 0.25, 4);
    exact.step(t);
    doubled.step(t, {5}, 3);
  }
  CHECK(whole.parameters == cut.parameters);
  CHECK(whole.state == cut.state);
  CHECK(whole.parameters == two.parameters);
  CHECK(whole.parameters == four.parameters);
  CHECK(whole.state == four.state);
  CHECK(whole.parameters == scaled.parameters);
  CHECK(whole.state == scaled.state);
  for (const std::vector<float>& array : whole.state)
    CHECK(std::any_of(array.begin(), array.end(), [](float x) { return x != 0; }));
  for (const auto* run : {&whole, &cut, &two, &four, &scaled}) CHECK(run->gaps_are_zero());
  CHECK(exact.gaps_are_zero());
  CHECK(doubled.gaps_are_zero());
  CHECK(first_apart<float>(whole.parameters, exact.parameters, 4096) == -1);
  CHECK(first_apart<double>(exact.parameters, doubled.parameters, 4096) == -1);
}

/// Does the option matter? Two optimizers must part after five steps.
template <class A, class B> bool differ(const A& a, const B& b) {
  OptimizerRun<double, A> one(a);
  OptimizerRun<double, B> other(b);
  for (int t = 1; t <= 5; ++t) {
    one.step(t);
    other.step(t);
  }
  return first_apart<float>(one.parameters, other.parameters, 8) >= 0;
}

}  // namespace test
