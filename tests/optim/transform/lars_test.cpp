// SPDX-License-Identifier: Apache-2.0
// Trust ratios are of the master weights, in the precision of the parameters, whatever that of the activations: steps of LARS and
// LAMB on activations of 16 bits beside ratios computed in double. tests/train/step/transform_test.cpp trains with LARS in
// double.
#include <skein/optim/transform/lars.hpp>

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lamb.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Values = std::vector<double>;
using Net = nn::Sequential<nn::Linear<17>, nn::Tanh, nn::Linear<5>>;
template <class Precision> using Model = sk::Model<Net, sk::Shape<13>, sk::Cpu, Precision>;
constexpr long samples = 24;
constexpr double rate = 0.25;  // a power of two, exact in float

const auto& data() {
  static const auto set = [] {
    std::vector<float> x(samples * 13);
    std::vector<std::int32_t> labels(samples);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(3, 0, i) - 0.5f;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 5);
    return sk::data::from_tensors(x, sk::Extents{1, {13}}, labels);
  }();
  return set;
}
/// The values of a parameter, as doubles.
Values read(const float* arena, const sk::plan::Entry& e) {
  Values v;
  const long columns = e.extents.last();
  for (long i = 0; i < e.extents.count(); ++i)
    v.push_back(static_cast<double>(arena[e.offset + i / columns * sk::row_pitch(columns) + i % columns]));
  return v;
}
double norm(const Values& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

/// Twelve steps of `optimizer`; each parameter moves by rate * direction(number, weights, gradient, step), computed in double.
template <class Precision, class Optimizer, class Direction>
void follows_double(const Optimizer& optimizer, const Direction& direction) {
  Model<Precision> model{sk::Seed{3}}, same{sk::Seed{3}};
  sk::train::TrainStep step(model, nn::CrossEntropy{}, optimizer, sk::parallel::SingleProcess{});
  step.reserve({.capacity = samples, .threads = 1});
  if constexpr (Model<Precision>::scales_loss) step.set_loss_scaling(optim::LossScaling::fixed(256));
  sk::Executor executor{same, nn::CrossEntropy{}, {.capacity = samples, .threads = 1}};
  sk::data::Loader<float> loader(data(), {.batch = samples, .shuffle = false});
  const auto parameters = Model<Precision>::program.parameters();
  double moved = 0;
  for (int t = 1; t <= 12; ++t)
    for (const auto& batch : loader.epoch(0)) {
      {
        const auto lease = same.modify();
        std::copy(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end(), lease.data());
      }
      executor.forward_backward(batch, {.scale = (Model<Precision>::scales_loss ? 256.0 : 1.0) / samples});
      std::vector<Values> before, directions;
      for (std::size_t k = 0; k < parameters.size(); ++k) {
        before.push_back(read(std::as_const(model).parameters().data, parameters[k]));
        Values gradient = read(same.gradients().data, parameters[k]);
        if constexpr (Model<Precision>::scales_loss)
          for (double& g : gradient) g /= 256;
        directions.push_back(direction(k, before.back(), gradient, t));
      }
      step.step(batch);
      for (std::size_t k = 0; k < parameters.size(); ++k) {
        const Values after = read(std::as_const(model).parameters().data, parameters[k]);
        const double size = norm(directions[k]) / std::sqrt(static_cast<double>(after.size()));
        for (std::size_t i = 0; i < after.size(); ++i) {
          const double ours = (before[k][i] - after[i]) / rate;
          moved = std::max(moved, std::abs(ours));
          // What a float of the weight's size may round away of the step, and a few roundings of the step itself.
          REQUIRE(ours == Approx(directions[k][i]).epsilon(1e-5).margin(2e-6 * size + 3e-7 * std::abs(before[k][i]) / rate));
        }
      }
    }
  CHECK(moved > 1e-3);
}
}  // namespace

TEMPLATE_TEST_CASE("LARS and LAMB on activations of 16 bits: the ratios are those of the master weights in double", "[optim]",
                   sk::precision::bf16, sk::precision::fp16, sk::precision::fp32) {
  const auto plain = optim::Sgd{.lr = static_cast<float>(rate)};
  const double decay = static_cast<double>(0.01f);
  const auto& program = Model<TestType>::program;
  follows_double<TestType>(optim::chain(optim::Lars{.trust = 0.125f, .weight_decay = 0.01f}, plain),
                           [&](std::size_t, const Values& w, const Values& g, int) {
                             const double of_w = norm(w), of_g = norm(g);
                             const double ratio = of_w > 0 && of_g > 0 ? 0.125 * of_w / (of_g + decay * of_w) : 1;
                             Values d(g.size());
                             for (std::size_t i = 0; i < d.size(); ++i)
                               d[i] = ratio * (g[i] + (of_w > 0 && of_g > 0 ? decay * w[i] : 0));
                             return d;
                           });
  std::vector<Values> m(program.parameters().size()), v = m;
  follows_double<TestType>(optim::chain(optim::Lamb{.epsilon = 1e-3, .weight_decay = 0.01f}, plain),
                           [&](std::size_t k, const Values& w, const Values& g, int t) {
                             m[k].resize(g.size());
                             v[k].resize(g.size());
                             Values r(g.size());
                             for (std::size_t i = 0; i < r.size(); ++i) {
                               m[k][i] = 0.9 * m[k][i] + 0.1 * g[i];
                               v[k][i] = 0.999 * v[k][i] + 0.001 * g[i] * g[i];
                               r[i] = m[k][i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[k][i] / (1 - std::pow(0.999, t))) + 1e-3) +
                                      decay * w[i];
                             }
                             const double ratio = norm(w) > 0 && norm(r) > 0 ? norm(w) / norm(r) : 1;
                             for (double& x : r) x *= ratio;
                             return r;
                           });
}
