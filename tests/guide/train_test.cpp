// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of parallel and train. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <skein/parallel.hpp>
#include <skein/skein.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;

struct GuideDigits : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>> {};
using DigitsModel = sk::Model<GuideDigits, sk::Shape<28, 28, 1>>;

// [quote own_policy]
struct Freeze : sk::parallel::PolicyBase {  // puts some of the weights back after every step
  explicit Freeze(long n) : count(n) {}
  long count;
  struct PolicyState : sk::parallel::PolicyState {
    float* weights = nullptr;
    std::vector<float> kept;
    bool after_step(const sk::parallel::StepDone&) {
      for (std::size_t i = 0; i < kept.size(); ++i) weights[i] = kept[i];
      return true;  // they have changed: what is derived of them is made anew
    }
  };
  template <class R> PolicyState bind(const R& replica) const {
    PolicyState s;
    s.weights = replica.parameters.data;
    s.kept.assign(s.weights, s.weights + count);
    return s;
  }
};
// [end]

TEST_CASE("data parallelism", "[guide]") {
  const auto data = sk::data::synthetic_digits(600, sk::Seed{1});
  std::vector<double> curves[2];
  std::vector<sk::parallel::BucketTrace> buckets;
  // [quote data_parallel]
  sk::spawn(2, [&](sk::ThreadComm& world) {
    DigitsModel model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f},
                        sk::parallel::DataParallel{world, {.bucket_bytes = 2048}}};
    const sk::History history = trainer.fit(data, {.epochs = 1, .batch = 100, .record_steps = true, .threads = 1});
    if (world.rank() != 0) return;
    curves[0] = history.losses();
    for (const sk::parallel::BucketTrace& b : trainer.train_step().policy_state().trace())
      buckets.push_back(b);  // of the last step
  });
  // [end]
  CHECK(buckets.size() == 2);
  DigitsModel model{sk::Seed{1}};
  sk::Trainer alone{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  curves[1] = alone.fit(data, {.epochs = 1, .batch = 100, .record_steps = true, .progress = false}).losses();
  REQUIRE(curves[0].size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(curves[0][i] == Approx(curves[1][i]).epsilon(1e-5));

  DigitsModel other{sk::Seed{1}};
  const float first = std::as_const(other).parameters()[0], last = std::as_const(other).parameters()[10000];
  sk::Trainer frozen{other, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, Freeze{100}};
  frozen.fit(data, {.epochs = 1, .batch = 100, .progress = false});
  CHECK(std::as_const(other).parameters()[0] == first);
  CHECK(std::as_const(other).parameters()[10000] != last);
}

// [quote own_metric]
/// F1 of the nines: 2 TP / (2 TP + FP + FN).
const sk::train::OwnMetric f1{"F1 of nines",
                              [](auto output, int label) {  // of one sample; what it returns is added up, over ranks too
                                const bool says = sk::train::argmax(output) == 9, is = label == 9;
                                return std::array<double, 2>{double(says && is), double(says) + double(is)};
                              },
                              [](std::array<double, 2> sums) { return sums[1] > 0 ? 2 * sums[0] / sums[1] : 0; }};
// [end]

TEST_CASE("a metric of one's own", "[guide]") {
  const auto digits = sk::data::synthetic_digits(1000, sk::Seed{1});
  DigitsModel model{sk::Seed{1}};
  sk::train::ConfusionMatrix matrix{10};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 5e-3f}};
  const sk::History history =
      trainer.fit(digits, {.epochs = 6, .batch = 50, .validate = digits, .metrics = {f1, std::ref(matrix)}, .progress = false});
  CHECK(history.epochs().back().validation["F1 of nines"] == Approx(matrix.f1(9)));
  CHECK(matrix.f1(9) > 0);
}

TEST_CASE("a fit that goes on by itself", "[guide]") {
  const support::TemporaryFolder folder;
  const auto digits = sk::data::synthetic_digits(300, sk::Seed{1});
  for (int start = 0; start < 2; ++start) {
    // [quote checkpoint]
    DigitsModel model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 2e-3f}};
    const sk::History history = trainer.fit(
        digits, {.epochs = 2, .batch = 50, .progress = false, .checkpoint = {.folder = folder / "run", .every = 5, .keep = 3}});
    // [end]
    CHECK(history.size() == 2);
    CHECK(trainer.train_step().steps() == 12);
  }
  const std::string last = folder / "run/step_00000012";
  CHECK(sk::train::CheckpointReader(last).contains("parameters/1.weight"));
}

// [quote own_callback]
/// Finishes when the training loss has been above a limit for three epochs in a row.
struct FinishAbove {
  double limit = 0;
  int bad_epochs = 0;  // state: without serialize() it would be 0 again in a program that goes on

  void on_epoch_end(sk::train::EpochRecord& epoch, sk::train::FitControl& control) {
    bad_epochs = epoch.training.loss > limit ? bad_epochs + 1 : 0;
    if (bad_epochs == 3) control.finish("three epochs above the limit");
  }
  template <class Archive> void serialize(Archive& archive, unsigned /*version*/) { (archive & bad_epochs); }
  static std::string saved_as() { return "FinishAbove"; }  // by which a file knows whose state it has
};
// [end]

TEST_CASE("a callback of one's own goes on with its state", "[guide]") {
  const support::TemporaryFolder folder;
  const auto digits = sk::data::synthetic_digits(100, sk::Seed{1});
  for (const int epochs : {2, 6}) {
    DigitsModel model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 2e-3f}};
    const sk::History history = trainer.fit(digits, {.epochs = epochs,
                                                     .batch = 50,
                                                     .callbacks = {FinishAbove{}},
                                                     .progress = false,
                                                     .checkpoint = {.folder = folder / "run"}});
    CHECK(history.size() == (epochs == 2 ? 2 : 3));
  }
}

// [quote hash_of_stages]
template <class StagedModel> std::uint64_t hash_of_stages(StagedModel& model) {  // those of this rank
  sk::Fnv1a hash;
  for (int stage = 0; stage < model.stages; ++stage)  // the spans of a stage that another rank has are empty
    for (const auto& values : {model.parameters(stage), model.buffers(stage)})
      hash.add(sk::hash_bytes(values.data, values.size * sizeof(float)));
  return hash.value();
}
// [end]

TEST_CASE("runs of a pipeline are compared by the stages, or by a file of the whole network", "[guide]") {
  const support::TemporaryFolder folder;
  const auto digits = sk::data::synthetic_digits(200, sk::Seed{1});
  using Stages = sk::parallel::balanced_stages<GuideDigits, sk::Shape<28, 28, 1>, 2>;
  const auto run = [&](sk::Seed seed) {
    std::array<std::uint64_t, 3> hashes{};  // of both ranks, and of the whole
    sk::spawn(2, [&](sk::ThreadComm& world) {
      const sk::parallel::Pipeline<Stages> pipeline{world, {.micro_batches = 4}};
      auto model = pipeline.template model<sk::Shape<28, 28, 1>>(seed);
      sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 2e-3f}, pipeline};
      trainer.fit(digits, {.epochs = 1, .batch = 50, .progress = false, .threads = 1});
      hashes[static_cast<std::size_t>(world.rank())] = hash_of_stages(model);
      trainer.save(folder / "whole");
      if (world.rank() != 0) return;
      DigitsModel whole;
      whole.load(folder / "whole");
      const auto values = std::as_const(whole).parameters();
      hashes[2] = sk::hash_bytes(values.data, values.size * sizeof(float));
    });
    return hashes;
  };
  const auto first = run(sk::Seed{1}), again = run(sk::Seed{1}), other = run(sk::Seed{2});
  CHECK(first == again);
  for (std::size_t i = 0; i < 3; ++i) CHECK(first[i] != other[i]);
}

TEST_CASE("fit, callbacks, metrics, files", "[guide]") {
  const support::TemporaryFolder folder;
  const auto all = sk::data::synthetic_digits(1200, sk::Seed{1});
  const auto train = all.slice(0, 1000), test = all.slice(1000, 1200);
  DigitsModel model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 2e-3f}};
  // [quote fit]
  sk::train::ConfusionMatrix matrix{10};
  const sk::History history = trainer.fit(
      train, {.epochs = 20,
              .batch = 50,
              .validate = test,
              .metrics = {sk::train::TopK{3}, std::ref(matrix)},
              .callbacks = {sk::train::EarlyStopping{.patience = 3},
                            sk::train::best_model([&](const sk::train::EpochRecord&) { trainer.save(folder / "best.skein"); },
                                                  sk::train::highest("accuracy")),
                            [](const sk::train::EpochRecord& epoch) {
                              if (epoch.training.loss > 10) throw sk::Error("it diverges");
                            }},
              .progress = false});
  history.write_csv(folder / "curves.csv");
  history.write_svg(folder / "curves.svg");
  // [end]
  CHECK(history.best().validation.accuracy > 0.3);
  CHECK(matrix.text().size() > 100);

  // [quote files]
  DigitsModel fresh{sk::Seed{2}};
  sk::Trainer loaded{fresh, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 2e-3f}};
  loaded.load(folder / "best.skein");  // of another network or optimizer: a FileError that says so
  const sk::train::Scores scores = loaded.evaluate(test);
  const sk::Tensor<float, 2> logits = loaded.predict(test);  // (200, 10)
  // [end]
  // [quote weights]
  DigitsModel tuned{sk::Seed{3}};
  tuned.load(folder / "best.skein", {.only = "1.*"});  // "1.weight" and "1.bias"; names as in sk::summary(model)
  sk::Trainer tuning{tuned, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 1e-3f}};
  sk::train::AveragedModel average{tuned, sk::train::ema(0.99)};
  tuning.fit(train, {.epochs = 3,
                     .batch = 50,
                     .validate = test,
                     .schedule = sk::optim::warmup(sk::optim::epochs(1)) * sk::optim::cosine(),
                     .callbacks = {average, sk::train::ReduceOnPlateau{.patience = 1},
                                   sk::train::EarlyStopping{.watch = sk::train::highest("accuracy"), .restore_best = true}},
                     .progress = false});
  sk::Predictor smooth{average.model()};
  sk::train::save_weights(folder / "average.skein", average.model());  // which model.load and predictor.load read
  // [end]
  DigitsModel averaged;
  averaged.load(folder / "average.skein");
  CHECK(std::as_const(averaged).parameters()[0] == std::as_const(average.model()).parameters()[0]);
  CHECK(smooth.predict(test).extent(0) == 200);
  // [quote predictor]
  DigitsModel used;  // no gradients, no optimizer
  sk::Predictor predictor{used, {.capacity = 64}};
  predictor.load(folder / "best.skein");
  const sk::Tensor<float, 2> outputs = predictor.predict(test);  // (200, 10)
  // [end]
  CHECK(std::equal(outputs.begin(), outputs.end(), logits.begin()));
  CHECK(std::as_const(used).gradients().size == 0);
  const std::vector<float> pixels(28 * 28, 0.5f);
  // [quote one_image]
  const sk::Tensor<float, 4> image(std::span<const float>(pixels), sk::dims(1, 28, 28, 1));  // one image, of a vector of 784
  const sk::Tensor<float, 2> one = predictor.predict(image);                                 // (1, 10): logits
  const auto powers = sk::eval(exp(one(0) - max(one(0))));
  const auto probabilities = sk::eval(powers / sum(powers));  // (10): the softmax
  // [end]
  CHECK(probabilities.extent(0) == 10);
  CHECK(sum(probabilities) == Approx(1).margin(1e-5));
  CHECK(scores.accuracy == Approx(history.best(sk::train::highest("accuracy")).validation.accuracy));
  CHECK(logits.extent(0) == 200);
}

TEST_CASE("a loop by hand", "[guide]") {
  const auto train = sk::data::synthetic_digits(600, sk::Seed{1});
  DigitsModel model{sk::Seed{1}};
  double first = 0, last = 0;
  // [quote by_hand]
  sk::data::Loader<> loader{train, {.batch = 50}};
  sk::Executor executor{model, sk::nn::CrossEntropy{}, {.capacity = loader.capacity()}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.lr = 2e-3f}, model};
  for (int epoch = 0; epoch < 3; ++epoch) {
    sk::nn::LossSums sums;
    for (const auto& batch : loader.epoch(epoch)) {
      sums += executor.forward_backward(batch);
      optimizer.step(model, {.clip_norm = 1});
    }
    (epoch == 0 ? first : last) = sums.mean();
  }
  // [end]
  CHECK(last < 0.8 * first);
}
