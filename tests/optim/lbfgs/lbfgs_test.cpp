// SPDX-License-Identifier: Apache-2.0
// L-BFGS beside torch.optim.LBFGS: losses, weights and evaluations; on several ranks; what it refuses. The search for a length
// has line_search_test.cpp.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/lbfgs/lbfgs.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using sk::optim::BoundLbfgs, sk::optim::Lbfgs, sk::optim::LineSearch;

namespace {
using Net = nn::Sequential<nn::Linear<5>, nn::Tanh, nn::Linear<2>>;
template <class Scalar> using Small = sk::Model<Net, sk::Shape<3>, sk::Cpu, Scalar>;

/// visit(value, row of the table) of each logical element, in their order.
template <class Scalar, class Visit> void each_element(Scalar* parameters, const Visit& visit) {
  int k = 0;
  for (const sk::plan::Entry& e : Small<float>::program.parameters()) {
    const long width = e.extents.last(), pitch = sk::row_pitch(width);
    for (long i = 0; i < e.extents.count(); ++i) visit(parameters[e.offset + i / width * pitch + i % width], k, i);
    ++k;
  }
}
template <class Scalar> Small<Scalar> made() {
  Small<Scalar> model{sk::Seed{1}};
  auto weights = model.modify();
  each_element(weights.data(), [](Scalar& w, int k, long i) {
    w = static_cast<Scalar>(0.7 * std::sin((0.9 + 0.3 * k) * static_cast<double>(i + 1) + 0.2));
  });
  return model;
}
/// The samples [first, end) of eight.
template <class Scalar> struct Points {
  std::vector<Scalar> x, y;
  Points() : x(8 * pitch), y(8 * out) {
    for (int i = 0; i < 24; ++i) x[at(i / 3 * pitch + i % 3)] = static_cast<Scalar>(std::sin(0.61 * (i + 1) + 0.4));
    for (int i = 0; i < 16; ++i) y[at(i / 2 * out + i % 2)] = static_cast<Scalar>(2 * std::sin(1.7 * (i + 1) + 0.1));
  }
  sk::BatchView<Scalar> view() const { return {x.data(), pitch, nullptr, y.data(), out, 8}; }

 private:
  static constexpr long pitch = sk::sample_pitch(sk::Extents{1, {3}}), out = sk::row_pitch(2);
  static std::size_t at(long i) { return static_cast<std::size_t>(i); }
};

template <class Scalar> struct Trained {
  std::vector<double> losses, weights;
  std::int64_t evaluations = 0;
};
template <class Scalar> Trained<Scalar> train(const Lbfgs& options, std::size_t steps) {
  auto model = made<Scalar>();
  const Points<Scalar> points;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
  BoundLbfgs lbfgs{options, model};
  Trained<Scalar> r;
  for (std::size_t i = 0; i < steps; ++i)
    r.losses.push_back(lbfgs.step(model, [&] { return executor.forward_backward(points.view()).mean(); }));
  each_element(model.parameters().data, [&](Scalar w, int, long) { r.weights.push_back(static_cast<double>(w)); });
  r.evaluations = lbfgs.evaluations();
  return r;
}
template <class Scalar> void near(const std::vector<Scalar>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(static_cast<double>(got[i]) == Approx(expected[i]).margin(tolerance).epsilon(tolerance));
  }
}
void follows(const Lbfgs& options, const std::vector<double>& losses, const std::vector<double>& weights,
             const std::vector<double>& evaluations) {
  const auto got = train<double>(options, losses.size());
  near(got.losses, losses, 1e-8);
  near(got.weights, weights, 1e-6);
  CHECK(static_cast<double>(got.evaluations) == evaluations[0]);
}
constexpr Lbfgs wolfe{.max_iterations = 4, .history = 10, .line_search = LineSearch::strong_wolfe};
}  // namespace

TEST_CASE("L-BFGS takes the steps of torch.optim.LBFGS", "[optim]") {
  follows({.lr = 0.3, .max_iterations = 3, .history = 4}, fixtures::lbfgs_fixed_losses, fixtures::lbfgs_fixed,
          fixtures::lbfgs_fixed_evaluations);
  follows(wolfe, fixtures::lbfgs_wolfe_losses, fixtures::lbfgs_wolfe, fixtures::lbfgs_wolfe_evaluations);
  follows({.line_search = LineSearch::strong_wolfe}, fixtures::lbfgs_defaults_losses, fixtures::lbfgs_defaults,
          fixtures::lbfgs_defaults_evaluations);
}

TEST_CASE("L-BFGS in single precision: the first losses are those of double", "[optim]") {
  const auto got = train<float>(wolfe, 4);
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    CHECK(got.losses[i] == Approx(fixtures::lbfgs_wolfe_losses[i]).epsilon(1e-3));
}

TEST_CASE("L-BFGS on ranks: all take the same steps, those of one rank", "[optim]") {
  const auto one = train<double>(wolfe, 6);
  std::vector<std::vector<double>> weights(3), losses(3);
  sk::spawn(3, [&](sk::ThreadComm& world) {
    const int rank = world.rank();
    auto model = made<double>();
    const Points<double> points;
    sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
    BoundLbfgs lbfgs{wolfe, model};
    const auto mine = points.view().part(8 * rank / 3, 8 * (rank + 1) / 3);
    for (int i = 0; i < 6; ++i)
      losses[static_cast<std::size_t>(rank)].push_back(lbfgs.step(model, [&] {
        const auto sums = executor.forward_backward(mine, {.of_samples = 8});
        world.all_reduce(model.gradients(), sk::Sum{});
        return world.all_reduce(sums.loss) / world.all_reduce(sums.weight);
      }));
    each_element(model.parameters().data, [&](double w, int, long) { weights[static_cast<std::size_t>(rank)].push_back(w); });
  });
  CHECK(weights[1] == weights[0]);
  CHECK(weights[2] == weights[0]);
  CHECK(losses[2] == losses[0]);
  near(losses[0], one.losses, 1e-9);
  near(weights[0], one.weights, 1e-7);
}

TEST_CASE("L-BFGS keeps so many pairs, counts, and ends where nothing is left to gain", "[optim]") {
  auto model = made<double>();
  const Points<double> points;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
  int calls = 0;
  const auto closure = [&] { return ++calls, executor.forward_backward(points.view()).mean(); };
  BoundLbfgs lbfgs{Lbfgs{.max_iterations = 6, .max_evaluations = 50, .history = 3, .line_search = LineSearch::strong_wolfe},
                   model};
  lbfgs.step(model, closure);
  CHECK(lbfgs.pairs() == 3);
  CHECK(lbfgs.iterations() == 6);
  CHECK(lbfgs.evaluations() == calls);
  BoundLbfgs few{Lbfgs{.max_iterations = 100, .max_evaluations = 5, .line_search = LineSearch::strong_wolfe}, model};
  few.step(model, closure);
  CHECK(few.evaluations() >= 5);
  CHECK(few.evaluations() <= 6);
  BoundLbfgs still{Lbfgs{.tolerance_gradient = 1e9}, model};
  const std::vector<double> before(model.parameters().begin(), model.parameters().end());
  still.step(model, closure);
  CHECK(still.evaluations() == 1);
  CHECK(still.iterations() == 0);
  CHECK(std::vector<double>(model.parameters().begin(), model.parameters().end()) == before);
}

TEST_CASE("L-BFGS refuses what makes no sense, and leaves the weights where the loss was finite", "[optim]") {
  auto model = made<double>(), other = made<double>();
  const Points<double> points;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
  const auto closure = [&] { return executor.forward_backward(points.view()).mean(); };
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.lr = 0}, model}), Catch::Contains("Lbfgs{.lr = 0}: the length of a step is above 0"));
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.line_search = static_cast<LineSearch>(2)}, model}),
                    Catch::Contains("Lbfgs: .line_search is 2") && Catch::Contains("give none or strong_wolfe"));
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.max_iterations = 0}, model}), Catch::Contains("at least one iteration"));
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.history = 0}, model}), Catch::Contains("at least one pair"));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.tolerance_gradient = infinity}, model}), Catch::Contains("must be finite"));
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.tolerance_change = infinity}, model}), Catch::Contains("must be finite"));
  CHECK(BoundLbfgs{Lbfgs{.max_iterations = 500000000}, model}.options().max_evaluations == 625000000);
  CHECK(BoundLbfgs{Lbfgs{.max_iterations = 2000000000}, model}.options().max_evaluations == std::numeric_limits<int>::max());
  BoundLbfgs lbfgs{Lbfgs{.lr = 1e200}, model};
  CHECK_THROWS_WITH(lbfgs.step(other, closure), Catch::Contains("another model than the one that it was made with"));
  CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{}, other}.step(other, [] { return 1.0; })), Catch::Contains("no gradients in the model"));
  CHECK_THROWS_WITH(
      (BoundLbfgs{Lbfgs{}, model}.step(model, [&] { return closure() * std::numeric_limits<double>::quiet_NaN(); })),
      Catch::Contains("not finite before the step"));
  const std::vector<double> before(model.parameters().begin(), model.parameters().end());
  CHECK_THROWS_WITH(lbfgs.step(model, closure),
                    Catch::Contains("take .line_search = LineSearch::strong_wolfe, or a smaller .lr"));
  CHECK(std::vector<double>(model.parameters().begin(), model.parameters().end()) == before);
  BoundLbfgs searching{Lbfgs{.lr = 1e3, .line_search = LineSearch::strong_wolfe}, model};
  const double loss = searching.step(model, closure);
  CHECK(closure() < loss);
}

TEST_CASE("L-BFGS refuses a gradient that is not finite beside a loss that is", "[optim]") {
  auto model = made<double>();
  const Points<double> points;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
  const auto closure = [&] {
    const double loss = executor.forward_backward(points.view()).mean();
    model.gradients().data[0] = std::numeric_limits<double>::quiet_NaN();
    return loss;
  };
  const std::vector<double> before(model.parameters().begin(), model.parameters().end());
  for (const LineSearch search : {LineSearch::none, LineSearch::strong_wolfe}) {
    CHECK_THROWS_WITH((BoundLbfgs{Lbfgs{.line_search = search}, model}.step(model, closure)),
                      Catch::Contains("the loss is finite before the step, and its gradient is not"));
    CHECK(std::vector<double>(model.parameters().begin(), model.parameters().end()) == before);
  }
}

TEST_CASE("L-BFGS takes back the last move of a step where the next one finds that it made the loss infinite", "[optim]") {
  auto model = made<double>();
  const Points<double> points;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
  const auto closure = [&] { return executor.forward_backward(points.view()).mean(); };
  const auto weights = [&] { return std::vector<double>(model.parameters().begin(), model.parameters().end()); };
  BoundLbfgs lbfgs{Lbfgs{.lr = 1e200, .max_iterations = 1}, model};
  const std::vector<double> before = weights();
  lbfgs.step(model, closure);
  CHECK(weights() != before);
  CHECK_THROWS_WITH(lbfgs.step(model, closure), Catch::Contains("Lbfgs: a step of length ") && Catch::Contains("e+199 made") &&
                                                    Catch::Contains("The weights are those before the step"));
  CHECK(weights() == before);

  lbfgs.step(model, closure);
  model.modify()[0] = std::numeric_limits<double>::quiet_NaN();  // not the step's fault: these weights are the program's own
  CHECK_THROWS_WITH(lbfgs.step(model, closure), Catch::Contains("not finite before the step"));
  CHECK(std::isnan(weights()[0]));
}

TEST_CASE("L-BFGS ends a step where the gradient is no longer finite, and keeps weights that are", "[optim]") {
  const LineSearch search = GENERATE(LineSearch::none, LineSearch::strong_wolfe);
  for (int bad = 2; bad <= 6; ++bad) {
    auto model = made<double>();
    const Points<double> points;
    sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}};
    int calls = 0;
    const auto closure = [&] {
      const double loss = executor.forward_backward(points.view()).mean();
      if (++calls == bad) model.gradients().data[0] = std::numeric_limits<double>::infinity();
      return loss;
    };
    BoundLbfgs lbfgs{Lbfgs{.max_iterations = 6, .line_search = search}, model};
    lbfgs.step(model, closure);
    CHECK(calls >= bad);
    for (const double w : model.parameters()) CHECK(std::isfinite(w));
    CHECK(std::isfinite(lbfgs.step(model, closure)));
  }
}

TEST_CASE("A closure that throws leaves L-BFGS the weights of the last iteration", "[optim]") {
  const LineSearch search = GENERATE(LineSearch::none, LineSearch::strong_wolfe);
  auto model = made<double>(), same = made<double>();
  const Points<double> points;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}}, other{same, nn::Mse{}, {.capacity = 8, .threads = 1}};
  const Lbfgs options{.lr = 0.5, .max_iterations = 3, .line_search = search};
  BoundLbfgs lbfgs{options, model}, undisturbed{options, same};
  bool throws = false;
  const auto closure = [&] {
    const double loss = executor.forward_backward(points.view()).mean();
    if (std::exchange(throws, false)) throw std::runtime_error("gone");
    return loss;
  };
  lbfgs.step(model, closure);
  const std::vector<double> before(model.parameters().begin(), model.parameters().end());
  int calls = 0;
  CHECK_THROWS_WITH(lbfgs.step(model, [&] { return throws = ++calls == 2, closure(); }), Catch::Contains("gone"));
  CHECK(calls == 2);
  CHECK(std::vector<double>(model.parameters().begin(), model.parameters().end()) == before);
  const auto quiet = [&] { return other.forward_backward(points.view()).mean(); };
  for (int i = 0; i < 2; ++i) undisturbed.step(same, quiet);
  lbfgs.step(model, closure);
  CHECK(closure() == Approx(quiet()).epsilon(1e-6));  // the search that was broken off has left no curvature of its own
}

TEST_CASE("A first iteration of L-BFGS that was no step leaves the next one the length of a first", "[optim]") {
  const auto weights = [](const auto& model) {
    return std::vector<double>(model.parameters().begin(), model.parameters().end());
  };
  const Points<double> points;
  const auto same_as_undisturbed = [&](const Lbfgs& options, int steps_before, bool throws, const char* said) {
    auto model = made<double>(), same = made<double>();
    sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 1}}, other{same, nn::Mse{}, {.capacity = 8, .threads = 1}};
    BoundLbfgs lbfgs{options, model}, undisturbed{options, same};
    int calls = 0;
    const auto closure = [&] {
      const double loss = executor.forward_backward(points.view()).mean();
      if (++calls != 2) return loss;
      if (throws) throw std::runtime_error("gone");
      return std::numeric_limits<double>::infinity();
    };
    for (int i = 0; i < steps_before; ++i) lbfgs.step(model, closure);
    CHECK_THROWS_WITH(lbfgs.step(model, closure), Catch::Contains(said));
    CHECK(weights(model) == weights(same));
    CHECK(lbfgs.iterations() == 0);
    lbfgs.step(model, closure);
    undisturbed.step(same, [&] { return other.forward_backward(points.view()).mean(); });
    CHECK(weights(model) == weights(same));
    CHECK(lbfgs.iterations() == undisturbed.iterations());
  };
  for (const LineSearch search : {LineSearch::none, LineSearch::strong_wolfe})
    same_as_undisturbed({.max_iterations = 3, .line_search = search}, 0, true, "gone");
  same_as_undisturbed({.max_iterations = 3}, 0, false, "made the loss inf");
  same_as_undisturbed({.max_iterations = 1}, 1, false, "made the loss inf");  // which the next step finds
}
