// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/schedule_svg.hpp>
#include <skein/plan/schedule_text.hpp>

#include <support/xml_fault.hpp>

#include <catch2/catch.hpp>

using namespace skein::plan;

TEST_CASE("a schedule as text", "[plan]") {
  // [quote text]
  const std::string picture = schedule_text(one_f_one_b(2, 3));  // a forward takes 1, a backward 2
  // rank 0 | F0 F1 .  .  B0 -- F2 B1 -- .  B2 --
  // rank 1 | .  F0 B0 -- F1 B1 -- F2 B2 --
  // [end]
  CHECK(picture ==
        "rank 0 | F0 F1 .  .  B0 -- F2 B1 -- .  B2 --\n"
        "rank 1 | .  F0 B0 -- F1 B1 -- F2 B2 --\n");
  CHECK(schedule_text(zero_bubble(2, 2)) ==
        "rank 0 | F0 F1 .  I0 W0 I1 W1\n"
        "rank 1 | .  F0 I0 F1 I1 W0 W1\n");
  CHECK(schedule_text(interleaved(1, 2, 1)) == "rank 0 | F0a F0b B0b --- B0a ---\n");
  CHECK(schedule_text(gpipe(1, 1), {.update = 1}) == "rank 0 | F0 B0 -- U\n");
  const Timeline seconds =
      timeline_of(gpipe(1, 2), TaskLengths{.forward = 0.001, .input_gradient = 0.001, .weight_gradient = 0.001});
  CHECK(schedule_text(seconds) == "rank 0 | F0 F1 B0 -- B1 --\n");
  CHECK(schedule_text(timeline_of(gpipe(1, 1), TaskLengths{.forward = 300})).substr(0, 12) == "rank 0 | F0 ");
}

TEST_CASE("a schedule as SVG has a box for each step, and says length and bubble", "[plan]") {
  const Timeline t = timeline_of(gpipe(2, 4));
  const std::string svg = schedule_svg(t, {.unit = "ms"});
  std::size_t boxes = 0;
  for (std::size_t at = svg.find("stroke=\"white\""); at != std::string::npos; at = svg.find("stroke=\"white\"", at + 1)) ++boxes;
  CHECK(boxes == 16);  // updates have no length here
  CHECK(svg.find("GPipe (length 15 ms, bubble 20 %)") != std::string::npos);
  CHECK(support::xml_fault(svg).empty());
  const Timeline strange{"a < b", 1, 1, {{{Task::forward, 0, 0}, 0, 2, 3}}};
  CHECK(schedule_svg(from_zero(strange)).find("a &lt; b (length 1,") != std::string::npos);
}

TEST_CASE("a timeline's bubble is the checker's", "[plan]") {
  for (int ranks : {1, 3, 4})
    for (int micros : {1, 2, 7})
      CHECK(timeline_of(one_f_one_b(ranks, micros)).bubble() ==
            Approx(check(one_f_one_b(ranks, micros)).bubble).margin(1e-12).epsilon(0));
  Schedule unsound = gpipe(2, 2);
  unsound.order[0].pop_back();
  CHECK(timeline_of(unsound).steps.empty());
  CHECK(timeline_of(gpipe(2, 4), {.forward = 3}).mean(Task::forward) == 3);
}

TEST_CASE("a schedule's text has its steps beside each other, whatever their lengths are counted in", "[plan]") {
  const std::string text = schedule_text(gpipe(2, 2));
  for (const double unit : {1e-3, 1e9})
    CHECK(schedule_text(gpipe(2, 2), {.forward = unit, .input_gradient = unit, .weight_gradient = unit}) == text);
}
