// SPDX-License-Identifier: Apache-2.0
// The same training on both devices, step by step: losses, weights, state. For .cu tests.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>
#include <type_traits>
#include <vector>

#include <skein/cuda.hpp>

#include "support/larger.hpp"

namespace twins {
namespace sk = skein;

/// Samples and targets in memory of the host, made of random numbers.
template <class Model, class Loss> struct Data {
  using Scalar = typename Model::Scalar;
  static constexpr long in = sk::sample_pitch(Model::input::extents), width = Model::output_extents.count(),
                        out = sk::row_pitch(width), classes = Model::output_extents.last(), each = width / classes;
  std::vector<Scalar> x, y;
  std::vector<std::int32_t> labels;
  explicit Data(long n, std::uint64_t key = 1)
      : x(static_cast<std::size_t>(n * in)), y(static_cast<std::size_t>(n * out)), labels(static_cast<std::size_t>(n * each)) {
    for (long i = 0; i < n * each; ++i)  // of each position
      labels[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(sk::random_uniform(key, 2, static_cast<std::uint64_t>(i)) * static_cast<double>(classes));
    for (long i = 0; i < n; ++i) {
      for (long c = 0; c < Model::input::count; ++c)
        x[static_cast<std::size_t>(i * in + c)] =
            static_cast<Scalar>(sk::random_uniform(key, 0, static_cast<std::uint64_t>(i * in + c)) * 2 - 1);
      for (long c = 0; c < width; ++c)
        y[static_cast<std::size_t>(i * out + c)] =
            static_cast<Scalar>(sk::random_uniform(key, 1, static_cast<std::uint64_t>(i * out + c)) -
                                (sk::nn::ChecksTargets<Loss> ? 0.0 : 0.5));  // probabilities, where the loss takes no others
    }
  }
  sk::data::Batch<Scalar> batch(long begin, long end) const {
    sk::data::Batch<Scalar> b;
    b.x = x.data() + begin * in;
    b.pitch = in;
    b.sample = Model::input::extents;
    if constexpr (Loss::target == sk::nn::TargetKind::label) {
      b.labels = labels.data() + begin * each;
      b.labels_each = each;
    } else {
      b.targets = y.data() + begin * out;
      b.target_pitch = out;
      b.target_length = static_cast<int>(width);
    }
    b.count = b.global_count = end - begin;
    b.first = begin;
    return b;
  }
};

template <class Scalar, class Device>
std::vector<std::remove_const_t<Scalar>> values(sk::DeviceSpan<Scalar, Device> span, Device where) {
  std::vector<std::remove_const_t<Scalar>> v(span.size);
  sk::Copy<sk::Cpu, Device>::run(v.data(), span.data, span.size * sizeof(Scalar), sk::Cpu{}, where);
  return v;
}

/// Greatest difference over greatest magnitude.
template <class Scalar> double apart(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double worst = 0, size = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = support::larger(worst, static_cast<double>(a[i]) - static_cast<double>(b[i]));
    size = std::max(size, std::abs(static_cast<double>(a[i])));
  }
  return worst / size;
}

/// What a training of some steps left.
template <class Scalar> struct Trace {
  std::vector<double> losses, weights, correct, evaluations;
  std::vector<Scalar> parameters, buffers, state;
  sk::nn::LossSums totals;
  long replays = 0, graphs = 0;
  std::string note;
};

struct Plan {
  long steps = 20, batch = 6, last = 4;  ///< every fifth step has `last` samples
  int accumulate = 1;
  double clip = 0;
  bool graph = true;
  int ordinal = 0;
  bool evaluates = false;  ///< between the steps, in a larger batch
};

/// Precision: a scalar, or a Precision.
template <class Net, class Input, class Precision, class Device, class Loss, class Optimizer>
auto run(const Loss& loss, const Optimizer& optimizer, const Plan& plan, Device where = {}) {
  using Model = sk::Model<Net, Input, Device, Precision>;
  using Scalar = typename Model::Scalar;
  Model model{sk::Seed{3}, where};
  const Data<Model, Loss> data(5 * plan.batch);
  sk::train::TrainStep train_step{model, loss, optimizer, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = plan.batch, .threads = 1});
  train_step.executor().prepare(plan.batch);
  train_step.executor().prepare(plan.last);
  train_step.set_totals({});
  Trace<Scalar> t;
  if constexpr (!sk::on_host<Device>) sk::cuda::use(sk::Cuda{0});  // the model's is its own affair
  for (long s = 0; s < plan.steps; ++s) {
    sk::optim::StepOptions o;
    o.lr_factor = 1 / (1 + 0.02 * static_cast<double>(s));
    o.clip_norm = plan.clip;
    o.accumulate = s % plan.accumulate > 0;
    o.update = s % plan.accumulate + 1 == plan.accumulate;
    o.key = sk::random_key(9, static_cast<std::uint64_t>(s));
    o.graph = plan.graph;
    const long begin = s % 5 * plan.batch, count = s % 5 == 4 ? plan.last : plan.batch;
    const sk::nn::LossSums sums = train_step.step(data.batch(begin, begin + count), o);
    if (plan.evaluates && s % 3 == 1)
      t.evaluations.push_back(sk::nn::LossSums(train_step.evaluate(data.batch(0, plan.batch))).mean());
    t.losses.push_back(sums.mean());
    t.weights.push_back(sums.weight);
    t.correct.push_back(sums.correct);
  }
  t.totals = train_step.totals();
  t.parameters = values(model.parameters(), where);
  t.buffers = values(model.buffers(), where);
  for (int k = 0; k < train_step.optimizer().arrays(); ++k) {
    t.state.insert(t.state.end(), static_cast<std::size_t>(train_step.optimizer().kept().begin), 0);  // no state there is 0
    const auto v = values(train_step.optimizer().array(k), where);
    t.state.insert(t.state.end(), v.begin(), v.end());
  }
  if constexpr (!sk::on_host<Device>) {
    t.replays = train_step.device().replays();
    t.graphs = static_cast<long>(train_step.device().graphs());
    t.note = train_step.device().note();
  }
  return t;
}

/// Cpu beside Cuda, launched and replayed; the replayed one has the bits of the launched one.
template <class Net, class Input, class Scalar = float, class Loss, class Optimizer>
void agree(const Loss& loss, const Optimizer& optimizer, Plan plan = {}, double tolerance = sizeof(Scalar) == 4 ? 2e-5 : 1e-12) {
  const auto here = run<Net, Input, Scalar, sk::Cpu>(loss, optimizer, plan);
  plan.graph = false;
  const auto launched = run<Net, Input, Scalar, sk::Cuda>(loss, optimizer, plan, sk::Cuda{plan.ordinal});
  plan.graph = true;
  const auto replayed = run<Net, Input, Scalar, sk::Cuda>(loss, optimizer, plan, sk::Cuda{plan.ordinal});
  CHECK(apart(here.losses, launched.losses) < tolerance);
  CHECK(apart(here.evaluations, launched.evaluations) < tolerance);
  CHECK(here.weights == launched.weights);
  CHECK(here.correct == launched.correct);
  CHECK(apart(here.parameters, launched.parameters) < tolerance);
  CHECK(apart(here.buffers, launched.buffers) < tolerance);
  CHECK(apart(here.state, launched.state) < 10 * tolerance);
  CHECK(launched.totals.loss == Approx(here.totals.loss).epsilon(tolerance));
  CHECK(launched.totals.weight == here.totals.weight);
  CHECK(launched.totals.correct == here.totals.correct);
  CHECK(launched.replays == 0);
  INFO(replayed.note);
  CHECK(replayed.replays > plan.steps / 3);
  CHECK(replayed.losses == launched.losses);
  CHECK(replayed.evaluations == launched.evaluations);
  CHECK(replayed.parameters == launched.parameters);
  CHECK(replayed.buffers == launched.buffers);
  CHECK(replayed.state == launched.state);
  CHECK(replayed.totals.loss == launched.totals.loss);
}

}  // namespace twins
