// SPDX-License-Identifier: Apache-2.0
// Weights that the last step of an epoch, or the one before a commit, has made infinite: no loss has shown them yet.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/adagrad.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/not_finite.hpp>
#include <skein/train/trainer.hpp>

#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr float infinite = std::numeric_limits<float>::infinity();
using First = nn::Sequential<nn::Linear<6>, nn::Relu>;
using Second = nn::Sequential<nn::Linear<1>>;
struct Net : nn::Sequential<nn::Linear<6>, nn::Relu, nn::Linear<1>> {};
using Model = sk::Model<Net, sk::Shape<3>>;

/// 40 samples of a linear function. A large one makes large gradients.
auto points(float scale = 1) {
  sk::Tensor<float, 2> x{sk::dims(40, 3)}, y{sk::dims(40, 1)};
  for (long i = 0; i < 40; ++i) {
    for (long j = 0; j < 3; ++j) x(i, j) = sk::random_uniform(5, 0, static_cast<std::uint64_t>(3 * i + j)) - 0.5f;
    y(i, 0) = scale * (x(i, 0) - 2 * x(i, 1));
  }
  return sk::data::from_tensors(x, y);
}
sk::FitOptions options() { return {.epochs = 1, .batch = 10, .seed = sk::Seed{1}, .progress = false, .threads = 1}; }

/// A step that makes a weight infinite, as a rate far too large does.
struct Breaks {
  Model& model;
  std::int64_t step;
  void on_update(std::int64_t n) const {
    if (n == step) model.modify()[0] = infinite;
  }
};
/// An outer optimizer whose array overflows while weights stay finite, as a second moment does.
struct Overflows {
  float lr = 0.7f;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr void element(const sk::optim::UpdateRates<S>& at, S gradient, S& value, S* state) const {
    state[0] = infinite;
    value -= at.lr * gradient;
  }
};
/// Two ranks with a stage each, of which each step has all samples.
template <class Precision = sk::precision::fp32> void fit_of_two_stages(const sk::data::DatasetView& data,
                                                                        const sk::optim::Sgd& optimizer, float bias = 0,
                                                                        sk::FitOptions how = options()) {
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const sk::parallel::Pipeline<First, Second> pipeline{world, {.micro_batches = 2}};
    auto model = pipeline.model<sk::Shape<3>, sk::Cpu, Precision>(sk::Seed{1});
    if (const auto lease = model.modify(); world.rank() == 0) model.parameters(0)[Model::parameter("0.bias").offset] = bias;
    sk::Trainer trainer{model, nn::Mse{}, optimizer, pipeline};
    how.batch = 40;
    trainer.fit(data, how);
  });
}
/// A train step that cannot evaluate.
struct Fails {
  using Scalar = float;
  static constexpr long OutputPitch = 1;
  Model& trained;
  Model& model() { return trained; }
  nn::LossSums evaluate(const int&) { throw std::bad_alloc(); }
  const float* outputs() const { return nullptr; }
};
struct Batch {
  long count = 0;
  operator int() const { return 0; }
};
/// One that makes a value of the optimizer's last array infinite: of what this rank has of it.
template <class Trainer> struct BreaksState {
  Trainer& trainer;
  std::int64_t step;
  void on_update(std::int64_t n) const {
    auto& optimizer = trainer.train_step().optimizer();
    if (n == step) optimizer.array(optimizer.arrays() - 1).data[0] = infinite;
  }
};
/// What a fit of a network says of it on one rank.
template <class Optimizer, class... Policy>
std::string said_of_state(Model& model, const Optimizer& optimizer, sk::OnNan on_nan = sk::OnNan::stop, const Policy&... policy) {
  sk::Trainer trainer{model, nn::Mse{}, optimizer, policy...};
  sk::FitOptions how = options();
  how.on_nan = on_nan;
  how.callbacks = {BreaksState<decltype(trainer)>{trainer, 2}};
  return support::thrown<sk::NotFiniteError>([&] { trainer.fit(points(), how); });
}
}  // namespace

TEST_CASE("a fit whose only step makes infinite weights of a finite loss does not return as if it were well", "[train]") {
  const auto data = points(1e4f);
  sk::FitOptions how = options();
  how.batch = 40;
  for (const sk::OnNan on_nan : {sk::OnNan::stop, sk::OnNan::skip, sk::OnNan::go_on}) {
    how.on_nan = on_nan;
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 3e38f}};
    if (on_nan == sk::OnNan::go_on) {
      CHECK(std::isfinite(trainer.fit(data, how).back().training.loss));
      continue;
    }
    const std::string said = support::thrown<sk::NotFiniteError>([&] { trainer.fit(data, how); });
    CHECK_THAT(said, Catch::StartsWith("fit: a weight of layer '0' (Linear<6>) is not finite after step 1 (epoch 1), whose own "
                                       "loss was finite; the rate is 3e+38, the gradients' norm ") &&
                         Catch::Contains("No step mends that: begin anew, or go on from a checkpoint"));
  }
}

TEST_CASE("infinite weights push no good ones out of the checkpoint's folder", "[train]") {
  const auto data = points();
  const support::TemporaryFolder folder;
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}};
  sk::FitOptions how = options();
  how.checkpoint = {.folder = folder / "run", .every = 1, .keep = 2};
  how.callbacks = {Breaks{model, 2}};
  CHECK_THAT(support::thrown<sk::NotFiniteError>([&] { trainer.fit(data, how); }),
             Catch::StartsWith("fit: a weight of layer '0' (Linear<6>) is not finite after step 2 (epoch 1)"));
  CHECK(sk::train::CommitFolder(folder / "run").steps() == std::vector<std::int64_t>{1});
}

TEST_CASE("ranks that end with infinite weights all say so, or report the one that does", "[train]") {
  const auto data = points();
  std::vector<std::string> said(2);
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, sk::parallel::DataParallel{world}};
    sk::FitOptions how = options();
    how.callbacks = {Breaks{model, 4}};
    said[rank] = support::thrown<sk::NotFiniteError>([&] { trainer.fit(data, how); });
  });
  for (const std::string& text : said)
    CHECK_THAT(text, Catch::StartsWith("fit: a weight of layer '0' (Linear<6>) is not finite"));

  CHECK_THROWS_WITH(sk::spawn(2,
                              [&](sk::ThreadComm& world) {
                                Model model{sk::Seed{3}};
                                const sk::parallel::ModelAverage policy{world, sk::parallel::Period<8>{}};
                                sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, policy};
                                sk::FitOptions how = options();
                                if (world.rank() == 1) how.callbacks = {Breaks{model, 4}};
                                trainer.fit(data, how);
                              }),
                    Catch::Contains("a weight of layer '0' (Linear<6>) is not finite after step 4"));

  CHECK_THROWS_WITH(fit_of_two_stages(points(1e4f), {.lr = 3e38f}), Catch::Contains("is not finite after step 1 (epoch 1)"));
}

TEST_CASE("a pipeline has made the step whose loss is not finite, and its message says so", "[train]") {
  sk::Tensor<float, 2> x{sk::dims(40, 3)}, y{sk::dims(40, 1)};
  x(17, 1) = std::numeric_limits<float>::infinity();
  const auto data = sk::data::from_tensors(x, y, sk::data::NonFinite::keep);
  CHECK_THROWS_WITH(fit_of_two_stages(data, {.lr = 0.05f}), Catch::Contains("the loss of step 1 (epoch 1) is ") &&
                                                                Catch::Contains("Each stage has made its update all the same") &&
                                                                !Catch::Contains("The weights are those before this step"));
}

TEST_CASE("a pipeline has skipped the step whose scaled loss is not finite, and its message says so", "[train]") {
  sk::Tensor<float, 2> x{sk::dims(40, 3)}, y{sk::dims(40, 1)};
  x(17, 1) = infinite;
  const auto data = sk::data::from_tensors(x, y, sk::data::NonFinite::keep);
  sk::FitOptions how = options();
  how.step.loss_scaling = sk::optim::LossScaling::fixed(1);
  CHECK_THROWS_WITH(fit_of_two_stages<sk::precision::fp16>(data, {.lr = 0.05f}, 0, how),
                    Catch::Contains("the loss of step 1 (epoch 1) is ") &&
                        Catch::Contains("The weights are those before this step") && !Catch::Contains("Each stage has made"));
}

TEST_CASE("what is frozen may be infinite in a stage of a pipeline, too", "[train]") {
  const auto data = points();
  CHECK_NOTHROW(fit_of_two_stages(data, {.lr = 0.05f, .groups = sk::optim::frozen("0.bias")}, -infinite));  // Relu makes it 0
  CHECK_THROWS_WITH(fit_of_two_stages(data, {.lr = 0.05f, .groups = sk::optim::frozen("2.bias")}, -infinite),
                    Catch::Contains("a weight of layer '0' (Linear<6>) is not finite after step 1 (epoch 1)"));
}

TEST_CASE("infinite statistics of a normalisation, and factors of Kfac, are no state to keep", "[train]") {
  sk::Tensor<float, 2> x{sk::dims(40, 3)}, y{sk::dims(40, 1)};
  for (long i = 0; i < 40; ++i)
    for (long j = 0; j < 3; ++j) x(i, j) = sk::random_uniform(5, 0, static_cast<std::uint64_t>(3 * i + j)) - 0.5f;
  x(17, 1) = 1e21f;  // its square is not finite
  const auto data = sk::data::from_tensors(x, y);
  sk::FitOptions how = options();
  how.loader.shuffle = false;
  struct Normalized : nn::Sequential<nn::BatchNorm<>, nn::Linear<1>> {};
  sk::Model<Normalized, sk::Shape<3>> normalized{sk::Seed{3}};
  sk::Trainer trainer{normalized, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}};
  CHECK_THAT(support::thrown<sk::NotFiniteError>([&] { trainer.fit(data, how); }),
             Catch::StartsWith("fit: the running statistic '0.running_var' is not finite after step 4 (epoch 1)"));
#if SKEIN_WITH_LAPACK
  const support::TemporaryFolder folder;
  how.checkpoint = {.folder = folder / "run", .every = 1, .keep = 2};
  using Line = nn::Sequential<nn::Linear<1>>;
  sk::Model<Line, sk::Shape<3>> line{sk::Seed{3}};
  line.modify()[sk::Model<Line, sk::Shape<3>>::parameter("0.weight").offset + sk::row_pitch(1)] = 0;  // of the large input
  const auto kfac =
      sk::optim::chain(sk::optim::Kfac{.damping = 0.05f, .factor_every = 1, .inverse_every = 10}, sk::optim::Sgd{.lr = 1e-30f});
  sk::Trainer second{line, nn::Mse{}, kfac};
  CHECK_THAT(support::thrown<sk::NotFiniteError>([&] { second.fit(data, how); }),
             Catch::StartsWith("fit: the factor A of layer 0 (Linear<1>, of those that have factors) is not finite (Kfac) after "
                               "step 2 (epoch 1)"));
  CHECK(sk::train::CommitFolder(folder / "run").steps() == std::vector<std::int64_t>{1});
#endif
}

TEST_CASE("second moments that have overflowed hold their weight for ever: they are no state to keep", "[train]") {
  sk::Tensor<float, 2> x{sk::dims(40, 3)}, y{sk::dims(40, 1)};
  for (long i = 0; i < 40; ++i) {
    for (long j = 0; j < 3; ++j) x(i, j) = sk::random_uniform(5, 0, static_cast<std::uint64_t>(3 * i + j)) - 0.5f;
    y(i, 0) = x(i, 0);
  }
  x(17, 1) = 1e23f;  // the gradient of its weight is finite, and the square of that is not
  const auto data = sk::data::from_tensors(x, y);
  const support::TemporaryFolder folder;
  sk::FitOptions how = options();
  how.loader.shuffle = false;
  how.checkpoint = {.folder = folder / "run", .every = 1, .keep = 2};
  using Line = sk::Model<nn::Sequential<nn::Linear<1>>, sk::Shape<3>>;
  Line line{sk::Seed{3}};
  line.modify()[Line::parameter("0.weight").offset + sk::row_pitch(1)] = 0;  // of the large input
  sk::Trainer trainer{line, nn::Mse{}, sk::optim::Adam{.lr = 1e-30f}};
  CHECK_THAT(
      support::thrown<sk::NotFiniteError>([&] { trainer.fit(data, how); }),
      Catch::StartsWith("fit: the optimizer's array 'optimizer/1/0.weight' is not finite after step 2 (epoch 1), whose own "
                        "loss was finite; the rate is "));
  CHECK(sk::train::CommitFolder(folder / "run").steps() == std::vector<std::int64_t>{1});
}

TEST_CASE("an optimizer's array that is not finite is found whatever has it, but where fit trains on", "[train]") {
  const std::string second = "fit: the optimizer's array 'optimizer/1/0.weight' is not finite after step 4 (epoch 1)";
  Model model{sk::Seed{3}};
  for (const sk::OnNan on_nan : {sk::OnNan::stop, sk::OnNan::skip})
    CHECK_THAT(said_of_state(model, sk::optim::Adam{}, on_nan), Catch::StartsWith(second));
  CHECK_THAT(said_of_state(model, sk::optim::Adam{}, sk::OnNan::go_on), !Catch::Contains("not finite"));
  CHECK_THAT(said_of_state(model, sk::optim::Adam{}), Catch::Contains(", the gradients' norm "));
  const std::string scaled = said_of_state(model, sk::optim::chain(sk::optim::Lars{}, sk::optim::Adam{}));
  CHECK_THAT(scaled, Catch::Contains("is not finite after step 4") && !Catch::Contains("norm "));  // Lars has scaled them
  CHECK_THAT(said_of_state(model, sk::optim::Adagrad{}), Catch::StartsWith("fit: the optimizer's array 'optimizer/0/0.weight'"));
  // Each of two ranks has a part of the arrays, and finds its own.
  CHECK_THROWS_WITH(sk::spawn(2,
                              [&](sk::ThreadComm& world) {
                                Model own{sk::Seed{3}};
                                const std::string said =
                                    said_of_state(own, sk::optim::Adam{}, sk::OnNan::stop,
                                                  sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}});
                                throw sk::ArgumentError(said);
                              }),
                    Catch::Contains("fit: the optimizer's array 'optimizer/1/"));
  CHECK_THROWS_WITH(sk::spawn(2,
                              [&](sk::ThreadComm& world) {
                                const sk::parallel::Pipeline<First, Second> pipeline{world, {.micro_batches = 2}};
                                auto stages = pipeline.model<sk::Shape<3>>(sk::Seed{1});
                                sk::Trainer trainer{stages, nn::Mse{}, sk::optim::Adam{}, pipeline};
                                sk::FitOptions how = options();
                                if (world.rank() == 1) how.callbacks = {BreaksState<decltype(trainer)>{trainer, 2}};
                                trainer.fit(points(), how);
                              }),
                    Catch::Contains("the optimizer's array 'optimizer/1/2.weight' is not finite after step 4"));
}

TEST_CASE("the arrays of DiLoCo's outer optimizer are looked at before a commit", "[train]") {
  const support::TemporaryFolder folder;
  sk::SelfComm world;
  Model model{sk::Seed{3}};
  const sk::parallel::ModelAverage policy{world, sk::parallel::Period<2>{}, sk::parallel::DiLoCo{Overflows{}}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 1e-3f}, policy};
  sk::FitOptions how = options();
  how.checkpoint = {.folder = folder / "run", .every = 1, .keep = 4};
  CHECK_THAT(support::thrown<sk::NotFiniteError>([&] { trainer.fit(points(), how); }),
             Catch::StartsWith("fit: array 0 of the outer optimizer (DiLoCo) is not finite after step 2 (epoch 1)"));
  CHECK(sk::train::CommitFolder(folder / "run").steps() == std::vector<std::int64_t>{1});
}

TEST_CASE("steps that overflow by a scale which cannot fall are not skipped for ever without a word", "[train]") {
  using Half = sk::Model<Net, sk::Shape<3>, sk::Cpu, sk::precision::fp16>;
  const auto data = points();
  sk::FitOptions how = options();
  how.epochs = 2;
  Half model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}};
  how.step.loss_scaling = sk::optim::LossScaling::fixed(1e30);
  CHECK_THAT(support::thrown<sk::NotFiniteError>([&] { trainer.fit(data, how); }),
             Catch::StartsWith("fit: all steps of an epoch were skipped: their gradients overflow by the scale of the loss"));
  how.step.loss_scaling = sk::optim::LossScaling{.initial = 1e12, .interval = 0, .greatest = 1e12};  // falls from there
  how.batch = 1;
  const sk::History history = trainer.fit(data, how);
  for (const sk::train::EpochRecord& epoch : history.epochs()) CHECK(std::isfinite(epoch.training.loss));
  CHECK(trainer.train_step().steps() > 0);
}

TEST_CASE("weights that are frozen may be infinite, and a part of the weights is named by its place", "[train]") {
  using sk::train::first_weight_not_finite;
  const std::vector<sk::train::LayerRange> layers{{"0", "Linear<2>", 0, 6}, {"1", "Linear<1>", 6, 9}};
  std::vector<double> weights(9, 1.0);
  weights[4] = infinite;
  const auto found = [&](long begin, long end, const std::vector<sk::optim::ParameterGroupRange>& ranges) {
    const std::span<const double> part(weights.data() + begin, static_cast<std::size_t>(end - begin));
    return first_weight_not_finite<double>(part, {begin, end}, layers, {ranges.data(), ranges.size()});
  };
  CHECK(found(0, 9, {}) == "a weight of layer '0' (Linear<2>) is not finite");
  CHECK(found(5, 9, {}).empty());
  CHECK(found(0, 9, {{.begin = 0, .end = 6, .frozen = true}, {.begin = 6, .end = 9}}).empty());
  CHECK(found(0, 9, {{.begin = 0, .end = 4, .frozen = true}, {.begin = 4, .end = 9}}) ==
        "a weight of layer '0' (Linear<2>) is not finite");
  weights[8] = std::nan("");
  CHECK(found(5, 9, {{.begin = 0, .end = 6, .frozen = true}, {.begin = 6, .end = 9}}) ==
        "a weight of layer '1' (Linear<1>) is not finite");
}

TEST_CASE("the search for the first layer restores the weights also where an evaluation throws", "[train]") {
  Model model{sk::Seed{3}};
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  Fails fails{model};
  CHECK_THROWS_AS(sk::train::first_layer_not_finite(fails, Batch{}), std::bad_alloc);
  CHECK(std::vector<float>(model.parameters().begin(), model.parameters().end()) == before);
}

TEST_CASE("what the optimizer remembers of frozen parameters may be infinite, and a part of it is named by its place",
          "[train]") {
  const auto& program = Model::program;
  const sk::plan::Entry first = program.parameters()[0], last = program.parameters()[3];
  std::vector<double> state(static_cast<std::size_t>(program.stored_parameters), 1.0);
  const auto found = [&](long begin, const std::vector<sk::optim::ParameterGroupRange>& ranges) {
    const std::span<const double> part(state.data() + begin, state.size() - static_cast<std::size_t>(begin));
    return sk::train::first_state_not_finite<double>(part, {begin, program.stored_parameters}, "optimizer/0/",
                                                     program.parameters(), program.parts(), {ranges.data(), ranges.size()});
  };
  CHECK(found(0, {}).empty());
  state[static_cast<std::size_t>(first.offset)] = infinite;
  CHECK(found(0, {}) == "the optimizer's array 'optimizer/0/0.weight' is not finite");
  CHECK(found(first.offset + 1, {}).empty());
  const sk::optim::ParameterGroupRange frozen{.begin = first.offset, .end = first.offset + first.stored, .frozen = true};
  CHECK(found(0, {frozen}).empty());
  state[static_cast<std::size_t>(last.offset)] = std::nan("");
  CHECK(found(0, {frozen}) == "the optimizer's array 'optimizer/0/2.bias' is not finite");
  CHECK(found(last.offset, {}) == "the optimizer's array 'optimizer/0/2.bias' is not finite");
}
