// SPDX-License-Identifier: Apache-2.0
// Several losses of one output: the weighted sum of what each alone says, its gradient, and PyTorch's figures.
#include <catch2/catch.hpp>

#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/huber.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/own_loss.hpp>
#include <skein/nn/loss/weighted_losses.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/loss_harness.hpp"
#include "support/own_losses.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using nn::CrossEntropy;
using test::LossRows;

namespace {
using Model = sk::Model<nn::Sequential<nn::Linear<9>, nn::Tanh, nn::Linear<5>>, sk::Shape<4>, sk::Cpu, double>;
const LossRows<double> labelled{6, 5, test::wave(30, 0.7, 0, 3), {}, {0, 3, 4, 1, 2, 3}};
const LossRows<double> some{6, 5, test::wave(30, 0.7, 0, 3), {}, {0, 3, -1, 1, -1, 3}};
const LossRows<double> numbers{6, 5, test::wave(30, 0.7, 0, 3), test::wave(30, 1.1, 0.3, 2), {}};
const std::vector<float> weights{0.5f, 1.0f, 2.0f, 0.25f, 1.5f};

/// a + factor * b.
std::vector<double> sum(const std::vector<double>& a, const std::vector<double>& b, double factor) {
  std::vector<double> c = a;
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += factor * b[i];
  return c;
}
}  // namespace

TEST_CASE("Weighted losses of one output are PyTorch's sum, value and gradient", "[loss]") {
  const auto loss = nn::weighted_losses<Model>(nn::on(CrossEntropy{}), nn::on(CrossEntropy{.label_smoothing = 0.1}, 0.25));
  STATIC_REQUIRE(nn::Loss<decltype(nn::weighted_losses<Model>(nn::on(CrossEntropy{})))>);
  test::matches_fixture(loss, labelled, sum(fixtures::ce_value, fixtures::ce_smooth_value, 0.25),
                        sum(fixtures::ce_gradient, fixtures::ce_smooth_gradient, 0.25));
  CHECK(labelled(loss).sums.correct == labelled(CrossEntropy{}).sums.correct);
  test::matches_fixture(nn::weighted_losses<Model>(nn::on(nn::Mse{}, 2), nn::on(nn::Huber{}, 0.5)), numbers,
                        sum(sum(fixtures::mse_value, fixtures::mse_value, 1), fixtures::huber_value, 0.5),
                        sum(sum(fixtures::mse_gradient, fixtures::mse_gradient, 1), fixtures::huber_gradient, 0.5));
}

TEST_CASE("Weighted losses have the gradient of finite differences, with weights of classes and ignored labels", "[loss]") {
  const CrossEntropy plain{.class_weights = weights, .ignore_label = -1};
  const nn::OwnLoss focal{own_losses::Focal{}, {.class_weights = weights, .ignore_label = -1}};
  const auto loss = nn::weighted_losses<Model>(nn::on(plain, 0.5), nn::on(focal, 0.1));
  CHECK(loss.ignored_label() == -1);
  CHECK(loss.table().size() == 10);
  test::matches_differences(loss, some);
  CHECK(some(loss).sums.mean() == Approx(0.5 * some(plain).sums.mean() + 0.1 * some(focal).sums.mean()).epsilon(1e-13));
}

TEST_CASE("A network with weighted losses has the sum's gradient, by any workers", "[loss]") {
  constexpr long n = 13, in = sk::sample_pitch(sk::Extents{1, {4}});
  std::vector<double> x(n * in);
  std::vector<std::int32_t> labels(n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 7 % 5);
  const sk::BatchView<double> batch{x.data(), in, labels.data(), nullptr, 0, n};
  Model model{sk::Seed{3}};
  const auto gradient = [&](const auto& loss, int threads, sk::Execution execution) {
    sk::Executor executor{model, loss, {.capacity = n + 4, .execution = execution, .block = 3, .threads = threads}};
    executor.forward_backward(batch);
    return std::vector<double>(model.gradients().begin(), model.gradients().end());
  };
  const nn::OwnLoss focal{own_losses::Focal{}};
  const auto wanted =
      sum(gradient(CrossEntropy{}, 1, sk::Execution::layer_wise), gradient(focal, 1, sk::Execution::layer_wise), 0.1);
  const auto loss = nn::weighted_losses<Model>(nn::on(CrossEntropy{}), nn::on(focal, 0.1));
  for (const int threads : {1, 2, 4})
    for (const auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
      CHECK(test::first_apart<double>(gradient(loss, threads, execution), wanted, 64) == -1);
}

TEST_CASE("One of weighted losses with the factor 0 does not count, infinite or not", "[loss]") {
  const nn::OwnLoss broken{[](auto output, auto target) { return (output - target) / 0.0; }};
  const auto same = [](const auto& loss, const auto& alone, double factor) {
    const auto both = numbers(loss), one = numbers(alone);
    CHECK(both.sums.loss == Approx(factor * one.sums.loss));
    for (std::size_t i = 0; i < one.gradient.size(); ++i) CHECK(both.gradient[i] == Approx(factor * one.gradient[i]));
  };
  CHECK_FALSE(std::isfinite(numbers(broken).sums.loss));
  same(nn::weighted_losses<Model>(nn::on(nn::Mse{}, 2), nn::on(broken, 0)), nn::Mse{}, 2);
  same(nn::weighted_losses<Model>(nn::on(broken, 0), nn::on(nn::Mse{}, 2)), nn::Mse{}, 2);
  same(nn::weighted_losses<Model>(nn::on(broken, 0)), nn::Mse{}, 0);
}

TEST_CASE("Weighted losses refuse divisors that differ and a factor that is no number", "[loss]") {
  const auto loss = nn::weighted_losses<Model>(nn::on(CrossEntropy{.class_weights = weights}), nn::on(CrossEntropy{}));
  CHECK_THROWS_WITH(labelled(loss), Catch::Contains("loss 2 is divided by 6 and the first by") &&
                                        Catch::Contains("give both the same class_weights and the same ignore_label"));
  CHECK_THROWS_WITH(nn::weighted_losses<Model>(nn::on(nn::Mse{}, std::nan(""))), Catch::Contains("the factor of loss 1 is nan"));
}
