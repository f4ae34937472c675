// SPDX-License-Identifier: Apache-2.0
// Containers and executors: every arrangement gives the gradient of finite differences, whatever the threads and the executor.
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <skein/nn/dropout.hpp>
#include <skein/nn/exec/gradient_divisor.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/state.hpp>

#include <skein/nn/tanh.hpp>

#include "../support/larger.hpp"
#include "../support/naive_layers.hpp"
#include "../support/network_gradients.hpp"
#include "../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {

using Batch = support::Doubles;
using support::check_gradient, support::Data, support::Double, support::gradient;
using naive::Center, naive::Flatten, naive::Linear, naive::Tanh;

/// A copy. In forward the last worker waits here (Last) until the first one has passed the other (not Last).
std::atomic<bool> passed{false};
template <bool Last> struct Copy {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  template <class In, class Frame> static void forward(Frame& f) {
    const sk::Worker& w = f.context->worker;
    while (Last && w.index == w.count - 1 && w.count > 1 && !passed) std::this_thread::yield();
    std::copy_n(f.x, f.batch * sk::sample_pitch(In::extents), f.y);
    if (!Last && w.index == 0) passed = true;
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) std::copy_n(f.dy, f.batch * sk::sample_pitch(In::extents), f.dx);
  }
};

/// A copy, whose backward throws while it is told to.
bool throws = false;
struct Throws : Copy<false> {
  template <class In, class Frame> static void backward(Frame& f) {
    if (throws) throw std::runtime_error("in backward");
    Copy<false>::backward<In>(f);
  }
};

/// Makes its output again, so that a Sequential need not keep it.
struct Remade : own_layers::ScaleByHand {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    sk::LayerInfo info = own_layers::ScaleByHand::describe(in);
    info.remakes_output = nn::Remakes::from_input;
    return info;
  }
  template <class In, class Frame> static void remake(Frame& f) { forward<In>(f); }
};

}  // namespace

TEST_CASE("a sequence has the gradient of finite differences", "[nn]") {
  check_gradient<nn::Sequential<Linear<5>, Tanh, Linear<9>, Tanh, Linear<3>>, sk::Shape<4>>();
}
TEST_CASE("renamed edges share memory and keep the gradient", "[nn]") {
  // 4 x 4 x 1 is flattened without a copy, 3 x 1 x 1 with one; identities stand at the front, in between and behind.
  check_gradient<nn::Sequential<nn::Identity, Flatten, nn::Identity, Linear<6>, nn::Identity, Tanh, nn::Identity, Linear<5>, Tanh,
                                nn::Identity>,
                 sk::Shape<4, 4, 1>>();
  check_gradient<nn::Sequential<Flatten, Linear<5>, nn::Identity, Linear<7>, nn::Identity, nn::Identity, Linear<2>>,
                 sk::Shape<5, 1, 1>>();
}
TEST_CASE("nested sequences, residuals, branches and repeats have the gradient of finite differences", "[nn]") {
  check_gradient<nn::Sequential<nn::Sequential<Linear<6>, Tanh>, nn::Sequential<nn::Sequential<Linear<3>>, Tanh>>,
                 sk::Shape<4>>();
  check_gradient<nn::Sequential<Linear<6>, nn::Residual<nn::Sequential<Linear<6>, Tanh>>, Linear<2>>, sk::Shape<4>>();
  check_gradient<nn::Sequential<nn::Residual<nn::Sequential<Tanh, Linear<5>>, Linear<5>>, Tanh, Linear<2>>, sk::Shape<4>>();
  check_gradient<nn::Sequential<nn::Residual<nn::Sequential<Linear<5>, Tanh>, nn::Sequential<Linear<5>, Tanh>>, Linear<2>>,
                 sk::Shape<4>>();
  check_gradient<
      nn::Sequential<Linear<6>, nn::Concat<Linear<3>, nn::Sequential<Linear<9>, Tanh>, Tanh, nn::Identity>, Tanh, Linear<2>>,
      sk::Shape<4>>();
  check_gradient<nn::Sequential<Linear<6>, nn::Repeat<3, nn::Residual<nn::Sequential<Linear<7>, Tanh, Linear<6>>>>, Linear<2>>,
                 sk::Shape<4>>();
  check_gradient<nn::Sequential<nn::Repeat<4, nn::Sequential<Linear<4>, Tanh>>, nn::Repeat<1, Linear<4>>>, sk::Shape<4>>();
}
TEST_CASE("what a leaf makes again in backward, a container of it does not", "[nn]") {
  check_gradient<nn::Sequential<Linear<6>, Remade, Remade, nn::Repeat<2, Remade>, Remade, nn::Recompute<Remade>, Linear<2>>,
                 sk::Shape<4>>();
}
TEST_CASE("a gradient that workers divide among them is the same", "[nn]") {
  check_gradient<nn::Sequential<Linear<20, true>, Tanh, nn::Identity, Linear<33, true>, Tanh, Linear<17, true>, nn::Identity>,
                 sk::Shape<4>>();
  check_gradient<nn::Sequential<Linear<6, true>, nn::Residual<Linear<6, true>>, nn::Concat<Linear<18, true>, Linear<3, true>>,
                                nn::Sequential<Tanh, Linear<9, true>>, nn::Repeat<2, Linear<9, true>>, Linear<2, true>>,
                 sk::Shape<4>>();
}
TEST_CASE("a worker may be some layers behind another, in scratch memory of other widths", "[nn]") {
  // Copy reads its input when the first worker has run the wide block, whose edges lie in the same memory.
  using Net = nn::Sequential<nn::Sequential<Linear<3>, Copy<true>>, Linear<70>,
                             nn::Sequential<Copy<false>, Copy<false>, Copy<false>>, Linear<2>>;
  using Model = Double<Net, sk::Shape<4>>;
  Model model{sk::Seed{5}};
  Data<Model> data(7);
  const auto alone = gradient(model, data.batch, {.execution = sk::Execution::layer_wise, .threads = 1});
  for (const int threads : {2, 3}) {
    passed = false;
    const auto g = gradient(model, data.batch, {.execution = sk::Execution::layer_wise, .threads = threads});
    double worst = 0;
    for (std::size_t i = 0; i < g.size(); ++i) worst = support::larger(worst, g[i] - alone[i]);
    CHECK(worst < 1e-13);
  }
}
TEST_CASE("statistics of the batch are those of all workers", "[nn]") {
  check_gradient<nn::Sequential<Linear<6>, Center, Tanh, nn::Residual<nn::Sequential<Linear<6>, Center>>, Linear<2>>,
                 sk::Shape<4>>(true);
}
TEST_CASE("a layer of a user's may sum more values than workers exchange at once; ranks are asked once", "[nn]") {
  using Model = Double<nn::Sequential<Center, Linear<2>>, sk::Shape<5000>>;
  struct Ranks final : nn::GradientSink {  // of two ranks that have the same samples
    void gradient_ready(long, long) override {}
    void reduce_statistics(double* values, long n) override {
      lengths.push_back(n);
      for (long i = 0; i < n; ++i) values[i] *= 2;
    }
    std::vector<long> lengths;
  };
  Model model{sk::Seed{5}};
  Data<Model> data(7);
  const auto alone = gradient(model, data.batch, {.threads = 1});
  for (const int threads : {1, 2, 3}) {
    Ranks ranks;
    sk::Executor executor{model, nn::Mse{}, {.capacity = 7, .threads = threads}};
    executor.workers().run([&](sk::Worker& w) {
      executor.forward_backward(w, data.batch, {.scale = 1 / executor.expected_batch_weight(7)}, {&ranks, &ranks});
      w.barrier();
      if (w.index == 0) executor.finish();
    });
    CHECK(ranks.lengths == std::vector<long>{5001});
    double worst = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) worst = support::larger(worst, model.gradients()[i] - alone[i]);
    CHECK(worst < 1e-13);
  }
}
TEST_CASE("a fused pair gives what its parts give", "[nn]") {
  using Fused = Double<
      nn::Sequential<naive::Plain<5>, naive::Squash, nn::Repeat<2, nn::Sequential<naive::Plain<5>, naive::Squash>>, Linear<2>>,
      sk::Shape<4>>;
  using Apart = Double<nn::Sequential<Linear<5>, Tanh, nn::Repeat<2, nn::Sequential<Linear<5>, Tanh>>, Linear<2>>, sk::Shape<4>>;
  STATIC_REQUIRE(nn::analyze<Fused::fused>({1, {4}}).layer_nodes == Fused::sizes.layer_nodes);
  STATIC_REQUIRE(!std::same_as<Fused::fused, Fused::network>);
  Fused a{sk::Seed{5}};
  Apart b{sk::Seed{5}};
  Data<Fused> data(6);
  const auto ga = gradient(a, data.batch, {.threads = 2}), gb = gradient(b, data.batch, {.threads = 2});
  REQUIRE(ga.size() == gb.size());
  for (std::size_t i = 0; i < ga.size(); ++i) CHECK(ga[i] == Approx(gb[i]).margin(1e-13).epsilon(0));
}

TEST_CASE("more workers than samples, and no samples at all", "[nn]") {
  using Model = Double<nn::Sequential<Linear<5, true>, Tanh, Linear<3>>, sk::Shape<4>>;
  Model model{sk::Seed{5}};
  Data<Model> data(2);
  for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
    const auto one = gradient(model, data.part(0, 1), {.execution = execution, .threads = 1});
    const auto many = gradient(model, data.part(0, 1), {.execution = execution, .threads = 4});
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == Approx(one[i]).margin(1e-13).epsilon(0));
    for (double g : gradient(model, data.part(0, 0), {.execution = execution, .threads = 2})) CHECK(g == 0);
  }
}

TEST_CASE("gradients of parts add up to that of the whole", "[nn]") {
  using Model = Double<nn::Sequential<Linear<5, true>, Tanh, Linear<3>>, sk::Shape<4>>;
  Model model{sk::Seed{5}};
  Data<Model> data(9);
  for (int threads : {1, 2, 3}) {
    const auto whole = gradient(model, data.batch, {.execution = sk::Execution::layer_wise, .threads = threads});
    sk::Executor executor{model, nn::Mse{}, {.capacity = 5, .execution = sk::Execution::layer_wise, .threads = threads}};
    const double scale = 1 / executor.expected_batch_weight(9);
    executor.forward_backward(data.part(0, 5), {.scale = scale});
    const auto sums = executor.forward_backward(data.part(5, 9), {.scale = scale, .accumulate = true});
    CHECK(sums.weight == 27);
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(model.gradients()[i] == Approx(whole[i]).margin(1e-13).epsilon(0));
  }
}

TEST_CASE("an evaluation between the calls of an accumulation leaves its sums and gradients alone", "[nn]") {
  using Model = Double<nn::Sequential<Linear<5, true>, Tanh, Linear<3>>, sk::Shape<4>>;
  Model model{sk::Seed{5}};
  Data<Model> data(9);
  for (int threads : {1, 2}) {
    sk::Executor executor{model, nn::Mse{}, {.capacity = 9, .execution = sk::Execution::layer_wise, .threads = threads}};
    const double scale = 1 / executor.expected_batch_weight(9);
    executor.forward_backward(data.part(0, 5), {.scale = scale});
    const auto plain = executor.forward_backward(data.part(5, 9), {.scale = scale, .accumulate = true});
    const std::vector<double> gradients(model.gradients().begin(), model.gradients().end());
    executor.forward_backward(data.part(0, 5), {.scale = scale});
    const auto evaluated = executor.evaluate(data.part(0, 9));
    const auto sums = executor.forward_backward(data.part(5, 9), {.scale = scale, .accumulate = true});
    CHECK(sums.weight == plain.weight);
    CHECK(sums.loss == plain.loss);
    CHECK(evaluated.weight == 27);
    CHECK(executor.evaluate(data.part(0, 2)).weight == 6);
    CHECK(std::equal(gradients.begin(), gradients.end(), model.gradients().begin()));
  }
}

TEST_CASE("gradients that a call was making which threw make no step, and none are added to them", "[nn]") {
  using Model = Double<nn::Sequential<Linear<5, true>, Tanh, Throws, Linear<3>>, sk::Shape<4>>;
  Model model{sk::Seed{5}};
  Data<Model> data(4);
  sk::optim::BoundOptimizer optimizer{sk::optim::Sgd{.lr = 0.1f}, model};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 1}};
  executor.forward_backward(data.batch);
  optimizer.step(model);
  executor.forward_backward(data.batch);
  throws = true;
  CHECK_THROWS_WITH(executor.forward_backward(data.batch), "in backward");
  throws = false;
  CHECK_THROWS_WITH(optimizer.step(model), Catch::Contains("has thrown"));
  CHECK_THROWS_WITH(executor.forward_backward(data.batch, {.accumulate = true}), Catch::Contains("which threw"));
  executor.forward_backward(data.batch);
  optimizer.step(model);
}

TEST_CASE("gradients are reported from the back, without gaps, each final", "[nn]") {
  using Model =
      Double<nn::Sequential<Linear<5>, Tanh, nn::Repeat<2, Linear<5, true>>, nn::Residual<Linear<5>>, Linear<3>>, sk::Shape<4>>;
  Model model{sk::Seed{5}};
  Data<Model> data(8);
  const auto expected = gradient(model, data.batch, {.execution = sk::Execution::layer_wise, .threads = 1});
  for (int threads : {1, 2, 3}) {
    sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .execution = sk::Execution::layer_wise, .threads = threads}};
    struct Log final : nn::GradientSink {
      explicit Log(Model& m) : model(&m) {}
      void gradient_ready(long begin, long end) override {
        if (begin == end) return;
        REQUIRE(end == next);
        for (long i = begin; i < end; ++i)
          seen[static_cast<std::size_t>(i)] = model->gradient_arena()[static_cast<std::size_t>(i)];
        next = begin;
        ++reports;
      }
      void reduce_statistics(double*, long) override { FAIL("no layer here has statistics"); }
      Model* model;
      long next = Model::sizes.stored + sk::gradient_tail;
      int reports = 0;
      std::vector<double> seen = std::vector<double>(static_cast<std::size_t>(Model::sizes.stored + sk::gradient_tail));
    } log{model};
    for (int step = 0; step < 3; ++step) {
      log.next = Model::sizes.stored + sk::gradient_tail;
      log.reports = 0;
      executor.workers().run([&](sk::Worker& w) {
        executor.forward_backward(w, data.batch, {.scale = 1 / executor.expected_batch_weight(8)}, {.gradients = &log});
        w.barrier();
        if (w.index == 0) executor.finish();
        w.barrier();
      });
      REQUIRE(log.next == 0);
      if (threads == 1) CHECK(log.reports == 5);  // a report a layer
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(log.seen[i] == Approx(expected[i]).margin(1e-13).epsilon(0));
      CHECK(log.seen[expected.size() + 1] == 24);  // the weight of the batch travels behind the gradients
    }
  }
}

TEST_CASE("a pass refuses what it cannot do", "[nn]") {
  Double<nn::Sequential<Linear<5>, Center>, sk::Shape<4>> coupled{sk::Seed{1}};
  CHECK_THROWS_WITH((sk::Executor{coupled, nn::Mse{}, {.capacity = 4, .execution = sk::Execution::depth_first}}),
                    Catch::Contains("use Execution::layer_wise"));
  CHECK_THROWS_WITH((sk::Executor{coupled, nn::Mse{}, {.capacity = 4, .execution = static_cast<sk::Execution>(3)}}),
                    Catch::Contains("Executor: .execution is 3"));
  CHECK_THROWS_WITH((sk::Executor{coupled, nn::Mse{}, {.capacity = 4, .denormals = static_cast<sk::Denormals>(2)}}),
                    Catch::Contains("give flush or keep"));
  CHECK_THROWS_WITH((sk::Executor{coupled, nn::Mse{}, {}}), Catch::Contains(".capacity must be given"));
  CHECK_THROWS_WITH((sk::Executor{coupled, nn::Mse{}, {.capacity = 1L << 62}}),
                    Catch::Contains("more than any memory has room for"));
}

namespace {
/// Twelve positions of three values, in samples of Input.
template <class Input> struct Positions {
  static constexpr long each = Input::count / 3;
  std::vector<double> x;
  std::vector<std::int32_t> labels{0, 2, 1, 2, 2, 0, -1, 2, 0, 1, 1, 1};
  Positions() {
    for (std::size_t i = 0; i < 36; ++i) x.push_back(sk::random_uniform(1, 0, i) - 0.5);
  }
  sk::BatchView<double> batch() const {
    return {.x = x.data(), .pitch = 3 * each, .labels = labels.data(), .count = 12 / each, .labels_each = each};
  }
};
template <class Input> std::vector<double> of_positions(const Positions<Input>& data, sk::ExecutorOptions options) {
  using Model = sk::Model<nn::Sequential<own_layers::Scale, nn::Tanh>, Input, sk::Cpu, double>;
  Model model{sk::Seed{5}};
  options.capacity = data.batch().count;
  sk::Executor executor{model, nn::CrossEntropy{.class_weights = {1, 2, 3}, .ignore_label = -1}, options};
  const nn::LossSums sums = executor.forward_backward(data.batch());
  std::vector<double> all{sums.loss, sums.weight, sums.correct, executor.evaluate(data.batch()).loss};
  all.insert(all.end(), model.gradients().begin(), model.gradients().end());
  return all;
}
}  // namespace

TEST_CASE("Samples of several positions, each with its label, are as many samples of one", "[nn]") {
  const Positions<sk::Shape<3>> alone;
  const Positions<sk::Shape<4, 3>> four;
  const Positions<sk::Shape<2, 2, 3>> image;
  const auto expected = of_positions(alone, {.threads = 1});
  CHECK(expected[1] == 1 + 3 + 2 + 3 + 3 + 1 + 3 + 1 + 2 + 2 + 2);
  for (int threads : {1, 2, 4})
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      const sk::ExecutorOptions options{.execution = execution, .block = 2, .threads = threads};
      for (const auto& other : {of_positions(four, options), of_positions(image, options)}) {
        REQUIRE(other.size() == expected.size());
        for (std::size_t i = 0; i < other.size(); ++i) CHECK(other[i] == Approx(expected[i]).epsilon(1e-13));
      }
    }
}

TEST_CASE("A pass refuses another number of labels, and names sample and position of a wrong one", "[nn]") {
  Positions<sk::Shape<4, 3>> data;
  sk::Model<own_layers::Scale, sk::Shape<4, 3>, sk::Cpu, double> model;
  sk::Executor executor{model, nn::CrossEntropy{.ignore_label = -1}, {.capacity = 3, .threads = 2}};
  auto batch = data.batch();
  batch.labels_each = 1;
  CHECK_THROWS_WITH(executor.forward_backward(batch), Catch::Contains("1 labels a sample, the network's output 4 positions"));
  CHECK_THROWS_WITH(executor.evaluate(batch), Catch::Contains("1 labels a sample"));
  data.labels[9] = 3;
  CHECK_THROWS_WITH(executor.evaluate(data.batch()), Catch::Contains("sample 2 has the label 3 at position 1"));
}

TEST_CASE("A loop by hand has the gradient of the mean that it is told, by the weights of its samples", "[nn]") {
  sk::Model<Linear<3>, sk::Shape<2>, sk::Cpu, double> model{sk::Seed{1}};
  std::vector<double> x(4 * sk::row_pitch(2));
  for (std::size_t i = 0; i < 4; ++i) x[i * 2] = static_cast<double>(i) - 1.2, x[i * 2 + 1] = 0.5 * static_cast<double>(i);
  const std::vector<std::int32_t> labels{0, -1, 2, -1};
  const sk::BatchView<double> batch{.x = x.data(), .pitch = 2, .labels = labels.data(), .count = 4};
  for (const int threads : {1, 2}) {
    sk::Executor executor{
        model, nn::CrossEntropy{.class_weights = {1, 2, 3}, .ignore_label = -1}, {.capacity = 4, .threads = threads}};
    executor.forward_backward(batch);
    const double gradient = std::as_const(model).gradients()[0], h = 1e-5, middle = model.parameters()[0];
    model.modify()[0] = middle + h;
    const double up = executor.evaluate(batch).mean();
    model.modify()[0] = middle - h;
    const double down = executor.evaluate(batch).mean();
    model.modify()[0] = middle;
    CHECK(gradient == Approx((up - down) / (2 * h)).epsilon(1e-7));
  }
}

namespace {
using Three = sk::Model<Linear<3>, sk::Shape<2>, sk::Cpu, double>;
/// Six samples of two values, and their labels.
struct Six {
  std::vector<double> x = std::vector<double>(12);
  std::vector<std::int32_t> labels{0, -1, 2, 1, -1, 2};
  Six() {
    for (std::size_t i = 0; i < 12; ++i) x[i] = sk::random_uniform(3, 0, i) - 0.5;
  }
  /// Samples [begin, end).
  sk::BatchView<double> part(long begin, long end) const {
    return {.x = x.data() + 2 * begin, .pitch = 2, .labels = labels.data() + begin, .count = end - begin};
  }
};
std::vector<double> gradient_of(const Three& model) { return {model.gradients().begin(), model.gradients().end()}; }
void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-13).margin(1e-15));
}
/// The gradient that ranks have which take the samples between two cuts each, in `calls` calls, and add up theirs.
std::vector<double> gradient_of_ranks(const Six& data, const nn::CrossEntropy& loss, const std::vector<long>& cuts, long calls,
                                      long of_samples) {
  const std::size_t ranks = cuts.size() - 1;
  std::vector<std::unique_ptr<Three>> models;
  std::vector<std::unique_ptr<sk::Executor<Three, nn::CrossEntropy>>> executors;
  nn::LossSums all;
  for (std::size_t r = 0; r < ranks; ++r) {
    models.push_back(std::make_unique<Three>(sk::Seed{1}));
    executors.push_back(std::make_unique<sk::Executor<Three, nn::CrossEntropy>>(
        *models[r], loss, sk::ExecutorOptions{.capacity = 6, .threads = 1}));
    const long n = cuts[r + 1] - cuts[r];
    nn::LossSums own;
    for (long c = 0; c < calls; ++c)
      own = executors[r]->forward_backward(data.part(cuts[r] + n * c / calls, cuts[r] + n * (c + 1) / calls),
                                           {.of_samples = of_samples, .accumulate = c > 0});
    all += own;
  }
  std::vector<double> sum;
  for (std::size_t r = 0; r < ranks; ++r) {
    executors[r]->divide_by_weight(all.weight);
    const auto own = gradient_of(*models[r]);
    sum.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) sum[i] += own[i];
  }
  return sum;
}
}  // namespace

TEST_CASE("Divided by the weight of all samples, the gradient is one mean's on any ranks and in any calls", "[nn]") {
  const Six data;
  for (const nn::CrossEntropy& loss :
       {nn::CrossEntropy{.class_weights = {1, 2, 3.5f}, .ignore_label = -1}, nn::CrossEntropy{.ignore_label = -1}}) {
    Three model{sk::Seed{1}};
    sk::Executor executor{model, loss, {.capacity = 6, .threads = 2}};
    const double weight = executor.forward_backward(data.part(0, 6)).weight;
    const auto expected = gradient_of(model);
    executor.divide_by_weight(weight);  // it is already
    CHECK(gradient_of(model) == expected);
    check_close(gradient_of_ranks(data, loss, {0, 6}, 2, 6), expected);
    check_close(gradient_of_ranks(data, loss, {0, 3, 6}, 1, 6), expected);
    check_close(gradient_of_ranks(data, loss, {0, 2, 6}, 2, 6), expected);
    check_close(gradient_of_ranks(data, loss, {0, 6, 6}, 1, 6), expected);     // a rank without samples
    check_close(gradient_of_ranks(data, loss, {0, 1, 2, 6}, 1, 0), expected);  // each a mean of its own; one weighs nothing
  }
}

TEST_CASE("Gradients of two scales are not added up, nor divided by a weight", "[nn]") {
  const Six data;
  Three model{sk::Seed{1}};
  sk::Executor executor{model, nn::CrossEntropy{.ignore_label = -1}, {.capacity = 6, .threads = 1}};
  const auto refused = [&](double weight, const char* words) {
    CHECK_THROWS_WITH(executor.divide_by_weight(weight), Catch::Contains(words));
  };
  refused(4, "divide_by_weight: the model has no new gradients");
  executor.forward_backward(data.part(2, 4));
  CHECK_THROWS_WITH(executor.forward_backward(data.part(0, 2), {.accumulate = true}),
                    "forward_backward: the samples of this call have the weight 1 (class_weights, ignore_label, the loss's own "
                    "weight()) where 2 is their number, and .accumulate adds to a mean of another weight: give each call "
                    ".of_samples, all samples of the "
                    "step, and after the last executor.divide_by_weight(sums.weight)");
  refused(4, "divide_by_weight: the model has no new gradients");
  executor.forward_backward(data.part(0, 2));
  CHECK_NOTHROW(executor.forward_backward(data.part(2, 4), {.accumulate = true}));  // the sum of two means
  refused(3, "have made no part of one mean: give each the same .of_samples");
  executor.forward_backward(data.part(0, 2), {.scale = 0.5});
  refused(1, "have made no part of one mean");
  executor.forward_backward(data.part(0, 3), {.of_samples = 6});
  refused(-1, "divide_by_weight: the weight is -1: it is the sum of LossSums::weight");
  executor.divide_by_weight(4);
  CHECK_THROWS_WITH(executor.forward_backward(data.part(3, 6), {.of_samples = 6, .accumulate = true}),
                    Catch::Contains("adds to gradients that divide_by_weight has divided already"));
}

namespace {
/// A user's layer that throws on worker 1 while `throws` is set.
struct ThrowsOnOne {
  static inline bool throws = false;
  static constexpr nn::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  template <class In, class Frame> static void forward(Frame& f) {
    if (throws && f.context->worker.index == 1) throw std::runtime_error("of the layer");
    std::copy(f.x, f.x + f.batch * sk::sample_pitch(In::extents), f.y);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) std::copy(f.dy, f.dy + f.batch * sk::sample_pitch(In::extents), f.dx);
  }
};
}  // namespace

TEST_CASE("After a call that threw in its pass those that accumulate are not said to have other weights", "[nn]") {
  sk::Model<nn::Sequential<Linear<3>, ThrowsOnOne>, sk::Shape<2>> model{sk::Seed{1}};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 6, .threads = 2}};
  const std::vector<float> x(6 * 2, 0.5f);
  const std::vector<std::int32_t> labels{0, 1, 2, 0, 1, 2};
  const auto call = [&] {
    auto gradients = model.gradients();
    std::fill(gradients.begin(), gradients.end(), 0.f);
    return executor.forward_backward(sk::BatchView<float>{.x = x.data(), .pitch = 2, .labels = labels.data(), .count = 6},
                                     {.accumulate = true});
  };
  CHECK_NOTHROW(call());
  ThrowsOnOne::throws = true;
  CHECK_THROWS_WITH(call(), "of the layer");
  ThrowsOnOne::throws = false;
  CHECK_NOTHROW(call());
}

TEST_CASE("A loop by hand drops other values in each call, the same on each rank, unless it gives a key", "[nn]") {
  using Model = sk::Model<nn::Sequential<nn::Dropout<>, Linear<8>>, sk::Shape<8>>;
  Model model{sk::Seed{5}};
  const std::vector<float> x(4 * 16, 1.f);
  const std::vector<std::int32_t> labels(4, 1);
  const sk::BatchView<float> batch{.x = x.data(), .pitch = 16, .labels = labels.data(), .count = 4};
  sk::Executor one{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 1}},
      rank{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 2}};
  const auto outputs = [&](auto& executor, sk::ExecutorCall call) {
    executor.forward_backward(batch, call);
    return std::vector<float>(executor.outputs(), executor.outputs() + 4 * executor.output_pitch);
  };
  const auto first = outputs(one, {}), second = outputs(one, {}), added = outputs(one, {.accumulate = true});
  CHECK(first != second);
  CHECK(second != added);
  CHECK(outputs(rank, {}) == first);
  CHECK(outputs(rank, {}) == second);
  CHECK(outputs(one, {.key = 7}) == outputs(one, {.key = 7}));
  CHECK(outputs(one, {.key = 7}) != outputs(one, {.key = 8}));
}
