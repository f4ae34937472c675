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
                versions = std::max(versions, 1 + p.kept[static_cast<std::size_t>(stage)]);
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
