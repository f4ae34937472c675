// SPDX-License-Identifier: Apache-2.0
// A trainer whose model is on a GPU: the same History, predictions and files as on the Cpu.
#include <catch2/catch.hpp>

#include <future>
#include <string>
#include <thread>

#include <skein/cuda.hpp>
#include <skein/data/map_npy.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/train/metrics.hpp>

#include "support/own_layers.hpp"
#include "support/temporary_folder.hpp"
#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Net = nn::Sequential<nn::Linear<24>, nn::Relu, nn::Dropout<sk::Rate<1, 5>>, nn::Linear<6>>;
using In = sk::Shape<13>;
template <class Device, class Scalar = float> using Model = sk::Model<Net, In, Device, Scalar>;

/// Points in six heaps.
struct Heaps {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  explicit Heaps(long n) {
    for (long i = 0; i < n; ++i) {
      labels.push_back(static_cast<std::int32_t>(sk::random_uniform(5, 1, static_cast<std::uint64_t>(i)) * 6));
      for (long c = 0; c < 13; ++c)
        x.push_back(static_cast<float>(sk::random_uniform(5, 2, static_cast<std::uint64_t>(13 * i + c)) - 0.5 +
                                       (c % 6 == labels.back() ? 1.0 : 0.0)));
    }
  }
  auto set() const { return sk::data::from_tensors(x, sk::Extents{1, {13}}, labels); }
};

template <class M> auto trainer_of(M& model) { return sk::Trainer{model, nn::CrossEntropy{}, optim::Adam{.lr = 0.01f}}; }
template <class M> std::vector<typename M::Scalar> weights(const M& m) {
  const auto v = twins::values(m.parameters(), m.where());
  return {v.begin(), v.end()};
}

/// A data set of one's own, read sample by sample when it is asked for.
struct HeapsReadOneByOne {
  Heaps heaps;
  std::int64_t size() const { return static_cast<std::int64_t>(heaps.labels.size()); }
  sk::Extents sample_extents() const { return {1, {13}}; }
  sk::data::Target target() const { return sk::data::Target::labels(6); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    std::copy_n(heaps.x.begin() + 13 * i, 13, x.begin());
    label = heaps.labels[static_cast<std::size_t>(i)];
  }
};

/// A metric of one's own: the share of samples of heap 2 that are found.
const sk::train::OwnMetric recall{"recall of 2",
                                  [](auto output, int label) {
                                    const bool is = label == 2;
                                    return std::array<double, 2>{double(is && sk::train::argmax(output) == 2), double(is)};
                                  },
                                  [](std::array<double, 2> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }};

/// Stops the fit at the end of an epoch.
struct StopAt {
  int epoch;
  void on_epoch_end(sk::train::EpochRecord& r, sk::train::FitControl& c) {
    if (r.epoch == epoch) c.stop("as asked");
  }
};
}  // namespace

namespace trainer_test {
/// Takes scratch memory of the calling thread, and has no prepare() that says so.
struct TakesScratch {
  static constexpr nn::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  template <class I, class Frame> static void forward(Frame& f) {
    (void)sk::cuda::workspace().get(8 << 20);
    sk::ops::copy<sk::Cuda>(f.y, f.x, f.batch * sk::sample_pitch(I::extents));
  }
  template <class I, class Frame> static void backward(Frame& f) {
    if (f.dx) sk::ops::copy<sk::Cuda>(f.dx, f.dy, f.batch * sk::sample_pitch(I::extents));
  }
};
}  // namespace trainer_test

TEMPLATE_TEST_CASE("a fit on a GPU has the history of the Cpu", "[train][cuda]", float, double) {
  const Heaps heaps(203);
  const auto data = heaps.set();
  const double tolerance = sizeof(TestType) == 4 ? 1e-4 : 1e-11;
  const sk::FitOptions options{.epochs = 4,
                               .batch = 16,
                               .validate = data,
                               .schedule = sk::optim::cosine(60),
                               .clip_norm = 2,
                               .metrics = {sk::train::Accuracy{}, sk::train::TopK{2}},
                               .progress = false};
  Model<sk::Cpu, TestType> here{sk::Seed{3}};
  auto trainer = trainer_of(here);
  const sk::History h = trainer.fit(data, options);
  CHECK(h.back().validation.accuracy > 0.8);

  auto compare = [&](sk::FitOptions o) {
    Model<sk::Cuda, TestType> there{sk::Seed{3}};
    auto on_gpu = trainer_of(there);
    const sk::History g = on_gpu.fit(data, o);
    REQUIRE(g.size() == h.size());
    for (std::size_t e = 0; e < h.size(); ++e) {
      CHECK(g.epochs()[e].training.loss == Approx(h.epochs()[e].training.loss).epsilon(tolerance));
      CHECK(g.epochs()[e].training.accuracy == Approx(h.epochs()[e].training.accuracy).margin(0.006));
      CHECK(g.epochs()[e].validation.loss == Approx(h.epochs()[e].validation.loss).epsilon(tolerance));
      CHECK(g.epochs()[e].validation["accuracy"] == Approx(h.epochs()[e].validation["accuracy"]).margin(0.006));
      CHECK(g.epochs()[e].validation["top-2"] == Approx(h.epochs()[e].validation["top-2"]).margin(0.006));
      CHECK(g.epochs()[e].step == h.epochs()[e].step);
    }
    CHECK(twins::apart(weights(here), weights(there)) < 10 * tolerance);
    if (o.record_steps) CHECK(g.steps().size() == 4 * 13);
    return weights(there);
  };
  const auto replayed = compare(options);
  sk::FitOptions other = options;
  other.compute.graph = false;
  other.record_steps = true;
  CHECK(compare(other) == replayed);
  other.loader.prefetch = sk::data::Prefetch::on;
  CHECK(compare(other) == replayed);
}

TEST_CASE("a data set and a metric of one's own on a GPU", "[train][cuda]") {
  const HeapsReadOneByOne own{Heaps(203)};
  const auto fit = [&](auto device, const auto& data) {
    Model<decltype(device)> model{sk::Seed{3}};
    auto trainer = trainer_of(model);
    const auto validation = own.heaps.set();
    return trainer.fit(data, {.epochs = 4, .batch = 16, .validate = validation, .metrics = {recall}, .progress = false}).back();
  };
  const sk::train::EpochRecord here = fit(sk::Cpu{}, own), there = fit(sk::Cuda{}, own), given = fit(sk::Cuda{}, own.heaps.set());
  CHECK(here.validation["recall of 2"] > 0.5);
  CHECK(there.validation["recall of 2"] == Approx(here.validation["recall of 2"]).margin(0.03));  // one sample of 34
  CHECK(there.training.loss == Approx(here.training.loss).epsilon(1e-4));
  CHECK(there.training.loss == given.training.loss);
}
TEST_CASE("accumulated batches on a GPU", "[train][cuda]") {
  const Heaps heaps(90);
  const auto data = heaps.set();
  const sk::FitOptions options{.epochs = 5, .batch = 16, .progress = false, .step = {.accumulate = 2}};
  Model<sk::Cpu, double> here{sk::Seed{3}};
  Model<sk::Cuda, double> there{sk::Seed{3}};
  auto a = trainer_of(here);
  auto b = trainer_of(there);
  const sk::History h = a.fit(data, options), g = b.fit(data, options);
  CHECK(g.back().training.loss == Approx(h.back().training.loss).epsilon(1e-11));
  CHECK(twins::apart(weights(here), weights(there)) < 1e-10);
}

TEST_CASE("predictions stay on the model's GPU", "[train][cuda]") {
  const Heaps heaps(70);
  const auto data = heaps.set();
  Model<sk::Cpu> here{sk::Seed{3}};
  Model<sk::Cuda> there{sk::Seed{3}};
  auto a = trainer_of(here);
  auto b = trainer_of(there);
  const sk::Tensor<float, 2> x(heaps.x, sk::dims(70, 13));
  const auto wanted = a.predict(x);
  const sk::Tensor<float, 2, sk::Cuda> of_tensor = b.predict(x.to<sk::Cuda>()), of_data = b.predict(data);
  const auto got = of_tensor.to<sk::Cpu>(), same = of_data.to<sk::Cpu>();
  REQUIRE(got.size() == wanted.size());
  for (long i = 0; i < got.size(); ++i) {
    CHECK(got.data()[i] == Approx(wanted.data()[i]).margin(1e-5));
    REQUIRE(got.data()[i] == same.data()[i]);
  }
  const auto scores = b.evaluate(data, {.batch = 32}), wants = a.evaluate(data, {.batch = 32});
  CHECK(scores.loss == Approx(wants.loss).epsilon(1e-5));
  CHECK(scores.accuracy == Approx(wants.accuracy));
}

TEST_CASE("files of a GPU's training are those of the Cpu's", "[train][cuda]") {
  const support::TemporaryFolder folder;
  const Heaps heaps(64);
  const auto data = heaps.set();
  Model<sk::Cpu> here{sk::Seed{3}};
  Model<sk::Cuda> there{sk::Seed{3}};
  auto a = trainer_of(here);
  auto b = trainer_of(there);
  a.save(folder / "cpu");
  b.save(folder / "cuda");
  CHECK(support::read_file(folder / "cpu") == support::read_file(folder / "cuda"));

  (void)b.fit(data, {.epochs = 2, .batch = 16, .progress = false});
  b.save(folder / "trained");
  a.load(folder / "trained");  // onto the Cpu ...
  CHECK(weights(here) == weights(there));
  a.save(folder / "copied");
  CHECK(support::read_file(folder / "copied") == support::read_file(folder / "trained"));
  Model<sk::Cuda> third{sk::Seed{9}};
  auto c = trainer_of(third);
  c.load(folder / "copied");  // ... and back
  CHECK(weights(third) == weights(there));
  CHECK(c.train_step().steps() == 8);
  (void)b.fit(data, {.epochs = 1, .batch = 16, .progress = false});
  (void)c.fit(data, {.epochs = 3, .batch = 16, .seed = there.seed(), .progress = false});  // in total
  CHECK(weights(third) == weights(there));                                                 // the optimizer's state went along
}

TEST_CASE("a training that was stopped goes on with the same bits on a GPU", "[train][cuda]") {
  const support::TemporaryFolder folder;
  const Heaps heaps(64);
  const auto data = heaps.set();
  Model<sk::Cuda> whole{sk::Seed{3}}, first{sk::Seed{3}}, second{sk::Seed{3}};
  auto a = trainer_of(whole);
  auto b = trainer_of(first);
  auto c = trainer_of(second);
  const sk::History h = a.fit(data, {.epochs = 4, .batch = 16, .progress = false});
  sk::FitOptions stopped{.epochs = 4, .batch = 16, .progress = false};
  stopped.callbacks.add(StopAt{2});
  (void)b.fit(data, stopped);
  b.save(folder / "half");
  c.load(folder / "half");
  const sk::History g = c.fit(data, {.epochs = 4, .batch = 16, .progress = false});
  REQUIRE(g.size() == 4);
  CHECK(g.back().training.loss == h.back().training.loss);
  CHECK(weights(second) == weights(whole));
}

TEST_CASE("a trainer on another GPU than the first", "[train][cuda]") {
  if (sk::cuda::device_count() < 2) {
    WARN("one GPU: nothing to choose");
    return;
  }
  const Heaps heaps(64);
  const auto data = heaps.set();
  Model<sk::Cuda> first{sk::Seed{3}}, second{sk::Seed{3}, sk::Cuda{1}};
  auto a = trainer_of(first);
  auto b = trainer_of(second);
  const sk::FitOptions options{.epochs = 2, .batch = 16, .validate = data, .progress = false};
  const sk::History h = a.fit(data, options), g = b.fit(data, options);
  CHECK(h.losses() == g.losses());
  CHECK(weights(first) == weights(second));
  CHECK(b.predict(data).device().ordinal == 1);
}

TEST_CASE("depth-first blocks are the host's", "[train][cuda]") {
  const Heaps heaps(20);
  const auto data = heaps.set();
  Model<sk::Cuda> model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  CHECK_THROWS_WITH(
      trainer.fit(data, {.epochs = 1, .batch = 4, .progress = false, .compute = {.execution = sk::Execution::depth_first}}),
      Catch::Contains("on Cuda a network runs layer by layer"));
}

TEST_CASE("a label a position, on a GPU as on the Cpu", "[train][cuda]") {
  sk::Tensor<float, 3> x(sk::dims(45, 4, 6));
  sk::Tensor<std::int32_t, 2> labels(sk::dims(45, 4));
  for (long i = 0; i < x.size(); ++i) x.data()[i] = sk::random_uniform(5, 1, static_cast<std::uint64_t>(i)) - 0.5f;
  for (long i = 0; i < labels.size(); ++i) labels.data()[i] = static_cast<std::int32_t>(i % 6);
  const auto data = sk::data::from_tensors(x, labels);
  const auto fit = [&](auto device) {
    sk::Model<nn::Sequential<nn::LayerNorm<>, nn::Tanh>, sk::Shape<4, 6>, decltype(device)> model{sk::Seed{3}};
    auto trainer = trainer_of(model);
    return trainer.fit(data, {.epochs = 3, .batch = 8, .validate = data, .metrics = {sk::train::Accuracy{}}, .progress = false});
  };
  const sk::History h = fit(sk::Cpu{}), g = fit(sk::Cuda{});
  for (std::size_t e = 0; e < h.size(); ++e) {
    CHECK(g.epochs()[e].training.loss == Approx(h.epochs()[e].training.loss).epsilon(1e-4));
    CHECK(g.epochs()[e].training.accuracy == Approx(h.epochs()[e].training.accuracy).margin(0.006));
    CHECK(g.epochs()[e].validation["accuracy"] == Approx(h.epochs()[e].validation["accuracy"]).margin(0.006));
  }
}

TEST_CASE("the token that follows each is learnt on a GPU as on the Cpu, with the same bits in every run", "[train][cuda]") {
  std::vector<std::int32_t> text;
  for (int i = 0; i < 1500; ++i) text.push_back((i * i + i / 7) % 11);
  const sk::data::NextTokens<> data(std::span<const std::int32_t>(text), {.length = 6, .vocabulary = 11});
  const auto fit_of = [](auto device, const auto& data) {
    using Network = nn::Sequential<own_layers::Embedding<11, 5>, nn::EachPosition<nn::Linear<11>>>;
    sk::Model<Network, sk::Tokens<6>, decltype(device)> model{sk::Seed{3}};
    auto trainer = trainer_of(model);
    auto all = trainer.fit(data, {.epochs = 3, .batch = 32, .validate = data, .record_steps = true, .progress = false}).losses();
    for (const float p : weights(model)) all.push_back(p);
    return all;
  };
  const auto fit = [&](auto device) { return fit_of(device, data); };
  const auto h = fit(sk::Cpu{}), g = fit(sk::Cuda{});
  REQUIRE(g.size() == h.size());
  for (std::size_t i = 0; i < h.size(); ++i) CHECK(g[i] == Approx(h[i]).epsilon(1e-3).margin(1e-4));
  CHECK(fit(sk::Cuda{}) == g);

  // The same samples from arrays of a program, and from a file of NumPy that is mapped.
  const long samples = static_cast<long>(data.size());
  sk::Tensor<std::int32_t, 2> x(sk::dims(samples, 6)), y(sk::dims(samples, 6));
  std::copy_n(text.begin(), x.size(), x.data());
  std::copy_n(text.begin() + 1, y.size(), y.data());
  CHECK(fit_of(sk::Cuda{}, sk::data::from_tensors(x, y)) == g);
  const support::TemporaryFolder folder;
  sk::save_npy(folder / "text.npy", sk::Tensor<std::int32_t, 1>(text, sk::dims(static_cast<long>(text.size()))));
  CHECK(fit_of(sk::Cuda{},
               sk::data::NextTokens(sk::data::map_npy<std::int32_t>(folder / "text.npy"), {.length = 6, .vocabulary = 11})) == g);
}

TEST_CASE("calls of a trainer by several threads follow each other on a GPU", "[train][cuda]") {
  Model<sk::Cuda> model{sk::Seed{4}};
  auto trainer = trainer_of(model);
  const auto rows = [](float first) {
    sk::Tensor<float, 2> x(sk::dims(300, 13));
    for (long i = 0; i < x.size(); ++i) x.data()[i] = first + static_cast<float>(i * 7 % 11) / 11;
    return x.to<sk::Cuda>();
  };
  const auto values = [](const sk::Tensor<float, 2, sk::Cuda>& there) {
    const sk::Tensor<float, 2> here = there.to<sk::Cpu>();
    return std::vector<float>(here.data(), here.data() + here.size());
  };
  const sk::Tensor<float, 2, sk::Cuda> x[2] = {rows(0), rows(2)};
  const std::vector<float> wanted[2] = {values(trainer.predict(x[0])), values(trainer.predict(x[1]))};
  for (int turn = 0; turn < 10; ++turn) {
    std::promise<void> mine, other;
    bool right = false;
    std::thread thread([&] {
      const sk::Tensor<float, 2, sk::Cuda> y = trainer.predict(x[0]);  // its stream may still run when the other thread predicts
      other.set_value();
      mine.get_future().wait();
      right = values(y) == wanted[0];
    });
    other.get_future().wait();
    CHECK(values(trainer.predict(x[1])) == wanted[1]);
    mine.set_value();
    thread.join();
    CHECK(right);
  }
}
TEST_CASE("a fit on another thread launches a step of each kind there before it captures one", "[train][cuda]") {
  sk::Model<nn::Sequential<nn::Linear<24>, trainer_test::TakesScratch, nn::Linear<6>>, In, sk::Cuda> model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  const Heaps heaps(64);
  const auto data = heaps.set();
  const auto replays_of_fit = [&] {
    const long before = trainer.train_step().device().replays();
    (void)trainer.fit(data, {.epochs = 3, .batch = 16, .progress = false});
    return trainer.train_step().device().replays() - before;
  };
  CHECK(replays_of_fit() > 0);
  long of_other = 0;
  std::thread([&] { of_other = replays_of_fit(); }).join();
  CHECK(of_other > 0);
  CHECK(replays_of_fit() > 0);
  CHECK(trainer.train_step().note() == "");
}
