// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/pipeline_program.hpp>

#include <catch2/catch.hpp>

#include <algorithm>

using namespace skein;
using namespace skein::plan;

TEST_CASE("a rank's lines are its steps, with memory for what the checker says and one message ahead", "[plan]") {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int micros : {1, 2, 3, 7, 8, 32})
      for (const Schedule& s : {unpipelined(ranks, micros), gpipe(ranks, micros), one_f_one_b(ranks, micros),
                                zero_bubble(ranks, micros), interleaved(ranks, 2, micros), pipedream(ranks, micros)}) {
        INFO(s.kind << ", " << ranks << " ranks, " << micros << " micro-batches");
        const ScheduleReport r = check(s);
        int versions = 1;
        for (int rank = 0; rank < ranks; ++rank) {
          const PipelineProgram p = pipeline_program(s, {.first_rank = rank, .last_rank = rank + 1, .vertical_sync = false});
          std::vector<Step> steps;
          int slots = 0;
          for (const PipelineLine& line : p.lines) {
            steps.push_back(line.step);
            REQUIRE((line.step.task == Task::update || line.slot >= 0));
          }
          for (int stage = rank; stage < s.stages; stage += ranks)
            slots += p.slots[static_cast<std::size_t>(stage)],
                versions = std::max(versions, 1 + p.versions[static_cast<std::size_t>(stage)]);
          CHECK(steps == s.order[static_cast<std::size_t>(rank)]);
          CHECK(slots <= r.live_activations + 2);
        }
        CHECK(versions <= r.weight_versions);  // of micro-batches in flight, the first ones share a version
        if (micros == 32) CHECK(versions == r.weight_versions);
      }
}

TEST_CASE("one thread that drives all ranks keeps each rank's order, and each micro-batch's", "[plan]") {
  for (const Schedule& s : {gpipe(3, 5), one_f_one_b(3, 5), zero_bubble(3, 5), interleaved(3, 2, 6), pipedream(3, 5)}) {
    const PipelineProgram p = pipeline_program(s, {.first_rank = 0, .last_rank = 3});
    std::vector<std::vector<Step>> order(3);
    for (const PipelineLine& line : p.lines) {
      order[static_cast<std::size_t>(s.rank_of(line.step.stage))].push_back(line.step);
      CHECK_FALSE((line.receives || line.sends));
    }
    CHECK(order == s.order);
  }
}

TEST_CASE("tables that cannot be run are refused with a sentence", "[plan]") {
  const auto refused = [](const Schedule& s, bool vertical = true) {
    try {
      (void)pipeline_program(s, {.first_rank = 1, .last_rank = 2, .vertical_sync = vertical});
    } catch (const ArgumentError& e) { return std::string(e.what()); }
    return std::string();
  };
  Schedule s = one_f_one_b(2, 3);
  CHECK(refused(s).empty());
  std::swap(s.order[1][0], s.order[1][1]);
  CHECK(refused(s).find("deadlock") != std::string::npos);
  s = one_f_one_b(2, 3);
  s.order.pop_back();
  CHECK(refused(s).find("one order a rank") != std::string::npos);
  s = one_f_one_b(2, 3);
  s.stages = 4;
  s.order[1].clear();
  CHECK(refused(s).find("missing") != std::string::npos);
  // A table of two stages a rank in which one stage steps before the other's gradients: sound, but the norm of all gradients is
  // not known then.
  s = interleaved(2, 2, 2);
  auto& order = s.order[1];
  const auto update = std::find(order.begin(), order.end(), Step{Task::update, 3, 1});
  order.erase(update);
  order.insert(order.end() - 2, {Task::update, 3, 1});
  CHECK(refused(s).find("last steps") != std::string::npos);
}

namespace {
/// Why a sound schedule of two ranks is refused, the same on both; empty where it is not.
std::string refused_on_both(const Schedule& s) {
  REQUIRE(check(s).sound());
  std::string said[2];
  for (int rank = 0; rank < 2; ++rank) try {
      (void)pipeline_program(s, {.first_rank = rank, .last_rank = rank + 1});
    } catch (const ArgumentError& e) { said[rank] = e.what(); }
  CHECK(said[0] == said[1]);
  return said[0];
}
}  // namespace

TEST_CASE("a stage that would go back through a micro-batch before its update by another is refused, on all ranks", "[plan]") {
  using enum Task;
  const auto table = [](std::vector<Step> first) {  // one stage a rank, two micro-batches
    Schedule s = pipedream(2, 2);
    s.order[0] = std::move(first);
    return s;
  };
  const Step f0{forward, 0, 0}, f1{forward, 0, 1}, u0{update, 0, 0}, u1{update, 0, 1};
  const Step b0{backward, 0, 0}, b1{backward, 0, 1};
  CHECK(refused_on_both(table({f0, f1, b0, u0, b1, u1})).empty());
  CHECK(refused_on_both(table({f0, f1, b0, b1, u0, u1}))
            .find("backward of stage 0, micro-batch 1, comes before the update by micro-batch 0") != std::string::npos);
  const Step i0{input_gradient, 0, 0}, i1{input_gradient, 0, 1}, w0{weight_gradient, 0, 0}, w1{weight_gradient, 0, 1};
  CHECK(refused_on_both(table({f0, f1, i0, w0, u0, i1, w1, u1})).empty());
  CHECK(refused_on_both(table({f0, f1, i0, i1, w0, u0, w1, u1})).find("of stage 0, micro-batch 1, comes before") !=
        std::string::npos);
  CHECK(refused_on_both(table({f0, f1, i0, w0, i1, u0, w1, u1})).find("of stage 0, micro-batch 1, comes before") !=
        std::string::npos);
}

TEST_CASE("a synchronous stage that goes back by whole backwards and by halves is refused, on all ranks", "[plan]") {
  using enum Task;
  const Step f0{forward, 0, 0}, f1{forward, 0, 1}, b0{backward, 0, 0}, b1{backward, 0, 1};
  const Step i0{input_gradient, 0, 0}, i1{input_gradient, 0, 1}, w0{weight_gradient, 0, 0}, w1{weight_gradient, 0, 1};
  const auto refused = [](Schedule s, std::vector<Step> first) {
    first.push_back(s.order[0].back());  // the update
    s.order[0] = std::move(first);
    return refused_on_both(s);
  };
  const Schedule s = one_f_one_b(2, 2);  // of the other rank
  CHECK(refused(s, {f0, f1, b0, b1}).empty());
  CHECK(refused(s, {f0, f1, i0, i1, w0, w1}).empty());  // another stage may do otherwise
  CHECK(
      refused(s, {f0, f1, b0, i1, w1}).find("stage 0 goes back through micro-batch 0 by backward and through micro-batch 1 by") !=
      std::string::npos);
  CHECK(
      refused(s, {f0, f1, i0, b1, w0}).find("stage 0 goes back through micro-batch 1 by backward and through micro-batch 0 by") !=
      std::string::npos);
  Schedule alone = pipedream(2, 2);  // each update has a gradient of its own
  alone.order[0] = {f0, f1, b0, {update, 0, 0}, i1, w1, {update, 0, 1}};
  CHECK_NOTHROW(pipeline_program(alone, {}));
}
