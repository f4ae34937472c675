// SPDX-License-Identifier: Apache-2.0
// Failures inside a step, over threads, with several threads a rank: tests/distributed/failure.cpp has those of processes.
#include <skein/comm/counted.hpp>
#include <skein/comm/launch/started_ranks.hpp>
#include <skein/comm/public_call.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/named_values.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/comm/sim/sim_comm.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/metrics/metrics_in_evaluation.hpp>

#include "../support/failure_cases.hpp"
#include "../support/said.hpp"
#include "../support/sanitizers.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace cases = failure_cases;
namespace nn = skein::nn;
namespace sk = skein;

namespace {
/// What the fit of two ranks throws, of which rank 1 differs.
std::string of_two(cases::Case usual, cases::Case other, sk::Execution execution = sk::Execution::layer_wise) {
  return cases::thrown([&] {
    sk::spawn(2,
              [&](sk::ThreadComm& world) {
                cases::fit(sk::parallel::DataParallel{world}, world.rank() == 1 ? other : usual, execution);
              },
              {.deadline = 60});
  });
}

/// A policy one of whose hooks throws once: 0: where gradients become ready, 1: where they are waited for.
struct ThrowingPolicyState : sk::parallel::PolicyState {
  int hook = 0;
  bool* armed = nullptr;
  static constexpr sk::parallel::Capabilities capabilities{sk::parallel::Capability::synchronizes_gradients};
  static constexpr bool synchronizes_gradients() { return true; }
  static constexpr int rank() { return 0; }
  static constexpr int ranks() { return 1; }
  void pull(int h) {
    if (h == hook && std::exchange(*armed, false)) throw std::runtime_error("hook " + std::to_string(h) + " throws");
  }
  void gradient_ready(long, long) { pull(0); }
  void finish_gradients() { pull(1); }
};
struct ThrowingPolicy : sk::parallel::PolicyBase {
  ThrowingPolicy(int which, bool* once) : hook(which), armed(once) {}
  int hook;
  bool* armed;
  template <class R> ThrowingPolicyState bind(const R&) const {
    ThrowingPolicyState s;
    s.hook = hook;
    s.armed = armed;
    return s;
  }
};
}  // namespace

TEST_CASE("what fails in a step of one rank ends the fit of all, with any number of threads a rank", "[train]") {
  const int threads = GENERATE(1, 2, 4);
  CAPTURE(threads);
  const cases::Case usual{.threads = threads};
  cases::Case other = usual;
  CHECK(of_two(usual, other).empty());

  SECTION("a wrong label") {
    other.wrong_label = true;
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank 1 failed: ") && Catch::Contains("has the label 7"));
  }
  SECTION("a layer that throws forward") {
    other.value = cases::forward_throws;
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
      CHECK_THAT(of_two(usual, other, execution), Catch::Contains("rank 1 failed: a layer throws forward"));
  }
  SECTION("a layer that throws backward") {
    other.value = cases::backward_throws;
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
      CHECK_THAT(of_two(usual, other, execution), Catch::Contains("rank 1 failed: a layer throws backward"));
  }
  SECTION("a loss that throws") {
    other.value = cases::loss_throws;
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank 1 failed: the loss throws"));
  }
}

TEST_CASE("what a fit's ranks must have alike is compared before its first step, and named", "[train]") {
  const int threads = GENERATE(1, 2);
  const cases::Case usual{.threads = threads, .change = [](sk::FitOptions& o) { o.clip_norm = 1, o.validate = {}; }};
  const auto differs = [&](auto change, const std::string& text) {
    CAPTURE(text);
    cases::Case other = usual;
    change(other);
    const std::string found = of_two(usual, other);
    CHECK_THAT(found, Catch::Contains("fit: " + text) && Catch::Contains("give all ranks the same"));
  };
  using cases::Case;
  differs([](Case& c) { c.lr = 0.1f; }, "`.lr` of Sgd is 0.01 on rank 0, 0.1 on rank 1");
  differs([](Case& c) { c.batch = 16; }, "`.batch` is 32 on rank 0, 16 on rank 1");
  differs([](Case& c) { c.epochs = 1; }, "`.epochs` is 2 on rank 0, 1 on rank 1");
  differs([](Case& c) { c.samples = 60; }, "the number of training samples is 64 on rank 0, 60 on rank 1");
  differs([](Case& c) { c.model_seed = 6; }, "the seed (.seed, else the model's) is 5 on rank 0, 6 on rank 1");
  differs([](Case& c) { c.change = nullptr; }, "`.clip_norm` is 1 on rank 0, 0 on rank 1");
  differs([](Case& c) { c.change = [](sk::FitOptions& o) { o.clip_norm = 1, o.seed = sk::Seed{9}; }; },
          "the seed (.seed, else the model's) is 5 on rank 0, 9 on rank 1");
  differs([](Case& c) { c.change = [](sk::FitOptions& o) { o.clip_norm = 1, o.loader.shuffle = false; }; },
          "`.loader.shuffle` is true on rank 0, false on rank 1");
  differs([](Case& c) { c.change = [](sk::FitOptions& o) { o.clip_norm = 1, o.step.accumulate = 2; }; },
          "`.step.accumulate` is 1 on rank 0, 2 on rank 1");
  differs([](Case& c) { c.change = [](sk::FitOptions& o) { o.clip_norm = 1, o.schedule = sk::optim::step(20, 0.5); }; },
          "the factor of .schedule (if the fit were 10 epochs of 1000 steps) in step 30 is 1 on rank 0, 0.5 on rank 1");
  differs([](Case& c) { c.change = nullptr, c.validate = true; },
          "`.clip_norm` is 1 on rank 0, 0 on rank 1 (and so differ `.validate`");
  differs([](Case& c) { c.change = [](sk::FitOptions& o) { o.clip_norm = 1, o.loader.partition = sk::data::Partition::local; }; },
          "`.loader.partition` is shared on rank 0, local on rank 1");
}

TEST_CASE("ranks with other samples of the same number are named, unless the partition is local", "[train]") {
  const auto fit_with = [](float first, float first_checked, sk::FitOptions options) {
    const auto set_from = [](float begin, int samples) {
      std::vector<float> x(static_cast<std::size_t>(12 * samples)), y(static_cast<std::size_t>(samples));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = begin + static_cast<float>(i % 17);
      return sk::data::InMemory<float>({1, {12}}, std::move(x), std::move(y), 1);
    };
    return cases::thrown([&] {
      sk::spawn(2,
                [&](sk::ThreadComm& world) {
                  const auto data = set_from(world.rank() * first, 16), checked = set_from(world.rank() * first_checked, 8);
                  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<12>> model{sk::Seed{5}};
                  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 1e-4f}, sk::parallel::DataParallel{world}};
                  sk::FitOptions own = options;
                  own.batch = 8, own.epochs = 1, own.progress = false, own.threads = 1, own.validate = checked;
                  trainer.fit(data, own);
                },
                {.deadline = 60});
    });
  };
  CHECK(fit_with(0, 0, {}).empty());
  CHECK_THAT(fit_with(1, 0, {}),
             Catch::Contains("fit: the content of the first, middle and last training sample is of hash ") &&
                 Catch::Contains(" on rank 0, of hash ") &&
                 Catch::Contains(" on rank 1: give all ranks the same whole set, in the same order; where each rank has samples "
                                 "of its own, say .loader = {.partition = data::Partition::local}"));
  CHECK(fit_with(1, 0, {.loader = {.partition = sk::data::Partition::local}}).empty());
  CHECK_THAT(
      fit_with(0, 0, {.loader = {.partition = sk::data::Partition::local}}),
      Catch::Contains("fit: all ranks have given the same training samples as their own part (.loader.partition is local), "
                      "so that each trains on all of them: give each rank its part, such as set.slice(begin, end); or "
                      "leave .partition out, and the ranks divide the set"));
  CHECK_THAT(fit_with(0, 1, {}),
             Catch::Contains("fit: the content of the first, middle and last validation sample is of hash ") &&
                 Catch::EndsWith(": give all ranks the same"));
}

namespace {
/// Reads on demand sample order[i] of some: its values are 0.01 times that, or drawn at random.
struct Read {
  std::vector<int> order;
  bool random = false;
  int missing = -1;  // a sample that cannot be read
  mutable int draws = 0;
  std::int64_t size() const { return static_cast<std::int64_t>(order.size()); }
  sk::Extents sample_extents() const { return {1, {3}}; }
  sk::data::Target target() const { return sk::data::Target::labels(4); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    const int at = order[static_cast<std::size_t>(i)];
    if (at == missing) throw sk::FileError("image.png", 0, "is\tmissing");
    for (float& value : x) value = 0.01f * static_cast<float>(random ? ++draws : at);
    label = at % 4;
  }
};
}  // namespace

TEST_CASE("ranks whose own data set brings its samples in another order are named, unless they are drawn at random", "[train]") {
  const auto fit_with = [](std::vector<int> of_rank_1, bool random, int missing_of_rank_1) {
    return cases::thrown([&] {
      sk::spawn(2,
                [&](sk::ThreadComm& world) {
                  Read data{.order = {0, 1, 2, 3, 4, 5, 6, 7}, .random = random, .draws = 100 * world.rank()};
                  if (world.rank() == 1) data.order = of_rank_1, data.missing = missing_of_rank_1;
                  sk::Model<nn::Sequential<nn::Linear<4>>, sk::Shape<3>> model{sk::Seed{5}};
                  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
                  trainer.fit(data, {.epochs = 1, .batch = 8, .progress = false, .threads = 1});
                },
                {.deadline = 60});
    });
  };
  const std::vector<int> same{0, 1, 2, 3, 4, 5, 6, 7}, other{7, 1, 2, 3, 4, 5, 6, 0}, labels_alike{4, 1, 2, 3, 0, 5, 6, 7};
  const auto named = [](const std::string& found) {
    return found.find("fit: the content of the first, middle and last training sample is of hash ") != found.npos &&
           found.find("give all ranks the same whole set, in the same order") != found.npos;
  };
  CHECK(fit_with(same, false, -1).empty());
  CHECK(named(fit_with(other, false, -1)));
  CHECK(named(fit_with(labels_alike, false, -1)));
  CHECK(fit_with(same, true, -1).empty());
  CHECK(fit_with(labels_alike, true, -1).empty());
  CHECK(named(fit_with(other, true, -1)));  // other labels
  CHECK_THAT(fit_with(same, false, 4), Catch::Contains("last training sample is of hash ") &&
                                           Catch::Contains("not to be had (image.png (byte 0): is missing) on rank 1"));
}

namespace {
using Small = sk::Model<nn::Sequential<nn::Linear<4>>, sk::Shape<3>>;
/// 40 samples of three values, each of its own.
sk::data::InMemory<float> forty() {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < 120; ++i) x.push_back(0.01f * static_cast<float>(i));
  for (int i = 0; i < 40; ++i) y.push_back(i % 4);
  return {{1, {3}}, std::move(x), std::move(y), 4};
}
}  // namespace

TEST_CASE("ranks with another layer of the same shape and cost, or with other options of it, are named", "[train]") {
  const auto all = forty();
  const auto fit = [&]<class Layer>(sk::ThreadComm& world, Layer) {
    sk::Model<nn::Sequential<nn::Linear<4>, Layer, nn::Linear<4>>, sk::Shape<3>> model{sk::Seed{1}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
    trainer.fit(all, {.batch = 8, .progress = false, .threads = 1});
  };
  CHECK_THAT(cases::thrown([&] {
               sk::spawn(2, [&](sk::ThreadComm& world) {
                 if (world.rank() == 0) fit(world, nn::Tanh{});
                 else fit(world, nn::Relu{});
               });
             }),
             Catch::Contains("fit: layer 1 is Tanh on rank 0, Relu on rank 1: give all ranks the same"));
  const auto lines = []<class Layer>(Layer) {
    constexpr const auto& program = nn::program<nn::Sequential<nn::Linear<4>, Layer>, sk::Shape<3>>;
    sk::NamedValues values;
    sk::train::describe(program.layers(), program.parts(), values);
    return values.lines();
  };
  const std::string usual = lines(nn::Dropout<>{});
  CHECK_THAT(usual, Catch::StartsWith("layer 0\tLinear\n") &&
                        Catch::Contains("layer 1\tDropout\nthe content of the options of layer 1 (Dropout)\tof hash "));
  CHECK(lines(nn::Dropout<sk::Rate<1, 2>>{}) == usual);
  CHECK(lines(nn::Dropout<sk::Rate<1, 4>>{}) != usual);
}

TEST_CASE("ranks that evaluate other samples, in other batches or by other metrics are named", "[train]") {
  const auto message = [](auto evaluate) {
    return cases::thrown([&] {
      sk::spawn(2, [&](sk::ThreadComm& world) {
        Small model{sk::Seed{1}};
        sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
        evaluate(trainer, world.rank());
      });
    });
  };
  const auto all = forty();
  CHECK_THAT(message([&](auto& trainer, int rank) { trainer.evaluate(rank == 0 ? all : all.slice(8, 32)); }),
             Catch::Contains("evaluate: the number of evaluated samples is 40 on rank 0, 24 on rank 1"));
  CHECK_THAT(message([&](auto& trainer, int rank) { trainer.evaluate(all.slice(4 * rank, 4 * rank + 20)); }),
             Catch::Contains("evaluate: the content of the first, middle and last evaluated sample is of hash"));
  CHECK_THAT(message([&](auto& trainer, int rank) { trainer.evaluate(all, {.batch = 8 + 8 * rank}); }),
             Catch::Contains("evaluate: `.batch` is 8 on rank 0, 16 on rank 1: give all ranks the same"));
  CHECK_THAT(message([&](auto& trainer, int rank) {
               sk::EvaluateOptions options;
               if (rank == 1) options.metrics = {sk::train::Accuracy{}};
               trainer.evaluate(all, options);
             }),
             Catch::Contains("evaluate: `.metrics` is none on rank 0, accuracy on rank 1"));
  CHECK_NOTHROW(sk::spawn(2, [&](sk::ThreadComm& world) {
    Small model{sk::Seed{1}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
    trainer.evaluate(all, {.batch = 8});
  }));
}

#if !SKEIN_TEST_TSAN  // a model that two threads train is a race: the library says so, and the sanitizer too
TEST_CASE("ranks that are threads and share one model are told so", "[train]") {
  const auto all = forty();
  Small model{sk::Seed{1}};
  const std::string found = cases::thrown([&] {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
      trainer.fit(all, {.epochs = 2, .batch = 8, .progress = false});
    });
  });
  CHECK_THAT(found, Catch::Contains("this model is in another training: ranks that are threads have a model each"));
  sk::Trainer alone{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_NOTHROW(alone.fit(all, {.batch = 8, .progress = false}));  // the fit that failed has ended
}
#endif

TEST_CASE("ranks that are threads and share one metric are told so", "[train]") {
  const auto all = forty();
  sk::train::ConfusionMatrix matrix(4);
  const auto evaluate = [&](bool shared) {
    return cases::thrown([&] {
      sk::spawn(2, [&](sk::ThreadComm& world) {
        Small model{sk::Seed{1}};
        sk::train::ConfusionMatrix own(4);
        sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
        trainer.evaluate(all, {.batch = 8, .metrics = {shared ? std::ref(matrix) : std::ref(own)}});
        trainer.evaluate(all, {.batch = 8, .metrics = {shared ? std::ref(matrix) : std::ref(own)}});
      });
    });
  };
  CHECK_THAT(evaluate(true), Catch::Contains("the metric 'confusion matrix' is in another evaluation: ranks that are threads"));
  CHECK(evaluate(false) == "");
  Small model{sk::Seed{1}};
  sk::Trainer alone{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_NOTHROW(alone.evaluate(all, {.metrics = {std::ref(matrix)}}));  // the evaluation that failed has ended
}

TEST_CASE("a user's schedule is not asked for steps that the fit has not", "[train]") {
  static const std::vector<float> factors(4, 1.0f);  // 2 epochs of 64 samples in batches of 32
  const cases::Case usual{.change = [](sk::FitOptions& o) {
    o.schedule = [table = &factors](std::int64_t step) { return table->at(static_cast<std::size_t>(step)); };
  }};
  CHECK(of_two(usual, usual) == "");
}

TEST_CASE("ranks whose Trainer has no policy are told once that they train apart", "[train]") {
  const support::TemporaryFolder folder;
  const auto said = [&](auto policy) {
    return support::said(folder, [&] { sk::spawn(2, [&](sk::ThreadComm&) { cases::fit(policy, {}); }); });
  };
  CHECK(said(sk::parallel::Alone{}).empty());
  CHECK_THAT(
      said(sk::parallel::SingleProcess{}),
      Catch::StartsWith("fit: 2 ranks were started, and this Trainer has no policy: each rank trains a model of its own."));
  CHECK(said(sk::parallel::SingleProcess{}).empty());
  CHECK(sk::comm::launch::started_rank().ranks == 1);
}

TEST_CASE("what may differ between ranks is not compared: threads, and the sizes of shards", "[train]") {
  cases::Case usual{.change = [](sk::FitOptions& o) { o.loader.partition = sk::data::Partition::local; }};
  cases::Case other = usual;
  other.threads = 2;
  other.samples = 40;
  CHECK(of_two(usual, other).empty());
}

TEST_CASE("ranks that differ are named under servers, in pipelines and in simulated worlds; a server needs no data", "[train]") {
  const int threads = GENERATE(1, 2);
  const cases::Case usual{.threads = threads};
  cases::Case rate = usual, none = usual;
  rate.lr = 0.5f;
  none.samples = 0;
  const auto served = [&](const cases::Case& of_1, const cases::Case& of_server) {
    return cases::thrown([&] {
      sk::spawn(3, [&](sk::ThreadComm& world) {
        const auto policy = sk::parallel::ParameterServer{world, sk::parallel::Staleness<0>{}};
        cases::fit(policy, world.rank() == 2 ? of_server : world.rank() == 1 ? of_1 : usual);
      });
    });
  };
  CHECK(served(usual, none).empty());
  CHECK_THAT(served(rate, usual), Catch::Contains("fit: `.lr` of Sgd is 0.01 on ranks 0, 2, 0.5 on rank 1"));
  CHECK_THAT(served(usual, rate), Catch::Contains("fit: `.lr` of Sgd is 0.01 on ranks 0, 1, 0.5 on rank 2"));

  const auto in_simulation = [&](sk::SimComm& world) {
    cases::fit(sk::parallel::DataParallel{world}, world.rank() == 1 ? rate : usual);
  };
  CHECK_THAT(cases::thrown([&] { (void)sk::simulate(2, {}, in_simulation); }),
             Catch::Contains("fit: `.lr` of Sgd is 0.01 on rank 0, 0.5 on rank 1"));

  const auto in_a_pipeline = [&](sk::ThreadComm& world) {
    const auto data = sk::data::InMemory<float>({1, {12}}, std::vector<float>(12 * 32, 0.5f), std::vector<int>(32, 1), 4);
    const sk::parallel::Pipeline<sk::nn::Linear<8>, sk::nn::Linear<4>> pipeline{world};
    auto model = pipeline.model<sk::Shape<12>>(sk::Seed{3});
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}, pipeline};
    trainer.fit(data, {.batch = world.rank() == 1 ? 8 : 16, .progress = false, .threads = threads});
  };
  CHECK_THAT(cases::thrown([&] { sk::spawn(2, in_a_pipeline); }), Catch::Contains("fit: `.batch` is 16 on rank 0, 8 on rank 1"));
}

TEST_CASE("a weight that one rank has changed is found at the end of the fit, and within it where asked", "[train]") {
  const int threads = GENERATE(1, 2);
  cases::Case usual{.threads = threads};
  usual.meddle = 1e-30f;  // a callback on all ranks; this one changes no bit
  cases::Case other = usual;
  CHECK(of_two(usual, other).empty());
  other.meddle = 0.25f;
  CHECK_THAT(of_two(usual, other), Catch::Contains("the ranks have other weights at the end of fit: 0.weight is of hash ") &&
                                       Catch::Contains(" on rank 0, of hash "));
  usual.change = other.change = [](sk::FitOptions& o) { o.check.replicas_every = 3; };
  CHECK_THAT(of_two(usual, other), Catch::Contains("the ranks have other weights after step 3: 0.weight is of hash "));
  const auto drifting = [&](sk::ThreadComm& world) {
    cases::fit(sk::parallel::ModelAverage{world, sk::parallel::Period<2>{}}, usual);
  };
  CHECK_THROWS_WITH(sk::spawn(2, drifting),
                    Catch::Contains(".check.replicas_every is for policies whose ranks have the same weights"));
}

TEST_CASE("a call of all ranks that one rank makes alone is named, and who has not made it", "[train]") {
  const cases::Alone what = GENERATE(cases::Alone::save, cases::Alone::save_in_fit, cases::Alone::evaluate, cases::Alone::load,
                                     cases::Alone::load_weights, cases::Alone::fit, cases::Alone::trainer);
  const int threads = GENERATE(1, 2);
  const support::TemporaryFolder folder;
  const std::string text = cases::thrown([&] {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      cases::call_alone(sk::parallel::DataParallel{world}, world.rank(), what, threads, folder / "alone");
    });
  });
  CHECK_THAT(text, Catch::Contains(cases::alone_text(what, 2)));
}

TEST_CASE("predict of a pipeline is a call of all ranks, and who has not made it is named", "[train]") {
  const std::string text = cases::thrown([&] {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      const auto data = sk::data::InMemory<float>({1, {12}}, std::vector<float>(12 * 32, 0.5f), std::vector<int>(32, 1), 4);
      const sk::parallel::Pipeline<sk::nn::Linear<8>, sk::nn::Linear<4>> pipeline{world};
      auto model = pipeline.model<sk::Shape<12>>(sk::Seed{3});
      sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}, pipeline};
      trainer.fit(data, {.batch = 16, .progress = false});
      if (world.rank() == 0) (void)trainer.predict(data);
    });
  });
  CHECK_THAT(text, Catch::Contains("predict is a call of all ranks: rank 1 has not called it"));
}

TEST_CASE("a rank that has no file of weights is named by the others", "[train]") {
  const support::TemporaryFolder folder;
  std::string heard;
  const std::string text = cases::thrown([&] {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      cases::Model model{sk::Seed{5}};
      sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
      if (world.rank() == 0) trainer.save_weights(folder / "weights");
      world.barrier();
      try {
        trainer.load_weights(world.rank() == 0 ? folder / "weights" : folder / "none");
      } catch (const sk::CommError& e) {
        if (world.rank() == 0) heard = e.what();
        throw;
      }
    });
  });
  CHECK_THAT(heard, Catch::Contains("rank 1") && Catch::Contains(folder / "none"));
  CHECK_THAT(text, Catch::Contains(folder / "none"));
}

TEST_CASE("ranks that load files of other weights are named with their files", "[train]") {
  const support::TemporaryFolder folder;
  for (const std::uint64_t seed : {5, 6}) {
    cases::Model model{sk::Seed{seed}};
    sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}}.save(folder / std::to_string(seed));
  }
  const auto load = [&](bool weights_alone, bool same) {
    return cases::thrown([&] {
      sk::spawn(2, [&](sk::ThreadComm& world) {
        cases::Model model{sk::Seed{5}};
        sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
        const std::string path = folder / (world.rank() == 0 || same ? "5" : "6");
        weights_alone ? trainer.load_weights(path) : trainer.load(path);
      });
    });
  };
  for (const bool weights_alone : {false, true}) {
    CHECK(load(weights_alone, true).empty());
    CHECK_THAT(
        load(weights_alone, false),
        Catch::Contains((weights_alone ? "load_weights" : "load") + std::string(": the ranks have read files that differ: '") +
                        (folder / "5") + "' on rank 0, '" + (folder / "6") + "' on rank 1: give all ranks the same file"));
  }
}

TEST_CASE("a fit that ranks would begin with other weights is refused before its first step, and its weights stay", "[train]") {
  const auto data = sk::data::InMemory<float>({1, {12}}, std::vector<float>(12 * 32, 0.5f), std::vector<int>(32, 1), 4);
  const auto fit = [&](const auto& policy, int rank_that_loads) {
    return cases::thrown([&] {
      sk::spawn(2, [&](sk::ThreadComm& world) {
        sk::Model<nn::Sequential<nn::Linear<4>>, sk::Shape<12>> model{sk::Seed{3}};
        sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, policy(world)};
        if (world.rank() == rank_that_loads || rank_that_loads < 0) model.modify()[0] = 7;
        trainer.fit(data, {.batch = 16, .progress = false});
        trainer.fit(data, {.batch = 16, .progress = false});
      });
    });
  };
  const auto plain = [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world}; };
  const auto sharded = [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}}; };
  const auto averages = [](sk::ThreadComm& world) { return sk::parallel::ModelAverage{world, sk::parallel::Period<2>{}}; };
  for (const int rank : {0, 1}) {
    const std::string named = "fit: the model with which it begins is of hash ";
    CHECK_THAT(fit(plain, rank), Catch::Contains(named));
    CHECK_THAT(fit(sharded, rank), Catch::Contains(named));
    CHECK(fit(averages, rank).empty());
  }
  CHECK(fit(plain, -1).empty());
  CHECK(fit(sharded, -1).empty());
}

TEST_CASE("where one rank cannot load, or loads another file, no rank's weights change", "[train]") {
  const support::TemporaryFolder folder;
  for (const std::uint64_t seed : {6, 7}) {
    cases::Model model{sk::Seed{seed}};
    sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}}.save(folder / std::to_string(seed));
  }
  const bool weights_alone = GENERATE(false, true);
  const std::string other = GENERATE("none", "7");
  const int failing = GENERATE(0, 1);
  bool unchanged[2] = {false, false};
  const std::string text = cases::thrown([&] {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      cases::Model model{sk::Seed{5}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
      const auto weights = [&] {
        const auto view = std::as_const(model).parameters();
        return std::vector<float>(view.data, view.data + view.size);
      };
      const std::vector<float> before = weights();
      const std::string path = folder / (world.rank() == failing ? other : "6");
      try {
        weights_alone ? trainer.load_weights(path) : trainer.load(path);
      } catch (const sk::Error&) {
        unchanged[world.rank()] = weights() == before;
        throw;
      }
    });
  });
  CHECK(text != "");
  CHECK(unchanged[0]);
  CHECK(unchanged[1]);
}

TEST_CASE("the ranks of a fit agree by one collective, in less than a millisecond", "[train]") {
  const auto collectives = [](auto call) {
    long count = 0;
    sk::spawn(2, [&](sk::ThreadComm& world) {
      sk::Counted<sk::ThreadComm> counted{world};
      const long before = counted.counts().collectives;
      call(counted);
      if (world.rank() == 0) count = counted.counts().collectives - before;
    });
    return count;
  };
  double seconds = 1;
  const long count = collectives([&](auto& world) {
    sk::parallel::CommPolicyState<sk::Counted<sk::ThreadComm>, float, sk::Cpu> state{world, {}};
    for (int i = 0; i < 200; ++i) {  // on a busy machine one of them at least is not held up
      const auto begin = std::chrono::steady_clock::now();
      sk::train::Agreement own;
      sk::train::describe(sk::FitOptions{}, own.all);
      sk::optim::describe(sk::optim::Adam{}, own.all);
      sk::train::agree("fit", state, own);
      if (world.rank() == 0)
        seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  });
  CHECK(count == 200);
  CHECK(seconds < 1e-3);
}

TEST_CASE("a policy's hook that throws ends the step, which is not counted, and the next ones are right", "[train]") {
  const int threads = GENERATE(1, 2, 4), hook = GENERATE(0, 1);
  CAPTURE(threads, hook);
  const auto weights = [&](bool armed) {
    cases::Model model{sk::Seed{5}};
    sk::train::TrainStep train_step{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, ThrowingPolicy{hook, &armed}};
    train_step.reserve({.capacity = 12, .execution = sk::Execution::layer_wise, .threads = threads});
    sk::Arena<float> x(12 * sk::row_pitch(12));
    std::vector<std::int32_t> labels(12);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = sk::random_uniform(1, 0, i);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 4);
    sk::data::Batch<float> batch;
    batch.x = x.data();
    batch.pitch = sk::row_pitch(12);
    batch.sample = {1, {12}};
    batch.labels = labels.data();
    batch.count = batch.global_count = 12;
    if (armed) CHECK_THROWS_WITH(train_step.step(batch), "hook " + std::to_string(hook) + " throws");
    CHECK(train_step.steps() == 0);
    for (int i = 0; i < 3; ++i) train_step.step(batch);
    CHECK(train_step.steps() == 3);
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  CHECK(weights(true) == weights(false));
}

namespace {
/// Saves at the end of the first epoch; its own state cannot be written on rank 0.
template <class Trainer> struct SavesAndFails {
  Trainer** trainer;
  std::string path;
  int rank, kind;
  void on_epoch_end(sk::train::EpochRecord&, sk::train::FitControl&) { (*trainer)->save(path); }
  template <class Archive> void serialize(Archive&, unsigned) {
    if (rank != 0 || Archive::is_loading::value) return;
    if (kind == 0) throw std::bad_alloc();
    if (kind == 1) throw std::runtime_error("the sensor does not answer");
    throw 42;
  }
};
}  // namespace

TEST_CASE("a callback that cannot be saved on rank 0 ends the save of all ranks, and the old file stays", "[train]") {
  const support::TemporaryFolder folder;
  const auto all = forty();
  for (const int kind : {0, 1, 2}) {
    std::string heard[2];
    (void)cases::thrown([&] {
      sk::spawn(2,
                [&](sk::ThreadComm& world) {
                  Small model{sk::Seed{1}};
                  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
                  trainer.save(folder / "c");
                  auto* handle = &trainer;
                  sk::FitOptions options{.epochs = 1, .batch = 8, .progress = false};
                  options.callbacks = {SavesAndFails<decltype(trainer)>{&handle, folder / "c", world.rank(), kind}};
                  try {
                    trainer.fit(all, options);
                  } catch (const sk::CommError& e) { heard[world.rank()] = e.what(); } catch (const std::bad_alloc&) {
                    heard[world.rank()] = "bad_alloc";
                  } catch (const std::runtime_error& e) { heard[world.rank()] = std::string("own: ") + e.what(); } catch (int) {
                    heard[world.rank()] = "int";
                  }
                },
                {.deadline = 60});
    });
    CHECK(heard[0] == (kind == 0 ? "bad_alloc" : kind == 1 ? "own: the sensor does not answer" : "int"));
    CHECK_THAT(heard[1], Catch::Contains("save: rank 0 could not write") && Catch::Contains("': a callback cannot be saved: "));
    CHECK_NOTHROW(sk::train::CheckpointReader(folder / "c"));
  }
}

namespace {
/// Its state cannot be read on one rank.
struct FailsToLoad {
  bool here;
  void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl&) {}
  template <class Archive> void serialize(Archive&, unsigned) {
    if (here && Archive::is_loading::value) throw std::runtime_error("the sensor does not answer");
  }
};
}  // namespace

TEST_CASE("a callback that cannot be loaded on one rank ends the fit of all, long before a deadline", "[train]") {
  const support::TemporaryFolder folder;
  const auto all = forty();
  // What two ranks that train hear, of which `at` fails; or, where that is -1, rank 0 has a callback more than were saved.
  const auto heard_by = [&](int ranks, int at, const auto& policy_of) {
    std::vector<std::string> heard(static_cast<std::size_t>(ranks));
    const auto begin = std::chrono::steady_clock::now();
    (void)cases::thrown([&] {
      sk::spawn(ranks,
                [&](sk::ThreadComm& world) {
                  Small model{sk::Seed{1}};
                  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, policy_of(world)};
                  sk::FitOptions options{.epochs = 2, .batch = 8, .progress = false};
                  struct Stop {
                    void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl& control) { control.stop("enough"); }
                  };
                  options.callbacks = {FailsToLoad{false}, Stop{}};
                  trainer.fit(all, options);
                  trainer.save(folder / "c");
                  world.barrier();  // the file is there, and whole
                  trainer.load(folder / "c");
                  options.callbacks = {FailsToLoad{world.rank() == at}, Stop{}};
                  if (at < 0 && world.rank() == 0) options.callbacks.add(Stop{});
                  heard[static_cast<std::size_t>(world.rank())] = cases::thrown([&] { trainer.fit(all, options); });
                },
                {.deadline = 60});
    });
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    return heard;
  };
  const auto replicas = [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world}; };
  for (const int at : {0, 1}) {
    const auto heard = heard_by(2, at, replicas);
    CHECK(heard[static_cast<std::size_t>(at)] == "the sensor does not answer");
    CHECK_THAT(heard[static_cast<std::size_t>(1 - at)],
               Catch::Equals("fit: rank " + std::to_string(at) +
                             " cannot give its callbacks the states of the loaded training: the sensor does not answer"));
  }
  const auto others = heard_by(2, -1, replicas);
  CHECK_THAT(others[0], Catch::Contains("holds the state of 2 callbacks, but this training has 3"));
  CHECK_THAT(others[1], Catch::Contains("fit: rank 0 cannot give its callbacks") && Catch::Contains("but this training has 3"));
  const auto served = heard_by(3, 1, [](sk::ThreadComm& world) {
    return sk::parallel::ParameterServer{world, sk::parallel::Staleness<0>{}};
  });
  CHECK_THAT(served[0], Catch::Contains("fit: another rank cannot give its callbacks the states"));
  CHECK(served[1] == "the sensor does not answer");
  CHECK_THAT(served[2], Catch::Contains("all other ranks have returned"));
}

TEST_CASE("a callback that cannot be loaded from a folder whose training has had its epochs ends the fit of all", "[train]") {
  const support::TemporaryFolder folder;
  const auto all = forty();
  std::string heard[2];
  sk::spawn(2,
            [&](sk::ThreadComm& world) {
              for (const bool fails : {false, world.rank() == 1}) {
                Small model{sk::Seed{1}};
                sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
                sk::FitOptions options{.epochs = 2, .batch = 8, .progress = false};
                options.callbacks = {FailsToLoad{fails}};
                options.checkpoint.folder = folder / "run";
                heard[world.rank()] = cases::thrown([&] { trainer.fit(all, options); });
              }
            },
            {.deadline = 60});
  CHECK_THAT(heard[0], Catch::Contains("fit: rank 1 cannot give its callbacks the states of the loaded training"));
  CHECK(heard[1] == "the sensor does not answer");
}

TEST_CASE("a trainer over a part names its ranks by their numbers in the world", "[train]") {
  const support::TemporaryFolder folder;
  for (const std::uint64_t seed : {5, 6}) {
    cases::Model model{sk::Seed{seed}};
    sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}}.save(folder / std::to_string(seed));
  }
  // What the first of ranks 1 to 4, which are ranks 0 to 3 of a part, hears where rank 3 differs.
  const auto of_part = [&](const auto& work) {
    std::string heard;
    (void)cases::thrown([&] {
      sk::spawn(5, [&](sk::ThreadComm& world) {
        sk::ThreadComm part = world.split(world.rank() == 0 ? 0 : 1);
        if (world.rank() == 0) return;
        try {
          work(part, world.rank() == 3);
        } catch (const sk::CommError& e) {
          if (world.rank() == 1) heard = e.what();
          throw;
        }
      });
    });
    return heard;
  };
  const cases::Case usual;
  cases::Case rate = usual, meddled = usual;
  rate.lr = 0.5f, meddled.meddle = 0.25f;
  const auto fit = [&](const cases::Case& other) {
    return of_part(
        [&](sk::ThreadComm& part, bool differs) { cases::fit(sk::parallel::DataParallel{part}, differs ? other : usual); });
  };
  CHECK_THAT(fit(rate), Catch::Contains("`.lr` of Sgd is 0.01 on ranks 1, 2, 4, 0.5 on rank 3"));
  CHECK_THAT(fit(meddled), Catch::Contains(" on ranks 1, 2, 4, of hash ") &&
                               Catch::Contains("most ranks have the same, and rank 3 differs from them"));
  const auto load = [&](const char* other) {
    return of_part([&](sk::ThreadComm& part, bool differs) {
      cases::Model model{sk::Seed{5}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, sk::parallel::DataParallel{part}};
      trainer.load(folder / (differs ? other : "5"));
    });
  };
  CHECK_THAT(load("6"), Catch::Contains("' on rank 2, '" + (folder / "6") + "' on rank 3, '"));
  CHECK_THAT(load("none"), Catch::Contains("load: rank 3 could not read its file: "));
  CHECK_THAT(
      of_part([](sk::ThreadComm& part, bool differs) {
        const sk::parallel::Pipeline<nn::Linear<8>, nn::Linear<8>, nn::Linear<8>, nn::Linear<4>> pipeline{part};
        auto model = pipeline.model<sk::Shape<12>>(sk::Seed{3});
        sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}, pipeline};
        const auto data = sk::data::InMemory<float>({1, {12}}, std::vector<float>(12 * 32, 0.5f), std::vector<int>(32, 1), 4);
        trainer.fit(data, {.batch = differs ? 8 : 16, .progress = false});
      }),
      Catch::Contains("fit: `.batch` is 16 on ranks 1, 2, 4, 8 on rank 3"));
}
