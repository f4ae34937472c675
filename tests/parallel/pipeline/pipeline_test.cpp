// SPDX-License-Identifier: Apache-2.0
// Pipeline over threads, and driven by one thread; tests/distributed has the same over processes.
#include "../../support/pipeline_cases.hpp"
#include "../../support/at_every_size.hpp"
#include "../../support/failure_cases.hpp"
#include "../../support/sanitizers.hpp"
#include "../../support/thrown.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/plan/timeline.hpp>

namespace cases = pipeline_cases;
namespace sk = skein;
using S = sk::parallel::PipelineSchedule;
using support::on_threads;

TEST_CASE("synchronous pipelines give the bits of the serial run", "[parallel]") {
  on_threads(4, [](auto& w) { cases::agrees_with_serial(w, {S::unpipelined, S::gpipe, S::one_f_one_b, S::zero_bubble}); });
  on_threads(2, [](auto& w) { cases::agrees_with_serial(w, {S::interleaved}); });
}
TEST_CASE("one thread drives all stages", "[parallel]") {
  sk::SelfComm self;
  cases::agrees_with_serial(self, {S::unpipelined, S::gpipe, S::one_f_one_b, S::zero_bubble, S::interleaved});
  const cases::Result expected = cases::serial(36, 9);  // the table of two ranks, two stages each
  cases::pipelined(cases::Pipeline{self, {.schedule = S::interleaved, .devices = 2}}, 36, 1,
                   [&](cases::Staged& model, cases::TrainStep& train_step, const std::vector<double>&) {
                     cases::require_stages(model, expected);
                     CHECK(train_step.program(4).lines.size() == 4 * (4 + 4 + 1));
                   });
  cases::holds_its_own_stages(self);
  cases::pipedream_is_delayed(self);
  cases::ties(self);
  cases::trains(self);
}
TEST_CASE("a stage never allocates its neighbours' weights", "[parallel]") {
  on_threads(4, [](auto& w) { cases::holds_its_own_stages(w); });
}
TEST_CASE("a pipeline follows its table and nothing else", "[parallel]") {
  on_threads(4, [](auto& w) { cases::follows_the_table(w); });
}
TEST_CASE("PipeDream reads the weights that it has stashed", "[parallel]") {
  on_threads(4, [](auto& w) { cases::pipedream_is_delayed(w); });
}
TEST_CASE("the steps of a table that is not synchronous are counted", "[parallel]") {
  on_threads(4, [](auto& w) { cases::counts_the_updates_of_a_table(w); });
}
TEST_CASE("ranks that were given different tables are told so", "[parallel]") {
  on_threads(4, [](auto& w) {
    cases::other_tables_are_refused(w);
    cases::a_table_of_one_rank_is_refused(w);
  });
}
TEST_CASE("pipelines beside each other", "[parallel]") {
  on_threads(8, [](auto& w) { cases::replicates(w); });
  on_threads(8, [](auto& w) { cases::replicates_pipedream(w); });
}
TEST_CASE("pipelines beside each other whose ranks have other numbers of threads have the same weights", "[parallel]") {
  using sk::optim::chain, sk::optim::ClipNorm;
  on_threads(8, [](auto& w) { cases::replicas_of_other_threads_agree(w, cases::optimizer, 0.05); });
  on_threads(8, [](auto& w) {
    cases::replicas_of_other_threads_agree(w, chain(sk::optim::Lars{.trust = 0.05f}, ClipNorm{0.01f}, cases::optimizer), 0);
  });
}
TEST_CASE("tied weights across stages", "[parallel]") {
  on_threads(4, [](auto& w) { cases::ties(w); });
  on_threads(4, [](auto& w) { cases::ties_what_is_loaded(w); });
}
TEST_CASE("a Trainer over a pipeline", "[parallel]") {
  on_threads(2, [](auto& w) { cases::trains(w); });
  on_threads(4, [](auto& w) { cases::trains(w); });
}
TEST_CASE("commits of pipelines beside each other change nothing of their training", "[parallel]") {
  on_threads(4, [](auto& w) { cases::commits_change_nothing(w); });
}
TEST_CASE("pipelines beside each other whose weights differ are found, and the rank is named", "[parallel]") {
  on_threads(4, [](auto& w) { cases::differing_replicas_are_named(w); });
  on_threads(6, [](auto& w) { cases::differing_replicas_are_named(w); });
}
TEST_CASE("on a simulated clock a pipeline's trace is its table, played", "[parallel]") {
  namespace plan = sk::plan;
  plan::StageLengths lengths{{{1.0, 1.5, 0.5, 0.1}, {2.0, 1.0, 1.5, 0.2}, {1.5, 2.5, 1.0, 0.1}, {0.5, 1.0, 0.5, 0.3}}, 0};
  for (S schedule : {S::unpipelined, S::gpipe, S::one_f_one_b, S::zero_bubble, S::pipedream, S::interleaved}) {
    const int ranks = schedule == S::interleaved ? 2 : 4;
    // In the others messages meet on a rank, which the simulated network carries one after the other, the table at once.
    lengths.message = schedule == S::unpipelined || schedule == S::gpipe ? 0.25 : 0;
    const plan::Network network{.near = {lengths.message, 0}, .far = {lengths.message, 0}, .node = 8};
    sk::simulate(ranks, {.network = network}, [&](sk::SimComm& world) {
      const cases::Pipeline pipeline{world, {.schedule = schedule, .micro_batches = 6, .lengths = lengths}};
      cases::Staged model = pipeline.model<cases::Input>(sk::Seed{5});
      cases::TrainStep train_step(model, {}, cases::optimizer, pipeline);
      train_step.reserve({.capacity = 36, .threads = 1});
      const double begin = world.all_reduce(world.now(), sk::Max{});
      world.compute(begin + 10 - world.now());  // all begin at the same time
      const double start = world.now();
      train_step.step(cases::Points{}.batch(0, 36));
      std::size_t n = 0;
      for (const plan::TimedStep& t : plan::timeline_of(pipeline.schedule(6), lengths).steps) {
        if (t.rank != world.rank()) continue;
        const auto& ran = train_step.policy_state().trace()[n++];
        RANK_CHECK(ran.step == t.step);
        RANK_CHECK(ran.begin - start == Approx(t.begin).margin(1e-9).epsilon(0));
        RANK_CHECK(ran.end - start == Approx(t.end).margin(1e-9).epsilon(0));
      }
      RANK_CHECK(n == train_step.policy_state().trace().size());
    });
  }
}
TEST_CASE("a batch that is larger than a pipeline's memory is refused", "[parallel]") {
  on_threads(4, [](auto& world) {
    const cases::Pipeline pipeline{world, {.micro_batches = 2}};
    cases::Staged model = pipeline.template model<cases::Input>(sk::Seed{5});
    cases::TrainStep train_step(model, {}, cases::optimizer, pipeline);
    train_step.reserve({.capacity = 8, .threads = 1});
    const auto said = [](auto act) {
      return support::thrown<sk::ArgumentError>(act).find(".capacity is 8") != std::string::npos;
    };
    RANK_CHECK(said([&] { train_step.step(cases::Points{}.batch(0, 36)); }));
    RANK_CHECK(said([&] { train_step.evaluate(cases::Points{}.batch(0, 36)); }));
  });
}
namespace pipeline_test {
/// Leaves this process little more memory than it has.
struct LittleMemory {
  explicit LittleMemory(rlim_t more = 64 << 20) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before);
    const rlimit little{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more, before.rlim_max};
    setrlimit(RLIMIT_AS, &little);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before); }
  rlimit before{};
};
}  // namespace pipeline_test
#if !SKEIN_TEST_ASAN && !SKEIN_TEST_TSAN  // which want more address space than there is
TEST_CASE("a rank makes no optimizer's state of the stages of other ranks, not even while it looks at the groups", "[parallel]") {
  using Large = sk::parallel::Pipeline<sk::nn::Linear<2048>, sk::nn::Linear<2048>>;  // the second has 16 MiB of parameters
  std::atomic<bool> passed{false};
  CHECK_NOTHROW(sk::spawn(2, [&](sk::ThreadComm& world) {
    const Large pipeline{world, {.schedule = S::gpipe, .micro_batches = 2}};
    auto model = pipeline.model<sk::Shape<4>>(sk::Seed{5});
    std::optional<pipeline_test::LittleMemory> little;
    long entries = 4;                                          // of the whole network
    const auto look = [&](const sk::optim::ParameterEntry&) {  // then of the rank's own stage
      if (world.rank() == 0 && --entries < 0) little.reset(), passed = true;
      return false;
    };
    const sk::optim::Adam adam{.groups = {sk::optim::GroupRule{.predicate = look, .freeze = true, .may_match_nothing = true}}};
    if (world.rank() == 0) little.emplace(16 << 20);
    while (world.rank() == 1 && !passed) std::this_thread::yield();
    try {
      sk::parallel::PipelineTrainStep<decltype(model), sk::nn::Mse, sk::optim::Adam> step(model, {}, adam, pipeline);
    } catch (...) {
      little.reset(), passed = true;
      throw;
    }
  }));
  CHECK(passed);
}
#endif
TEST_CASE("a pipeline that found no memory has none reserved, and makes it when it is asked again", "[parallel]") {
  sk::SelfComm self;
  const cases::Pipeline pipeline{self, {.schedule = S::gpipe, .micro_batches = 2}};
  cases::Staged model = pipeline.model<cases::Input>(sk::Seed{5});
  cases::TrainStep train_step(model, {}, cases::optimizer, pipeline);
  const cases::Points points;
  CHECK_THROWS_AS(train_step.reserve({.capacity = 1L << 60, .threads = 1}), sk::MemoryError);
  REQUIRE_FALSE(train_step.reserved());
  CHECK(support::thrown<sk::ArgumentError>([&] { train_step.evaluate(points.batch(0, 8)); }).find("reserve") !=
        std::string::npos);
  train_step.reserve({.capacity = 1000, .threads = 1});
  train_step.step(points.batch(0, 8));
  train_step.evaluate(points.batch(0, 8));
#if !SKEIN_TEST_ASAN && !SKEIN_TEST_TSAN  // which want more address space than there is
  const int slots = train_step.slots();
  {
    const pipeline_test::LittleMemory little;
    CHECK_THROWS(train_step.program(2000));
  }
  REQUIRE_FALSE(train_step.reserved());
  CHECK(support::thrown<sk::ArgumentError>([&] { train_step.step(points.batch(0, 8)); }).find("reserve") != std::string::npos);
  train_step.reserve({.capacity = 1000, .threads = 1});
  CHECK(train_step.slots() == slots);
  train_step.step(points.batch(0, 8));
#endif
}
TEST_CASE("a batch that a pipeline cannot take is refused on all ranks, as one model refuses it", "[parallel]") {
  on_threads(4, [](auto& world) {
    const cases::Pipeline pipeline{world, {.micro_batches = 2}};
    cases::Staged model = pipeline.template model<cases::Input>(sk::Seed{5});
    cases::TrainStep train_step(model, {}, cases::optimizer, pipeline);
    train_step.reserve({.capacity = 8, .threads = 1});
    const cases::Points points;
    const auto good = points.batch(0, 8);
    auto unlabelled = good, narrow = good, empty = good;
    unlabelled.labels = nullptr, narrow.pitch = 11, empty.x = nullptr;
    const auto says = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
    RANK_CHECK(says(support::thrown<sk::ArgumentError>([&] { train_step.step(unlabelled); }), "has no targets"));
    RANK_CHECK(says(support::thrown<sk::ShapeError>([&] { train_step.step(narrow); }), "the batch's .pitch is 11"));
    RANK_CHECK(says(support::thrown<sk::ShapeError>([&] { train_step.evaluate(narrow); }), "the batch's .pitch is 11"));
    RANK_CHECK(says(support::thrown<sk::ArgumentError>([&] { train_step.step(empty); }), ".x is null"));
    train_step.step(good);
    train_step.evaluate(unlabelled);  // outputs are made without
  });
}
namespace pipeline_test {
struct x;
struct kind;
using Head =
    sk::nn::Graph<sk::nn::Input<x>, sk::nn::Apply<sk::nn::Linear<3>, sk::nn::From<x>, sk::nn::To<kind>>, sk::nn::Output<kind>>;
}  // namespace pipeline_test
TEST_CASE("a class number that is none is refused by all ranks of a pipeline", "[parallel]") {
  using namespace pipeline_test;
  on_threads(2, [](auto& world) {
    const sk::parallel::Pipeline<cases::First, Head> pipeline{world, {.micro_batches = 2}};
    auto model = pipeline.template model<sk::Shape<12>>(sk::Seed{1});
    const auto loss = sk::nn::graph_loss<sk::Model<Head, sk::Shape<24>>>(sk::nn::on<kind>(sk::nn::CrossEntropy{}));
    sk::parallel::PipelineTrainStep train_step(model, loss, cases::optimizer, pipeline);
    train_step.reserve({.capacity = 8, .threads = 1});
    std::vector<float> targets(8, 1.0f);
    auto batch = cases::Points{}.batch(0, 8);
    const cases::Points points;
    batch.x = points.x.data(), batch.labels = nullptr, batch.targets = targets.data(), batch.target_pitch = 1;
    train_step.step(batch);
    targets[5] = 3;
    const std::string said = support::thrown<sk::ArgumentError>([&] { train_step.step(batch); });
    RANK_CHECK(said.find("sample 5 has the label 3") != std::string::npos);
    targets[5] = 2;
    train_step.step(batch);
  });
}
TEST_CASE("a layer that throws while messages are under way ends them, although the pipeline lives on", "[parallel]") {
  std::atomic<bool> told{false}, in_time{false};
  std::string said[2];
  const auto run = [&](sk::ThreadComm& world) {
    using First = sk::nn::Sequential<sk::nn::Linear<24>, failure_cases::Trapped>;
    const sk::parallel::Pipeline<First, cases::Second> pipeline{world, {.schedule = S::gpipe, .micro_batches = 2}};
    try {
      auto model = pipeline.model<sk::Shape<12>>(sk::Seed{1});
      sk::parallel::PipelineTrainStep train_step(model, sk::nn::CrossEntropy{}, cases::optimizer, pipeline);
      train_step.reserve({.capacity = 8, .threads = 1});
      cases::Points points;
      points.x[6 * 12] = failure_cases::forward_throws;  // of the second, when the gradient of the first is awaited
      train_step.step(points.batch(0, 8));
    } catch (const std::exception& e) { said[world.rank()] = e.what(); }
    if (world.rank() == 1) told = true;
    for (const double end = sk::seconds_now() + 4; !told && sk::seconds_now() < end;) std::this_thread::yield();
    if (world.rank() == 0) in_time = told.load();
  };
  (void)support::thrown([&] { sk::spawn(2, run, {.deadline = 6}); });
  CHECK(said[0] == "a layer throws forward");
  CHECK_THAT(said[1], Catch::Contains("rank 0 failed"));
  CHECK(in_time);
}
TEST_CASE("pipelines beside each other are told that their tables update at different times", "[parallel]") {
  on_threads(4, [](auto& world) {
    for (const bool differ : {false, true}) {
      cases::PipelineOptions options{.micro_batches = 3, .replicas = 2};
      options.table = [second = differ && world.rank() > 1](int ranks, int, int micros) {
        return second ? sk::plan::pipedream(ranks, micros) : sk::plan::gpipe(ranks, micros);
      };
      const sk::parallel::Pipeline<cases::First, cases::Second> pipeline{world, options};
      auto model = pipeline.template model<sk::Shape<12>>(sk::Seed{1});
      sk::parallel::PipelineTrainStep train_step(model, sk::nn::CrossEntropy{}, cases::optimizer, pipeline);
      train_step.reserve({.capacity = 12, .threads = 1});
      const cases::Points points;
      auto batch = points.batch(0, 12);
      batch.global_count = 24;
      const std::string said = support::thrown<sk::CommError>([&] { train_step.step(batch); });
      RANK_CHECK(differ == (said.find("the tables of the pipelines differ between ranks: `.synchronous` of .table is true on "
                                      "ranks 0, 1, false on ranks 2, 3") != std::string::npos));
    }
  });
}
TEST_CASE("the schedule of a rate knows that PipeDream makes a step of each micro-batch", "[parallel]") {
  const cases::Points points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {12}}, points.labels);
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const sk::parallel::Pipeline<cases::First, cases::Second> pipeline{world, {.schedule = S::pipedream, .micro_batches = 4}};
    auto model = pipeline.model<sk::Shape<12>>(sk::Seed{1});
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 1.0f}, pipeline};
    const sk::History history =
        trainer.fit(data, {.epochs = 4, .batch = 16, .schedule = sk::optim::linear(1, 0), .progress = false, .threads = 1});
    for (int i = 0; i < 4; ++i)  // the last batch of an epoch asks before its own four steps
      RANK_CHECK(history.epochs()[static_cast<std::size_t>(i)].learning_rate == Approx(0.75 - 0.25 * i).margin(0.12));
  });
}
TEST_CASE("a pipeline as a user writes it", "[parallel]") {
  using cases::First, cases::Second;
  namespace nn = sk::nn;
  const cases::Points points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {12}}, points.labels);
  double loss[2];
  std::size_t held[2], lines = 0;
  // [quote pipeline]
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const sk::parallel::Pipeline<First, Second> pipeline{world, {.schedule = S::zero_bubble, .micro_batches = 8}};
    auto model = pipeline.model<sk::Shape<12>>(sk::Seed{1});  // this rank's stage, and no other
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.5f}, pipeline};
    const sk::History history = trainer.fit(data, {.epochs = 4, .batch = 40, .progress = false, .threads = 1});
    loss[world.rank()] = history.back().training.loss;  // the same on both
    held[world.rank()] = model.bytes();
    if (world.rank() == 0) lines = trainer.train_step().policy_state().trace().size();  // of the last step, with times
  });
  // [end]
  CHECK(loss[0] == loss[1]);
  CHECK(loss[0] < 1);
  CHECK(held[0] != held[1]);
  CHECK(lines == 8 * 3 + 1);
}
TEST_CASE("ranks and stages that do not go together are refused", "[parallel]") {
  on_threads(3, [](auto& world) {
    try {
      cases::Pipeline pipeline{world};
      RANK_CHECK(!"refused");
    } catch (const sk::ArgumentError& e) { RANK_CHECK(std::string(e.what()).find("4 stages over 3 ranks") != std::string::npos); }
  });
  on_threads(1, [](auto& world) {
    const std::string said = support::thrown<sk::ArgumentError>([&] {
      cases::Pipeline pipeline{world, {.schedule = static_cast<S>(7)}};
    });
    RANK_CHECK(said ==
               "Pipeline: .schedule is 7, and no value of its enumeration has that number: give unpipelined, gpipe, one_f_one_b, "
               "interleaved, zero_bubble or pipedream");
  });
}
