// SPDX-License-Identifier: Apache-2.0
// Options of fit that would do nothing, or nothing of what was meant; and whom they make fetch samples.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/binary_cross_entropy.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/check_metrics.hpp>
#include <skein/train/check_schedule.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace data = skein::data;

namespace {
using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<2>>, sk::Shape<3>>;

/// Brings a sample at a time, and remembers the threads that asked.
struct Watched {
  mutable std::mutex mutex{};
  mutable std::set<std::thread::id> threads{};

  std::int64_t size() const { return 40; }
  sk::Extents sample_extents() const { return {1, {3}}; }
  sk::data::Target target() const { return sk::data::Target::labels(2); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = sk::random_uniform(1, static_cast<std::uint64_t>(i), j);
    label = x[0] > 0.5f;
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  }
  bool asked_by(std::thread::id thread) const { return threads.contains(thread); }
};
}  // namespace

TEST_CASE("fit refuses options that do nothing", "[train]") {
  const Watched data;
  Model model;
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = 0, .batch = 8}),
                    "fit: .epochs is 0: give 1 or more passes over the training data");
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = -1, .batch = 8}), Catch::Contains("fit: .epochs is -1"));
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = 2, .batch = 8, .schedule = sk::optim::warmup(11), .progress = false}),
                    Catch::Contains("warmup: 11 steps, and the fit has 10"));
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = 2, .batch = 8, .schedule = sk::optim::cosine(2), .progress = false}),
                    "fit: the .schedule is 0 from step 3 on, so that the last 8 of the 10 steps train nothing: leave out its "
                    "length, as in cosine(), "
                    "which is that of the fit then; a bare number counts steps, sk::optim::epochs(5) are epochs");
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 8, .schedule = sk::optim::constant(0), .progress = false}),
                    Catch::Contains("the .schedule is 0 from step 1 on"));
  sk::Trainer still{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0}};
  CHECK_THROWS_WITH(still.fit(data, {.batch = 8, .progress = false}),
                    "fit: the rate of the optimizer, .lr, is 0, so that nothing is trained: give one above 0; "
                    "trainer.evaluate(data) looks at a data set without training");
  for (const auto& groups :
       {sk::optim::Groups{sk::optim::frozen("*")}, {sk::optim::frozen("*.weight"), sk::optim::frozen("*.bias")}}) {
    const std::string refused = "the rules of .groups freeze every parameter, so that nothing is left to train";
    sk::Trainer frozen{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.groups = groups}};
    CHECK_THROWS_WITH(frozen.fit(data, {.batch = 8, .progress = false}), Catch::Contains(refused));
    CHECK_THROWS_WITH((sk::optim::BoundOptimizer{sk::optim::Sgd{.groups = groups}, model}), Catch::Contains(refused));
  }
  for (const auto& groups : {sk::optim::Groups{sk::optim::learning_rate("*", 0)},
                             {sk::optim::frozen("*.weight"), sk::optim::learning_rate("*.bias", 0)}}) {
    sk::Trainer slow{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.groups = groups}};
    CHECK_THROWS_WITH(
        slow.fit(data, {.batch = 8, .progress = false}),
        Catch::Contains("multiply the rate of every parameter that they do not freeze by 0, so that nothing is left"));
  }
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 8, .callbacks = {sk::train::EarlyStopping{.patience = -1}}, .progress = false}),
                    Catch::Contains("EarlyStopping: .patience is -1"));
  CHECK(data.threads.empty());  // before a sample is read
}

TEST_CASE("a schedule may end a step before the fit, or at a floor, and one that is refused leaves the trainer as it was",
          "[train]") {
  const Watched data;
  Model model;
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}};
  const auto fit = [&](sk::optim::Schedule schedule) {
    return trainer.fit(data, {.epochs = 2, .batch = 8, .schedule = schedule, .progress = false}).size();
  };
  CHECK_THROWS_AS(fit(sk::optim::cosine(5)), sk::ArgumentError);
  CHECK(fit(sk::optim::cosine(5, 0.01)) == 2);
  CHECK(fit(sk::optim::cosine(9)) == 2);
  CHECK(fit(sk::optim::cosine()) == 2);
  CHECK(fit(sk::optim::polynomial()) == 2);
  CHECK(fit(sk::optim::linear(1, 0)) == 2);
  CHECK(fit(sk::optim::cosine(sk::optim::epochs(2))) == 2);
}

TEST_CASE("a schedule that is a rate, or over in the first of many epochs, is refused", "[train]") {
  const Watched data;
  namespace optim = sk::optim;
  const auto refused = [&](optim::Schedule schedule, int epochs = 4) -> std::string {  // 5 steps an epoch
    Model model;
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, optim::Sgd{.lr = 0.01f}};
    try {
      trainer.fit(data, {.epochs = epochs, .batch = 8, .schedule = schedule, .progress = false});
    } catch (const sk::ArgumentError& e) { return e.what(); }
    return "";
  };
  const std::string rate =
      "fit: the .schedule is 0.01 at most: it is a factor of the optimizer's rate and not a rate: let it be 1 for the whole "
      "rate, "
      "and give the rate to the optimizer, .lr";
  CHECK(refused([](std::int64_t step) { return step < 10 ? 0.01f : 0.005f; }) == rate);
  CHECK(refused(optim::constant(0.01)) == rate);
  CHECK(
      refused(optim::multi_step({2, 4})) ==
      "fit: the .schedule falls from 1 to 0.01 within the first of 4 epochs and does not rise again: a bare number counts steps, "
      "of which an epoch has 5; sk::optim::epochs(30) are epochs");
  const auto over = Catch::Contains("within the first of 4 epochs and does not rise again");
  CHECK_THAT(refused(optim::step(1, 0.1)), over);
  CHECK_THAT(refused(optim::cosine(4, 0.1)), over);
  CHECK_THAT(refused(optim::linear(1, 0.2, 4)), over);
  CHECK_THAT(refused(optim::exponential(0.3)), over);
  CHECK_THAT(refused(optim::multi_step({optim::epochs(0.5), 4})), over);
  CHECK_THAT(refused(optim::multi_step({optim::epochs(0.5)}) * optim::exponential(0.5)), over);
  CHECK(refused(optim::multi_step({optim::epochs(0.5)})).empty());  // epochs are meant, and a part of one
  CHECK(refused(optim::multi_step({optim::share(0.1), optim::epochs(0.8)})).empty());
  CHECK(refused(optim::then(optim::constant(1), optim::epochs(0.5), optim::constant(0.1))).empty());
  const auto ends = Catch::EndsWith("as in cosine(), which is that of the fit then");
  CHECK_THAT(refused(optim::polynomial(optim::epochs(1))), ends);
  CHECK_THAT(refused(optim::polynomial(5)), !ends && Catch::EndsWith("sk::optim::epochs(5) are epochs"));
  const std::string infinite =
      "fit: the .schedule returns inf for step 3: a factor of the rate is finite and not negative, and 1 is the whole rate";
  CHECK(refused(optim::exponential(1e30)) == infinite);
  CHECK(refused([](std::int64_t step) { return step == 2 ? 1e300 * 1e300 : 1.0; }) == infinite);
  CHECK(refused(optim::warmup(3)).empty());
  CHECK(refused(optim::warmup(3) * optim::cosine()).empty());
  CHECK(refused(optim::multi_step({optim::epochs(1), optim::epochs(2)})).empty());
  CHECK(refused(optim::step(optim::epochs(1), 0.1)).empty());
  CHECK(refused(optim::multi_step({optim::epochs(1)}, 0.1)).empty());
  CHECK(refused(optim::multi_step({optim::epochs(1)}, 0.001)).empty());
  CHECK(refused(optim::linear(1, 0.2, optim::epochs(1))).empty());
  CHECK(refused(optim::then(optim::warmup(optim::epochs(1)), optim::epochs(1), optim::constant(0.3))).empty());
  CHECK(refused(optim::then(optim::constant(1), optim::epochs(1), optim::constant(0.1))).empty());
  CHECK(
      refused(optim::then(optim::constant(1), 25, optim::constant(0.1))) ==
      "then: the first part has 25 steps, and the fit has 20 for both: the second would never come; give the first fewer steps, "
      "or the fit more .epochs");
  CHECK(refused(optim::exponential(0.9)).empty());
  CHECK(refused(optim::constant(0.1)).empty());
  CHECK(refused(optim::one_cycle()).empty());
  CHECK(refused(optim::multi_step({2}), 2).empty());
  CHECK(refused([](std::int64_t step) { return step < 2 ? 1 : 0.5f; }).empty());  // of one's own, which counts steps
}

TEST_CASE("a metric of yes and no has a threshold within the outputs of a network that ends with probabilities", "[train]") {
  std::vector<float> x, y;
  for (int i = 0; i < 48; ++i) x.push_back(static_cast<float>(i % 7) - 3);
  for (int i = 0; i < 32; ++i) y.push_back(static_cast<float>(i % 2));
  const auto set = data::from_tensors(x, sk::Extents{1, {3}}, y);
  sk::Model<sk::nn::Sequential<sk::nn::Linear<2>, sk::nn::Sigmoid>, sk::Shape<3>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto refused = Catch::StartsWith(
      "the metric 'binary accuracy' takes outputs above 0 for a yes, and its outputs are probabilities, from 0 to 1: its "
      "threshold is 0.5 then, as in BinaryAccuracy{0.5} and F1{-1, 0.5}; 0 is that of logits");
  const auto fit = [&](sk::train::AnyMetric metric) {
    trainer.fit(set, {.batch = 8, .validate = set, .metrics = {metric}, .progress = false});
  };
  CHECK_THROWS_WITH(fit(sk::train::BinaryAccuracy{}), refused);
  CHECK_THROWS_WITH(trainer.evaluate(set, {.metrics = {sk::train::BinaryAccuracy{}}}), refused);
  CHECK_THROWS_WITH(fit(sk::train::F1{}), Catch::StartsWith("the metric 'F1' takes outputs above 0"));
  CHECK_NOTHROW(fit(sk::train::BinaryAccuracy{0.5}));
  CHECK_NOTHROW(fit(sk::train::F1{-1, 0.5}));
  CHECK_NOTHROW(fit(sk::train::R2{}));
  Model logits;
  sk::Trainer usual{logits, sk::nn::BinaryCrossEntropy{}, sk::optim::Sgd{}};
  CHECK_NOTHROW(usual.evaluate(set, {.metrics = {sk::train::BinaryAccuracy{}}}));
}

TEST_CASE("a metric of more classes than the network has, or of one that it has not, is refused before the first step",
          "[train]") {
  const auto set = data::from_tensors(std::vector<float>(24), sk::Extents{1, {3}}, std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1});
  Model model;
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}};
  const auto fit = [&](sk::train::AnyMetric metric) {
    trainer.fit(set, {.batch = 8, .validate = set, .metrics = {metric}, .progress = false});
  };
  CHECK_THROWS_WITH(fit(sk::train::TopK{3}), "top-k accuracy of k = 3: the outputs are of 2 classes, and k is at most that");
  CHECK_THROWS_WITH(fit(sk::train::F1{2}), "F1 of 2: there are 2 classes, numbered from 0");
  sk::train::ConfusionMatrix matrix{10};
  CHECK_THROWS_WITH(fit(std::ref(matrix)), "confusion matrix of 10 classes: the outputs have 2");
  CHECK(trainer.train_step().steps() == 0);
  CHECK_NOTHROW(fit(sk::train::TopK{2}));
  CHECK_NOTHROW(fit(sk::train::Recall{1}));
}

TEST_CASE("an empty data set is named, with targets or labels", "[train]") {
  const std::vector<float> nothing;
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<3>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto empty = data::from_tensors(nothing, sk::Extents{1, {3}}, nothing);
  CHECK(empty.size() == 0);
  CHECK_THROWS_WITH(trainer.fit(empty, {.batch = 8}), Catch::Contains("the training data set has no samples"));
  const auto some = data::from_tensors(std::vector<float>{1, 2, 3}, sk::Extents{1, {3}}, std::vector<float>{1});
  CHECK_THROWS_WITH(trainer.fit(some, {.batch = 8, .validate = empty, .progress = false}),
                    Catch::Contains("the validation data set has no samples"));
  CHECK_THROWS_WITH(data::from_tensors(nothing, sk::Extents{1, {3}}, std::vector<float>{1}), Catch::Contains("0 samples"));
}

TEST_CASE("a validation set that is normalised in another way than the training set is refused", "[train]") {
  Model model;
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}};
  const auto bytes =
      data::from_tensors(std::vector<std::uint8_t>{0, 50, 100, 150, 200, 250}, sk::Extents{1, {3}}, std::vector<int>{0, 1});
  const auto train = bytes.normalize(0.25, 0.5);
  const auto fit = [&](const data::DatasetView& of, const data::DatasetView& validation) {
    trainer.fit(of, {.epochs = 1, .batch = 2, .validate = validation, .progress = false});
  };
  CHECK_THROWS_WITH(
      fit(train, bytes),
      Catch::Contains("the training set is served as (value - 0.25) / 0.5, the validation set as (value - 0) / 1: give "
                      "both the normalization of the training set, .validate = map(raw_test, train.normalization())"));
  const auto half = data::split(bytes, 0.5).first.normalize(0.25, 0.5);  // which has no mean()
  CHECK_NOTHROW(fit(half, data::map(bytes, half.normalization())));
  CHECK_THROWS_AS(fit(bytes, train), sk::ArgumentError);
  CHECK_THROWS_AS(fit(train, bytes.normalize(0.25, 0.6)), sk::ArgumentError);
  const data::Normalization channels{{0.1, 0.2, 0.3}, {1, 1, 2}};
  CHECK_THROWS_WITH(
      fit(data::map(bytes, channels), bytes),
      Catch::Contains("with the means 0.1, 0.2, 0.3 and the deviations 1, 1, 2, the validation set as (value - 0) / 1") &&
          Catch::Contains(".validate = map(raw_test, train.normalization())"));
  const auto noise = [](std::span<float> sample, std::int64_t, std::int64_t) { sample[0] += 0.1f; };
  CHECK_NOTHROW(fit(data::map(train, noise), train.slice(0, 1)));  // augmentation, of the training samples only
  CHECK_NOTHROW(fit(train, bytes.normalize(train.mean() + 1e-5, train.deviation())));
  const Watched silent;
  CHECK_NOTHROW(fit(train, silent));  // says nothing of its values
  CHECK_NOTHROW(fit(data::map(bytes, channels), data::map(bytes, channels)));
  const auto halve = [](std::span<float> sample) { sample[0] /= 2; };
  CHECK_NOTHROW(fit(train, data::map(bytes, halve)));  // who knows what it does
}

TEST_CASE("a step of a loop by hand refuses a factor of the rate and a norm that make no step", "[train]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  const Watched data;
  const auto refuses = [&](auto& step) {
    data::Loader<> loader{data, {.batch = 8}};
    for (const data::Batch<>& batch : loader.epoch(0))
      CHECK_THROWS_WITH(step.step(batch), Catch::Contains("call reserve({.capacity = loader.capacity()})"));
    CHECK_THROWS_WITH(step.reserve({.capacity = 8, .training = false}), Catch::Contains("leave .training out"));
    CHECK_THROWS_WITH(step.reserve({.capacity = 8, .shards = {4, 0, 4}}), Catch::Contains("take Reproducible"));
    step.reserve({.capacity = 8});
    for (const data::Batch<>& batch : loader.epoch(0)) {
      for (const double factor : {nan, infinite, -infinite, -0.5})
        CHECK_THROWS_WITH(step.step(batch, {.lr_factor = factor}),
                          Catch::StartsWith("step: .lr_factor is ") && Catch::Contains("is finite and not negative"));
      for (const double norm : {nan, -infinite, -1.0})
        CHECK_THROWS_WITH(step.step(batch, {.clip_norm = norm}), Catch::StartsWith("step: .clip_norm is "));
    }
    CHECK(step.steps() == 0);
    for (const data::Batch<>& batch : loader.epoch(0)) step.step(batch, {.lr_factor = 0.5, .clip_norm = infinite});
    CHECK(step.steps() == 5);
  };
  Model model{sk::Seed{1}};
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  refuses(trainer.train_step());
  CHECK(std::vector<float>(model.parameters().begin(), model.parameters().end()) != before);

  sk::SelfComm self;
  const sk::parallel::Pipeline<sk::nn::Linear<4>, sk::nn::Linear<2>> pipeline{self};
  auto staged = pipeline.model<sk::Shape<3>>(sk::Seed{1});
  sk::Trainer stages{staged, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, pipeline};
  refuses(stages.train_step());
  {
    const auto lease = staged.modify();
    data::Loader<> loader{data, {.batch = 8}};
    for (const data::Batch<>& batch : loader.epoch(0))
      CHECK_THROWS_WITH(stages.train_step().step(batch), Catch::Contains("the model's weights are being modified"));
  }
}

TEST_CASE("a step of a loop by hand adds to no gradients that have made a step", "[train]") {
  const Watched data;
  const auto refuses = [&](auto& step) {
    step.reserve({.capacity = 8});
    data::Loader<> loader{data, {.batch = 8}};
    const auto nothing_waits = Catch::StartsWith("step: .accumulate adds to the gradients of the calls before, of which none");
    for (const data::Batch<>& batch : loader.epoch(0)) {
      CHECK_THROWS_WITH(step.step(batch, {.accumulate = true}), nothing_waits);
      step.step(batch, {.update = false});
      CHECK(step.step(batch, {.accumulate = true}).weight == 16);
      CHECK_THROWS_WITH(step.step(batch, {.accumulate = true, .update = false}), nothing_waits);
    }
    CHECK(step.steps() == 5);
  };
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  refuses(trainer.train_step());

  sk::SelfComm self;
  const sk::parallel::Pipeline<sk::nn::Linear<4>, sk::nn::Linear<2>> pipeline{self};
  auto staged = pipeline.model<sk::Shape<3>>(sk::Seed{1});
  sk::Trainer stages{staged, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, pipeline};
  refuses(stages.train_step());
}

TEST_CASE("Threads fetch the validation set as they fetch the training set", "[train]") {
  const Watched data, validation;
  Model model{sk::Seed{1}}, same{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  const auto history = trainer.fit(data, {.epochs = 2,
                                          .batch = 8,
                                          .validate = validation,
                                          .progress = false,
                                          .threads = 1,
                                          .loader = {.prefetch = sk::data::Prefetch::on, .prefetch_threads = 2}});
  CHECK_FALSE(data.asked_by(std::this_thread::get_id()));
  CHECK_FALSE(validation.asked_by(std::this_thread::get_id()));
  CHECK_FALSE(validation.threads.empty());

  sk::Trainer plain{same, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  const Watched again;
  const auto expected = plain.fit(data, {.epochs = 2,
                                         .batch = 8,
                                         .validate = again,
                                         .progress = false,
                                         .threads = 1,
                                         .loader = {.prefetch = sk::data::Prefetch::off}});
  CHECK(again.threads == std::set{std::this_thread::get_id()});
  CHECK(history.back().validation.loss == expected.back().validation.loss);
}

namespace {
/// Sets of a user that leave something out.
struct Of40 {
  std::int64_t size() const { return 40; }
  sk::Extents sample_extents() const { return {1, {3}}; }
  data::Target target() const { return data::Target::labels(2); }
};
struct WithoutLabel : Of40 {
  void read(std::int64_t, std::span<float> x, std::int32_t& label) const {
    for (float& v : x) v = 1;
    if (false) label = 0;
  }
};
struct WithoutSample : Of40 {
  void read(std::int64_t, std::span<float>, std::int32_t& label) const { label = 1; }
};
struct HalfASample : Of40 {
  void read(std::int64_t, std::span<float> x, std::int32_t& label) const { x[0] = 1, label = 1; }
};
struct WithoutTarget : Of40 {
  data::Target target() const { return data::Target::vector(2); }
  void read(std::int64_t, std::span<float> x, std::span<float>) const {
    for (float& v : x) v = 1;
  }
};
struct GathersNoLabels : Of40 {
  void gather(data::Indices indices, float* x, long pitch) const {
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (int j = 0; j < 3; ++j) x[static_cast<long>(i) * pitch + j] = 1;
  }
  void labels(data::Indices, std::int32_t*) const {}
};
struct GathersNothing : Of40 {
  void gather(data::Indices, float*, long) const {}
  void labels(data::Indices indices, std::int32_t* out) const { std::fill_n(out, indices.size(), 1); }
};
}  // namespace

TEMPLATE_TEST_CASE("a data set of one's own that leaves out a label or a value is named", "[train]", float, double) {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<2>>, sk::Shape<3>, sk::Cpu, TestType> model;
  const auto says = [&](const auto& set, auto loss) -> std::string {
    sk::Trainer trainer{model, loss, sk::optim::Sgd{}};
    try {
      trainer.fit(set, {.epochs = 2, .batch = 8, .progress = false, .loader = {.shuffle = false}});
    } catch (const sk::Error& e) { return e.what(); }
    return "";
  };
  const sk::nn::CrossEntropy labels;
  const auto no_label = Catch::Equals(
      "sample 0 of the training data set has no label: read() or labels() of the data set has left it out; write it");
  CHECK_THAT(says(WithoutLabel{}, labels), no_label);
  CHECK_THAT(says(GathersNoLabels{}, labels), no_label);
  CHECK_THAT(says(data::map(WithoutLabel{}, [](auto) {}), labels), no_label);
  const auto no_value = Catch::Contains(
      " of sample 0 of the training data set is nan: correct it, or write it where a data set "
      "of your own leaves it out");
  CHECK_THAT(says(WithoutSample{}, labels), no_value);
  CHECK_THAT(says(HalfASample{}, labels), Catch::StartsWith("value 2") && no_value);
  CHECK_THAT(says(GathersNothing{}, labels), no_value);
  CHECK_THAT(says(WithoutTarget{}, sk::nn::Mse{}), Catch::StartsWith("target value 0") && no_value);
}
