// SPDX-License-Identifier: Apache-2.0
// What a fit does where its loss is no finite number, and what its callbacks may ask for: the best weights, another rate.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/averaged_model.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/loss_judge.hpp>
#include <skein/train/trainer.hpp>
#include <skein/train/weights_copy.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
struct Net : nn::Sequential<nn::Linear<6>, nn::Relu, nn::Linear<1>> {};
using Model = sk::Model<Net, sk::Shape<3>>;
constexpr float infinite = std::numeric_limits<float>::infinity();

/// 40 samples of a linear function; in `broken` a sample has an infinite value.
struct Points {
  sk::Tensor<float, 2> x{sk::dims(40, 3)}, y{sk::dims(40, 1)};
  explicit Points(long broken = -1) {
    for (long i = 0; i < 40; ++i) {
      for (long j = 0; j < 3; ++j) x(i, j) = sk::random_uniform(5, 0, static_cast<std::uint64_t>(3 * i + j)) - 0.5f;
      y(i, 0) = x(i, 0) - 2 * x(i, 1);
    }
    if (broken >= 0) x(broken, 1) = infinite;
  }
  auto set() const { return sk::data::from_tensors(x, y, sk::data::NonFinite::keep); }
};
sk::FitOptions options() { return {.epochs = 2, .batch = 10, .seed = sk::Seed{1}, .progress = false, .threads = 1}; }
std::vector<float> weights(const Model& m) { return {m.parameters().begin(), m.parameters().end()}; }
auto trainer_of(Model& model, float rate = 0.05f) { return sk::Trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = rate}}; }

/// What fit says where it stops; the model's weights stay finite.
std::string stops(const sk::FitOptions& how, float rate, long broken = -1, float weight = 0) {
  const Points points(broken);
  const auto data = points.set();
  Model model{sk::Seed{3}};
  if (weight != 0) model.modify()[Model::parameter("2.weight").offset] = weight;
  auto trainer = trainer_of(model, rate);
  try {
    trainer.fit(data, how);
  } catch (const sk::NotFiniteError& e) {
    if (how.clip_norm == 0 && std::isfinite(weight))
      for (float w : weights(model)) CHECK(std::isfinite(w));
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("a fit whose loss becomes infinite stops with step, rate, norm and layer; its weights are those before", "[train]") {
  const std::string said = stops(options(), 1e30f);
  CHECK_THAT(said, Catch::StartsWith("fit: the loss of step 2 (epoch 1) is "));
  CHECK_THAT(said, Catch::Contains("; the rate is 1e+30, the gradients' norm ") &&
                       Catch::Contains("the first layer whose output is not finite is '2' (Linear<1>)") &&
                       Catch::EndsWith("Lower the rate, set .clip_norm, or look at the samples; .on_nan says what fit does about "
                                       "such a step"));
}

TEST_CASE("a sample, a weight and a target that are not finite are named", "[train]") {
  CHECK_THAT(stops(options(), 0.1f, 7),
             Catch::Contains("with all weights zero the outputs are not finite either, so that the samples hold"));
  CHECK_THAT(stops(options(), 0.1f, -1, infinite), Catch::Contains("a weight of layer '2' (Linear<1>) is not finite"));
  CHECK_THAT(stops(options(), 0.1f, -1, 3e38f), Catch::Contains("the network's outputs are finite, the loss of them is not"));
}

TEST_CASE("steps whose loss is not finite are skipped, or made, if fit is told so", "[train]") {
  const Points points(7), clean;
  sk::FitOptions how = options();
  how.loader.shuffle = false;
  how.on_nan = sk::OnNan::skip;
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  const auto data = points.set();
  const sk::History history = trainer.fit(data, how);
  CHECK(trainer.left_out() == 2);
  CHECK(trainer.train_step().steps() == 6);
  CHECK(std::isfinite(history.back().training.loss));

  // The same as a training on the other thirty samples.
  sk::Tensor<float, 2> x(sk::dims(30, 3)), y(sk::dims(30, 1));
  for (long i = 0; i < 30; ++i) {
    for (long j = 0; j < 3; ++j) x(i, j) = clean.x(i + 10, j);
    y(i, 0) = clean.y(i + 10, 0);
  }
  const auto others = sk::data::from_tensors(x, y);
  Model without{sk::Seed{3}};
  auto other = trainer_of(without);
  const sk::History same = other.fit(others, how);
  CHECK(weights(without) == weights(model));
  CHECK(same.back().training.loss == history.back().training.loss);

  how.on_nan = sk::OnNan::go_on;
  CHECK_FALSE(std::isfinite(trainer.fit(data, how).back().training.loss));
  CHECK_FALSE(std::isfinite(weights(model)[0]));
}

TEST_CASE("steps that were left out count at once, also where the fit ends within the epoch", "[train]") {
  sk::FitOptions how = options();
  how.loader.shuffle = false;
  how.on_nan = sk::OnNan::skip;
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  how.callbacks.add([&](sk::train::EpochRecord&) { CHECK(trainer.left_out() == 1); });
  struct Stops {
    void on_update(std::int64_t step) const {
      if (step == 4) throw std::runtime_error("enough");  // the first step of the second epoch that is made
    }
  };
  how.callbacks.add(Stops{});
  const auto data = Points(7).set();
  CHECK_THROWS_WITH(trainer.fit(data, how), "enough");
  CHECK(trainer.left_out() == 2);
}

TEST_CASE("a training of which every step is skipped stops", "[train]") {
  sk::FitOptions how = options();
  how.on_nan = sk::OnNan::skip;
  how.batch = 40;
  CHECK_THAT(stops(how, 0.1f, 7), Catch::StartsWith("fit: all steps of an epoch were left out"));
}

TEST_CASE("a gradient that is not finite is seen where it is clipped", "[train]") {
  sk::FitOptions how = options();
  how.clip_norm = 1;
  const std::string said = stops(how, 0.1f, -1, 1e20f);  // the loss is finite, its gradient's squares are not
  CHECK_THAT(said, Catch::StartsWith("fit: the loss of step 1"));
}

TEST_CASE("early stopping gives the best weights back, whatever ends the fit", "[train]") {
  const Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  std::vector<std::vector<float>> after;
  sk::FitOptions how = options();
  how.epochs = 6;
  how.validate = data;
  how.callbacks = {[&](sk::train::EpochRecord& e, sk::train::FitControl& control) {
                     after.push_back(weights(model));
                     if (e.epoch == 3) control.set_rate_factor(100);  // it diverges from here
                   },
                   sk::train::EarlyStopping{.patience = 2, .restore_best = true}};
  const sk::History history = trainer.fit(data, how);
  REQUIRE(history.size() == 5);
  CHECK(weights(model) == after[2]);
  CHECK(history.epochs()[3].learning_rate == Approx(100 * history.epochs()[2].learning_rate));
  CHECK(trainer.evaluate(data).loss == history.epochs()[2].validation.loss);
}

TEST_CASE("best_model on a regression watches the validation loss", "[train]") {
  const Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  std::vector<int> best;
  sk::FitOptions how = options();
  how.epochs = 4;
  how.validate = data;
  how.callbacks = {sk::train::best_model([&](const sk::train::EpochRecord& e) { best.push_back(e.epoch); })};
  trainer.fit(data, how);
  CHECK(best == std::vector<int>{1, 2, 3, 4});
  how.callbacks = {sk::train::best_model([](const sk::train::EpochRecord&) {}, sk::train::highest("accuracy"))};
  CHECK_THROWS_WITH(trainer.fit(data, how), Catch::Contains("best_model watches 'accuracy', which this fit does not measure"));
}

TEST_CASE("a schedule in epochs and in shares has the lengths of the fit", "[train]") {
  const Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  sk::FitOptions how = options();
  how.epochs = 4;
  how.schedule = sk::optim::warmup(sk::optim::epochs(1)) * sk::optim::cosine();
  how.record_steps = true;
  for (int fit = 0; fit < 2; ++fit) {  // the second begins anew
    const sk::History history = trainer.fit(data, how);
    REQUIRE(history.steps().size() == 16);
    const sk::optim::Schedule steps = sk::optim::warmup(4) * sk::optim::cosine(16);
    for (std::size_t i = 0; i < 16; ++i)
      CHECK(history.steps()[i].learning_rate == Approx(0.05 * static_cast<double>(steps(static_cast<std::int64_t>(i)))));
  }
}

TEST_CASE("averages of the weights: exponential after each step, the mean over the ends of epochs", "[train]") {
  const Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  sk::train::AveragedModel exponential{model, sk::train::ema(0.75)}, mean{model, sk::train::swa(3)};
  std::vector<float> by_hand, sum(weights(model).size(), 0.0f);
  struct Steps {
    std::vector<float>* average;
    Model* model;
    void on_step_end(const sk::train::StepRecord&, sk::train::FitControl&) {
      const auto now = weights(*model);
      if (average->empty()) *average = now;
      for (std::size_t i = 0; i < now.size(); ++i) (*average)[i] = 0.75f * (*average)[i] + 0.25f * now[i];
    }
  };
  sk::FitOptions how = options();
  how.epochs = 4;
  how.callbacks = {exponential, std::ref(mean), Steps{&by_hand, &model}, [&](sk::train::EpochRecord& e) {
                     if (e.epoch < 3) return;
                     const auto now = weights(model);
                     for (std::size_t i = 0; i < now.size(); ++i) sum[i] += now[i] / 2;
                   }};
  trainer.fit(data, how);
  CHECK((exponential.count() == 16 && mean.count() == 2));
  how.callbacks = {exponential, sk::train::EarlyStopping{.watch = sk::train::highest("acuracy")}};  // which no average adds
  CHECK_THROWS_WITH(trainer.fit(data, how),
                    Catch::Contains("fit: EarlyStopping watches 'acuracy', which this fit does not measure"));
  CHECK(exponential.count() == 16);
  const auto first = weights(exponential.model()), second = weights(mean.model());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CHECK(first[i] == Approx(by_hand[i]).margin(1e-6).epsilon(0));
    CHECK(second[i] == Approx(sum[i]).margin(1e-6).epsilon(0));
  }
  auto averaged = trainer_of(exponential.model());
  CHECK(std::isfinite(averaged.evaluate(data).loss));
  const auto bytes = sk::train::to_bytes(exponential);
  sk::train::AveragedModel resumed{model, sk::train::ema(0.75)};
  sk::train::from_bytes(bytes, resumed);
  CHECK((resumed.count() == 16 && weights(resumed.model()) == first));

  using Larger = sk::Model<nn::Sequential<nn::Linear<7>>, sk::Shape<3>>;
  Larger larger{sk::Seed{4}};
  sk::train::AveragedModel other{larger, sk::train::ema(0.75)};
  CHECK_THROWS_WITH(sk::train::from_bytes(bytes, other), Catch::Contains("weights and 0 buffer values, this one"));
  CHECK(other.count() == 0);
  for (const double decay : {-0.5, 1.0, std::nan("")})
    CHECK_THROWS_WITH((sk::train::AveragedModel{larger, sk::train::AverageOptions{.decay = decay}}),
                      Catch::StartsWith("AveragedModel: .decay is "));
  {
    const auto initial = other.model().modify();
    for (std::size_t i = 0; i < initial.size(); ++i) initial[i] = 1e9f;  // far from the weights: only a copy is exact
  }
  other.on_update(1);
  CHECK(std::equal(larger.parameters().begin(), larger.parameters().end(), other.model().parameters().begin()));
}

TEST_CASE("running statistics are those of the steps that were made", "[train]") {
  struct Normalized : nn::Sequential<nn::Linear<6>, nn::BatchNorm<>, nn::Relu, nn::Linear<1>> {};
  using Model = sk::Model<Normalized, sk::Shape<3>>;
  const auto buffers = [](const Model& m) { return std::vector<float>(m.buffers().begin(), m.buffers().end()); };
  const Points points(7), clean;
  const auto broken = points.set();
  sk::Tensor<float, 2> x(sk::dims(20, 3)), y(sk::dims(20, 1));
  for (long i = 0; i < 20; ++i) {
    for (long j = 0; j < 3; ++j) x(i, j) = clean.x(i + 20, j);
    y(i, 0) = clean.y(i + 20, 0);
  }
  const auto others = sk::data::from_tensors(x, y);
  for (const int accumulate : {1, 2}) {  // the first step, of 10 or twice 10 samples, has the broken one
    sk::FitOptions how = options();
    how.epochs = 1, how.batch = 20 / accumulate, how.loader.shuffle = false;
    how.step.accumulate = accumulate;
    how.on_nan = sk::OnNan::skip;
    Model skipped{sk::Seed{3}}, without{sk::Seed{3}}, stopped{sk::Seed{3}}, untouched{sk::Seed{3}};
    sk::Trainer(skipped, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}).fit(broken, how);
    sk::Trainer(without, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}).fit(others, how);
    CHECK(buffers(skipped) == buffers(without));
    CHECK(buffers(skipped) != buffers(untouched));
    how.on_nan = sk::OnNan::stop;
    CHECK_THROWS_AS(sk::Trainer(stopped, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}).fit(broken, how), sk::NotFiniteError);
    CHECK(buffers(stopped) == buffers(untouched));
  }
}

TEST_CASE("ranks that add up their gradients stop at one step, and skip the same ones; others cannot skip", "[train]") {
  const Points points(7);
  const auto data = points.set();
  sk::FitOptions how = options();
  how.loader.shuffle = false;
  std::vector<std::string> said(2), refused(2);
  std::vector<std::vector<float>> after(2);
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const std::size_t rank = static_cast<std::size_t>(world.rank());
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, sk::parallel::DataParallel{world}};
    try {
      trainer.fit(data, how);
    } catch (const sk::NotFiniteError& e) { said[rank] = e.what(); }
    sk::FitOptions skips = how;
    skips.on_nan = sk::OnNan::skip;
    trainer.fit(data, skips);
    after[rank] = weights(model);
    Model own{sk::Seed{3}};
    sk::Trainer drifts{own, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, sk::parallel::ModelAverage{world, sk::parallel::Period<1>{}}};
    try {
      drifts.fit(data, skips);
    } catch (const sk::ArgumentError& e) { refused[rank] = e.what(); }
  });
  for (const std::string& text : refused) CHECK_THAT(text, Catch::StartsWith("fit: .on_nan = OnNan::skip is for"));
  for (const std::string& text : said) CHECK_THAT(text, Catch::StartsWith("fit: the loss of step 1 (epoch 1) is "));
  // The sample is in one rank's half: the other's layers are finite.
  CHECK((said[0].find("so that the samples hold") != said[0].npos) != (said[1].find("so that the samples hold") != said[1].npos));
  CHECK(after[0] == after[1]);
  for (float w : after[0]) CHECK(std::isfinite(w));
}

TEST_CASE("an exchange of gradients that are not finite is left out by all its ranks, whose losses are their own", "[train]") {
  const Points points(12);  // rank 0's, in step 2, which exchanges
  const auto data = points.set();
  sk::FitOptions how = options();
  how.loader.shuffle = false;
  std::vector<std::string> said(2);
  std::vector<std::vector<float>> after(2);
  CHECK_NOTHROW(sk::spawn(2,
                          [&](sk::ThreadComm& world) {
                            const auto rank = static_cast<std::size_t>(world.rank());
                            Model model{sk::Seed{3}};
                            sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f},
                                                sk::parallel::DataParallel{world, sk::parallel::SyncEvery<2>{}}};
                            try {
                              trainer.fit(data, how);
                            } catch (const sk::NotFiniteError& e) { said[rank] = e.what(); }
                            after[rank] = weights(model);
                          },
                          {.deadline = 30}));
  for (const auto& of_rank : after)
    for (const float w : of_rank) CHECK(std::isfinite(w));
  CHECK_THAT(said[0], Catch::StartsWith("fit: the loss of step 2 (epoch 1) is ") && Catch::Contains(", no finite number; ") &&
                          Catch::Contains("so that the samples hold"));
  CHECK_THAT(said[1],
             Catch::StartsWith("fit: the loss of step 2 (epoch 1) is ") &&
                 Catch::Contains(" on this rank; that of another rank, if the step exchanged gradients, or their norm is "
                                 "no finite number; ") &&
                 Catch::Contains("The weights are those before this step") && !Catch::Contains("it is finite without"));
}

namespace {
/// Which of the steps of an epoch by hand each of two ranks leaves out, of which rank 0 has this value in the first.
template <class MakePolicy> std::vector<std::vector<bool>> left_out_by_hand(double clip, float bad, const MakePolicy& policy) {
  Points points;
  points.x(2, 1) = bad;
  const auto data = points.set();
  std::vector<std::vector<bool>> out(2);
  sk::spawn(2,
            [&](sk::ThreadComm& world) {
              auto& own = out[static_cast<std::size_t>(world.rank())];
              Model model{sk::Seed{3}};
              if (std::isfinite(bad)) {  // outputs that are small beside the hidden values, whose gradient is the product of both
                const auto entry = Model::parameter("2.weight");
                auto lease = model.modify();
                for (long i = 0; i < entry.stored; ++i) lease[entry.offset + i] *= 1e-8f;
              }
              sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, policy(world)};
              step.reserve({.capacity = 5, .threads = 2});
              sk::data::Loader<float> loader(data, {.batch = 10, .shuffle = false, .ranks = 2, .rank = world.rank()});
              for (const auto& batch : loader.epoch(0)) {
                step.step(batch, {.clip_norm = clip, .finite = true});
                own.push_back(step.left_out());
              }
              own.push_back(step.steps() == 3);
              for (const float w : weights(model)) own.push_back(std::isfinite(w));
            },
            {.deadline = 5});
  return out;
}
}  // namespace

TEST_CASE("a step by hand with .finite is left out by all ranks or by none, also where each sees its own loss", "[train]") {
  namespace sp = sk::parallel;
  std::vector<bool> expected(5 + weights(Model{sk::Seed{3}}).size(), true);
  expected[1] = expected[2] = expected[3] = false;
  const std::vector<std::vector<bool>> both(2, expected);
  constexpr float overflows = 1e26f;  // the loss is finite, a gradient is not
  for (const auto& [clip, bad] : std::vector<std::pair<double, float>>{{0, infinite}, {1, infinite}, {1, overflows}}) {
    CAPTURE(clip, bad);
    CHECK(left_out_by_hand(clip, bad, [](auto& world) { return sp::DataParallel{world}; }) == both);
    CHECK(left_out_by_hand(clip, bad, [](auto& world) { return sp::DataParallel{world, sp::SyncEvery<2>{}}; }) == both);
    CHECK(left_out_by_hand(clip, bad, [](auto& world) { return sp::ModelAverage{world, sp::Period<1>{}}; }) == both);
    CHECK(left_out_by_hand(clip, bad, [](auto& world) { return sp::Gossip{world, sp::Staleness<2>{}}; }) == both);
    CHECK(left_out_by_hand(clip, bad, [](auto& world) {
            return sp::Compose{sp::DataParallel{world, sp::SyncEvery<2>{}}, sp::ModelAverage{world, sp::Period<3>{}}};
          }) == both);
  }
}
