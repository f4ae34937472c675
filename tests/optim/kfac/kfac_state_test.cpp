// SPDX-License-Identifier: Apache-2.0
// KfacState by itself: the pi correction, the sentence for a factor without an inverse, factors of windows wider than one
// position along one and three dimensions, and Kfac in front of other optimizers than Sgd.
#include <skein/optim/kfac/kfac_state.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lamb.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/train/train_step.hpp>

#include "../../support/naive_curvature.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Values = std::vector<double>;

// ---- one Linear layer, whose factors are given
using OneLayer = sk::Model<nn::Linear<3>, sk::Shape<4>, sk::Cpu, double>;
constexpr long a = 5, g = 3;  // the bias is the fifth row

Values factor(long n, double size) {
  Values m;
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j)
      m.push_back(size * (i == j ? 1.0 + 0.2 * static_cast<double>(i) : 0.3 / static_cast<double>(i + j)));
  return m;
}
/// The rows of an array whose rows are padded, and back.
Values dense(const Values& padded) {
  Values v;
  for (long i = 0; i < a; ++i)
    for (long j = 0; j < g; ++j) v.push_back(padded[static_cast<std::size_t>(i * sk::row_pitch(g) + j)]);
  return v;
}
Values gradient() {
  Values v(static_cast<std::size_t>(OneLayer::sizes.stored));
  for (long i = 0; i < a; ++i)
    for (long j = 0; j < g; ++j)
      v[static_cast<std::size_t>(i * sk::row_pitch(g) + j)] = std::cos(0.37 * static_cast<double>(i * g + j));
  return v;
}
/// The gradient that Kfac makes of gradient() in a second step, whose factors are these.
Values preconditioned(optim::Kfac kfac, const Values& factor_a, const Values& factor_g) {
  kfac.factor_every = 1000;
  kfac.inverse_every = 1;
  OneLayer model{sk::Seed{1}};
  typename sk::train::StepParts<OneLayer, nn::CrossEntropy, decltype(optim::chain(kfac, optim::Sgd{})),
                                sk::parallel::PolicyState>::Executor executor(model, nn::CrossEntropy{},
                                                                              sk::ExecutorOptions{.capacity = 4, .threads = 1});
  optim::KfacState<double> state(OneLayer::program.layers(), kfac);
  state.attach(executor);
  optim::KfacSaved<double> saved = state.saved();
  saved.factors = factor_a;
  saved.factors.insert(saved.factors.end(), factor_g.begin(), factor_g.end());
  state.take(std::move(saved));
  Values result = gradient();
  executor.workers().run([&](const sk::Worker& w) {
    state.begin_pass(kfac, w, 2, 4, false);
    state.precondition(kfac, {.step = 2, .lr = 0.1, .gradient = result.data()}, w);
  });
  return dense(result);
}
}  // namespace

TEST_CASE("Kfac's pi correction damps each factor by the ratio of their mean eigenvalues", "[optim]") {
  const auto how = GENERATE(optim::KfacInverse::eigen, optim::KfacInverse::cholesky);
  const Values fa = factor(a, 4), fg = factor(g, 0.02);  // means of the diagonals: 4 (1 + 0.4), 0.02 (1 + 0.2)
  const double root = std::sqrt(0.01), pi = std::sqrt(4 * 1.4 / (0.02 * 1.2));
  const auto check = [&](const Values& ours, const test::NaiveDamping& damping, const Values& of_g) {
    const Values expected = test::divide_naively(damping, fa, of_g, dense(gradient()));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(ours[i] == Approx(expected[i]).epsilon(1e-10));
  };
  const optim::Kfac corrected{.damping = 0.01, .kl_clip = 0, .inverse = how, .pi_correction = true};
  check(preconditioned(corrected, fa, fg), {.of_a = pi * root, .of_g = root / pi}, fg);
  const Values zeros(static_cast<std::size_t>(g * g));  // as where all of a batch is classified: pi is 1
  check(preconditioned(corrected, fa, zeros), {.of_a = root, .of_g = root}, zeros);
  const optim::Kfac plain{.damping = 0.01, .kl_clip = 0, .inverse = how};
  const bool eigen = how == optim::KfacInverse::eigen;
  check(preconditioned(plain, fa, fg), {eigen ? 0 : 0.01, eigen ? 0 : 0.01, eigen ? 0.01 : 0}, fg);
}

TEST_CASE("Kfac's bias correction: factors are the weighted means of the batches' own, without the identity", "[optim]") {
  optim::Kfac kfac{.factor_every = 5, .factor_decay = 0.8, .factor_bias_correction = true};
  for (const int updates : {1, 2, 3, 40}) {
    double mean = 1, sum = 0, weights = 0;  // begins at the identity's value, as factors do; batches have 10, 20, ...
    for (int u = 0; u < updates; ++u) {
      const double kept = kfac.kept_share(1 + 5 * u), fresh = 10.0 * (u + 1);
      mean = kept * mean + (1 - kept) * fresh;
      sum = 0.8 * sum + fresh, weights = 0.8 * weights + 1;
    }
    CHECK(mean == Approx(sum / weights).epsilon(1e-12));
  }
  for (const int since : {11, 12, 15})  // of a layer that was frozen until then: the update of step 16 is its first
    CHECK((kfac.kept_share(16, since) == 0 && kfac.kept_share(21, since) == kfac.kept_share(6)));
  kfac.factor_bias_correction = false;
  CHECK(kfac.kept_share(1) == 0.8);
  kfac.factor_bias_correction = true, kfac.factor_decay = 0;
  CHECK((kfac.kept_share(1) == 0 && kfac.kept_share(11) == 0));
}

TEST_CASE("A factor without an inverse is named, with what to do", "[optim]") {
  const auto how = GENERATE(optim::KfacInverse::eigen, optim::KfacInverse::cholesky);
  const Values good_a = factor(a, 1), good_g = factor(g, 1);
  Values bad_a = good_a, bad_g = good_g;
  bad_a[1] = bad_a[static_cast<std::size_t>(a)] = bad_g[0] = std::numeric_limits<double>::quiet_NaN();
  const optim::Kfac kfac{.inverse = how};
  CHECK_NOTHROW(preconditioned(kfac, good_a, good_g));
  CHECK_THROWS_WITH(preconditioned(kfac, bad_a, good_g),
                    "Kfac: the factor A of layer 0 (Linear<3>, of those that have factors) has no inverse: the loss has "
                    "probably diverged. Take a larger .damping or a smaller rate, or look for NaN in the data");
  CHECK_THROWS_WITH(preconditioned(kfac, good_a, bad_g), Catch::Contains("the factor G of layer 0"));
}

// ---- trainings
namespace {
constexpr long samples = 9, numbers = 48;  // of a sample
const auto& images() {
  static const auto data = [] {
    Values x(samples * numbers);
    std::vector<std::int32_t> labels(samples);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(sk::random_uniform(3, 0, i)) - 0.5;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 3);
    return sk::data::from_tensors(x, sk::Extents{1, {numbers}}, labels);
  }();
  return data;
}
template <class Network> using Model = sk::Model<Network, sk::Shape<numbers>, sk::Cpu, double>;
/// The steps of one model under one optimizer, on the same batch.
template <class M, class Optimizer> struct Steps {
  M model{sk::Seed{3}};
  sk::train::TrainStep<M, nn::CrossEntropy, Optimizer, decltype(sk::parallel::SingleProcess{})> step;
  explicit Steps(const Optimizer& optimizer) : step(model, nn::CrossEntropy{}, optimizer, sk::parallel::SingleProcess{}) {
    step.reserve({.capacity = samples, .threads = 2});
  }
  void make() {
    sk::data::Loader<double> loader(images(), {.batch = samples, .shuffle = false});
    for (const auto& batch : loader.epoch(0)) step.step(batch);
  }
  Values parameters() const { return {std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()}; }
};

/// Second moments of the patches of images, by loops over places: sides (depth, height, width), channels innermost; a window of
/// kernel^dimensions at every stride-th place; a 1 behind each where there is a bias. As kfac-pytorch has them: each value
/// divided by the positions, the sum by samples and positions.
Values naive_factor(const std::vector<long>& sides, long channels, long kernel, long padding, long stride = 1) {
  std::vector<std::vector<double>> patches;
  const auto& x = images();
  std::vector<double> pixels(samples * numbers);
  sk::data::Loader<double> loader(x, {.batch = samples, .shuffle = false});
  for (const auto& batch : loader.epoch(0)) std::copy_n(batch.x, pixels.size(), pixels.begin());
  const auto out = [&](std::size_t d) { return sides[d] == 1 ? 1 : (sides[d] + 2 * padding - kernel) / stride + 1; };
  const auto window = [&](std::size_t d) { return sides[d] == 1 ? 1 : kernel; };
  const auto border = [&](std::size_t d) { return sides[d] == 1 ? 0 : padding; };
  for (long n = 0; n < samples; ++n)
    for (long z = 0; z < out(0); ++z)
      for (long y = 0; y < out(1); ++y)
        for (long w = 0; w < out(2); ++w) {
          std::vector<double> patch;
          for (long kz = 0; kz < window(0); ++kz)
            for (long ky = 0; ky < window(1); ++ky)
              for (long kw = 0; kw < window(2); ++kw)
                for (long c = 0; c < channels; ++c) {
                  const long iz = z * stride + kz - border(0), iy = y * stride + ky - border(1), iw = w * stride + kw - border(2);
                  const bool inside = iz >= 0 && iy >= 0 && iw >= 0 && iz < sides[0] && iy < sides[1] && iw < sides[2];
                  patch.push_back(
                      inside
                          ? pixels[static_cast<std::size_t>(n * numbers + ((iz * sides[1] + iy) * sides[2] + iw) * channels + c)]
                          : 0);
                }
          patch.push_back(1);
          patches.push_back(patch);
        }
  const std::size_t rows = patches[0].size();
  const double positions = static_cast<double>(patches.size() / samples);
  Values result(rows * rows);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rows; ++j) {
      double sum = 0;
      for (const auto& p : patches) sum += p[i] / positions * p[j] / positions;
      result[i * rows + j] = 0.95 * (i == j) + 0.05 * sum / static_cast<double>(patches.size());
    }
  return result;
}
template <class Form, class Layer> void has_factor(const Values& expected) {
  using Network = nn::Sequential<Form, Layer, nn::Tanh, nn::Flatten, nn::Linear<3>>;
  const auto optimizer = optim::chain(optim::Kfac{}, optim::Sgd{.lr = 0.1f});
  Steps<Model<Network>, std::remove_const_t<decltype(optimizer)>> steps(optimizer);
  steps.make();
  const auto ours = steps.step.curvature().factor_a(0);
  REQUIRE(ours.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(ours[i] == Approx(expected[i]).margin(1e-14).epsilon(0));
}
}  // namespace

TEST_CASE(
    "Kfac's factors of windows wider than one position, along one and three dimensions, are those of patches in plain loops",
    "[optim]") {
  has_factor<nn::Reshape<16, 3>, nn::Conv1d<4, sk::Kernel<3>, sk::Padding<1>>>(naive_factor({1, 1, 16}, 3, 3, 1));
  has_factor<nn::Reshape<24, 2>, nn::Conv1d<4, sk::Kernel<5>>>(naive_factor({1, 1, 24}, 2, 5, 0));
  has_factor<nn::Reshape<2, 3, 4, 2>, nn::Conv3d<4, sk::Kernel<2>>>(naive_factor({2, 3, 4}, 2, 2, 0));
  has_factor<nn::Reshape<3, 2, 4, 2>, nn::Conv3d<4, sk::Kernel<3>, sk::Padding<1>>>(naive_factor({3, 2, 4}, 2, 3, 1));
  has_factor<nn::Reshape<16, 3>, nn::Conv1d<4, sk::Kernel<3>, sk::Padding<1>, sk::Stride<2>>>(
      naive_factor({1, 1, 16}, 3, 3, 1, 2));
  has_factor<nn::Reshape<3, 2, 4, 2>, nn::Conv3d<4, sk::Kernel<2>, sk::Padding<1>, sk::Stride<2>>>(
      naive_factor({3, 2, 4}, 2, 2, 1, 2));
  has_factor<nn::Reshape<4, 6, 2>, nn::Conv2d<4, sk::Kernel<3>, sk::Padding<1>>>(naive_factor({1, 4, 6}, 2, 3, 1));
}

namespace {
using Mlp = Model<nn::Sequential<nn::Linear<7>, nn::Tanh, nn::Linear<3>>>;
double norm(const Values& v, const sk::plan::Entry& e) {
  double sum = 0;
  for (long i = 0; i < e.extents.count(); ++i) {
    const long columns = e.extents.last();
    const double x = v[static_cast<std::size_t>(e.offset + i / columns * sk::row_pitch(columns) + i % columns)];
    sum += x * x;
  }
  return std::sqrt(sum);
}
/// Adam's arrays and formula, in a loop.
struct NaiveAdam {
  Values m, v;
  int t = 0;
  Values direction(const Values& gradient, double epsilon) {
    m.resize(gradient.size());
    v.resize(gradient.size());
    ++t;
    Values d(gradient.size());
    for (std::size_t i = 0; i < d.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * gradient[i];
      v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
      d[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + epsilon);
    }
    return d;
  }
};
/// update(weights, direction): what the optimizer behind Kfac does with Kfac's direction, by hand; as a training of `chain` does.
template <class Chain, class Update> void trains_alike(const Chain& chain, const Update& update) {
  const optim::Kfac kfac{.factor_every = 2, .inverse_every = 3, .kl_clip = 0};
  const auto whole = chain(kfac);
  const auto by_itself = optim::chain(kfac, optim::Sgd{.lr = 1});  // its step is its direction
  Steps<Mlp, std::remove_const_t<decltype(whole)>> trained(whole);
  Steps<Mlp, std::remove_const_t<decltype(by_itself)>> direction(by_itself);
  const Values start = trained.parameters();
  for (int step = 0; step < 8; ++step) {
    Values weights = direction.parameters();
    direction.make();
    Values d = weights;
    const Values after = direction.parameters();
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= after[i];
    update(weights, d);
    {
      const auto lease = direction.model.modify();
      std::copy(weights.begin(), weights.end(), lease.data());
    }
    trained.make();
    const Values ours = trained.parameters();
    for (std::size_t i = 0; i < ours.size(); ++i) REQUIRE(ours[i] == Approx(weights[i]).epsilon(1e-8).margin(1e-9));
  }
  double moved = 0;
  for (std::size_t i = 0; i < start.size(); ++i) moved = std::max(moved, std::abs(trained.parameters()[i] - start[i]));
  CHECK(moved > 1e-3);
}
}  // namespace

TEST_CASE("With bias correction a first step's factors are the batch's, and the identity is none of them", "[optim]") {
  using Network = nn::Sequential<nn::Linear<4>, nn::Tanh, nn::Linear<3>>;
  const auto corrected = optim::chain(optim::Kfac{.factor_bias_correction = true}, optim::Sgd{.lr = 0.1f});
  const auto from_identity = optim::chain(optim::Kfac{}, optim::Sgd{.lr = 0.1f});
  Steps<Model<Network>, std::remove_const_t<decltype(corrected)>> ours(corrected), other(from_identity);
  ours.make(), other.make();
  for (const std::size_t layer : {0, 1})
    for (const bool of_gradients : {false, true}) {
      const auto factor_of = [&](auto& steps) {
        return of_gradients ? steps.step.curvature().factor_g(layer) : steps.step.curvature().factor_a(layer);
      };
      const auto x = factor_of(ours), y = factor_of(other);
      const auto n = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(x.size()))));
      for (std::size_t i = 0; i < x.size(); ++i)
        REQUIRE(y[i] == Approx(0.95 * (i % (n + 1) == 0) + 0.05 * x[i]).margin(1e-14).epsilon(0));
    }
}

TEST_CASE("Factors of a frozen beginning stay as they are, for a training that goes on with all layers", "[optim]") {
  auto all = optim::chain(optim::Kfac{}, optim::Sgd{.lr = 0.1f}), frozen = all;
  frozen.groups = {optim::frozen("0.*")};
  Steps<Mlp, decltype(all)> first(all), some(frozen);
  for (int step = 0; step < 3; ++step) first.make();
  some.step.curvature().take(first.step.curvature().saved());
  const auto factors = [](auto& steps) { return steps.step.curvature().saved().factors; };
  const Values before = factors(some);
  for (int step = 0; step < 20; ++step) some.make();
  const Values after = factors(some);
  const std::size_t of_beginning = first.step.curvature().factor_a(0).size() + first.step.curvature().factor_g(0).size();
  for (std::size_t i = 0; i < of_beginning; ++i) REQUIRE(after[i] == before[i]);
  CHECK(after[of_beginning] != before[of_beginning]);
}

TEST_CASE("With bias correction the identity is none of the factors of a beginning that thaws", "[optim]") {
  auto all = optim::chain(optim::Kfac{.factor_bias_correction = true}, optim::Sgd{.lr = 1e-9f}), frozen = all;
  frozen.groups = {optim::frozen("0.*")};
  Steps<Mlp, decltype(all)> fresh(all), some(frozen), thawed(all);
  fresh.make();
  for (int step = 0; step < 20; ++step) some.make();
  thawed.step.curvature().take(some.step.curvature().saved());
  thawed.step.set_steps(20);
  thawed.step.arrays().set_updates(some.step.arrays().updates_after(some.step.steps()));
  thawed.make();
  const auto ours = thawed.step.curvature().factor_a(0), batch = fresh.step.curvature().factor_a(0);
  for (std::size_t i = 0; i < ours.size(); ++i) REQUIRE(ours[i] == Approx(batch[i]).margin(1e-12).epsilon(0));
}

namespace {
/// A layer of several pieces (columns of 32) in a training of so many threads.
Values trained_wide(int threads, double kl_clip) {
  using Network = nn::Sequential<nn::Linear<100>, nn::Tanh, nn::Linear<3>>;
  sk::Model<Network, sk::Shape<numbers>, sk::Cpu, double> model{sk::Seed{3}};
  const auto optimizer = optim::chain(optim::Kfac{.damping = 0.1, .kl_clip = kl_clip, .inverse = optim::KfacInverse::cholesky},
                                      optim::Sgd{.lr = 0.1f});
  typename sk::train::StepParts<decltype(model), nn::CrossEntropy, std::remove_const_t<decltype(optimizer)>,
                                sk::parallel::PolicyState>::Executor executor(model, nn::CrossEntropy{},
                                                                              sk::ExecutorOptions{.capacity = 4,
                                                                                                  .threads = threads});
  const optim::Kfac& kfac = optimizer.curvature();
  optim::KfacState<double> own(model.program.layers(), kfac);
  own.attach(executor);
  optim::KfacSaved<double> saved = own.saved();
  for (std::size_t i = 0; i < saved.factors.size(); ++i) saved.factors[i] *= 1 + 0.5 * std::sin(static_cast<double>(i));
  own.take(std::move(saved));
  Values gradient(static_cast<std::size_t>(decltype(model)::sizes.stored));
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::cos(0.37 * static_cast<double>(i));
  executor.workers().run([&](const sk::Worker& w) {
    own.begin_pass({.factor_every = 1000}, w, 11, 4, false);
    optim::Kfac only_inverses = kfac;
    only_inverses.factor_every = 1000;
    own.precondition(only_inverses, {.step = 11, .lr = 0.1, .gradient = gradient.data()}, w);
  });
  return gradient;
}
}  // namespace

TEST_CASE("Workers share a wide layer's columns: the same bits on any number of threads", "[optim]") {
  for (const double kl_clip : {0.0, 1e-6}) {
    const Values one = trained_wide(1, kl_clip);
    CHECK(one != trained_wide(1, 1e-3 + kl_clip));  // the limit is felt
    for (const int threads : {2, 3, 5}) CHECK(trained_wide(threads, kl_clip) == one);
  }
}

TEST_CASE("Kfac in front of Adam, LARS and LAMB: they are given its direction, as by hand", "[optim]") {
  NaiveAdam adam, moments;
  trains_alike([](const optim::Kfac& kfac) { return optim::chain(kfac, optim::Adam{.lr = 0.01f}); },
               [&](Values& w, const Values& d) {
                 const Values r = adam.direction(d, 1e-8);
                 for (std::size_t i = 0; i < w.size(); ++i) w[i] -= static_cast<double>(0.01f) * r[i];
               });
  const auto by_ratio = [](Values& w, const Values& d, double lr, const auto& ratio) {
    const Values before = w;
    for (const sk::plan::Entry& e : Mlp::program.parameters()) {
      const long columns = e.extents.last();
      for (long i = 0; i < e.extents.count(); ++i) {
        const auto at = static_cast<std::size_t>(e.offset + i / columns * sk::row_pitch(columns) + i % columns);
        w[at] -= lr * ratio(norm(before, e), norm(d, e)) * d[at];
      }
    }
  };
  trains_alike([](const optim::Kfac& kfac) { return optim::chain(kfac, optim::Lars{.trust = 0.5f}, optim::Sgd{.lr = 0.125f}); },
               [&](Values& w, const Values& d) {
                 by_ratio(w, d, 0.125, [](double of_w, double of_d) { return of_w > 0 && of_d > 0 ? 0.5 * of_w / of_d : 1; });
               });
  trains_alike([](const optim::Kfac& kfac) { return optim::chain(kfac, optim::Lamb{}, optim::Sgd{.lr = 0.125f}); },
               [&](Values& w, const Values& d) {
                 by_ratio(w, moments.direction(d, 1e-6), 0.125,
                          [](double of_w, double of_d) { return of_w > 0 && of_d > 0 ? of_w / of_d : 1; });
               });
}
