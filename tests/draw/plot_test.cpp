// SPDX-License-Identifier: Apache-2.0
// Plots: well-formed XML, points, bars and error bars where the axes say, and what is refused.
#include <skein/draw/plot.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <support/xml_fault.hpp>

namespace {
using skein::draw::Plot;
using support::xml_fault;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

Plot lines() {
  Plot plot{.title = "Loss & <time>", .x_label = "epoch", .y_label = "loss"};
  plot.series.push_back({.name = "a < b", .x = {0, 5, 10}, .y = {0, 30, 60}, .error = {0, 10, 0}});
  plot.series.push_back({.name = "b", .x = {0, 5, 7.5, 10}, .y = {60, NAN, 30, 15}, .marks = false, .dashed = true});
  return plot;
}
}  // namespace

TEST_CASE("a plot of lines is well-formed, its points are where the axes say", "[draw]") {
  const Plot plot = lines();
  const std::string svg = plot.svg();
  INFO(svg);
  CHECK(xml_fault(svg).empty());
  CHECK(count(svg, "Loss &amp; &lt;time&gt;") == 1);
  CHECK(count(svg, ">a &lt; b</text>") == 1);
  // x: 0 to 10 over [78, 696]; y: 0 to 60 over [378, 46].
  CHECK(plot.place_x(5) == Approx(387));
  CHECK(plot.place_y(30) == Approx(212));
  CHECK(count(svg, "points=\"78,378 387,212 696,46\"") == 1);
  CHECK(count(svg, "<circle cx=\"387\" cy=\"212\" r=\"3\"") == 1);
  CHECK(count(svg, "<circle") == 3);           // none of the second
  CHECK(count(svg, "points=\"78,46\"") == 1);  // interrupted by what is no number
  CHECK(count(svg, "points=\"541.5,212 696,295\"") == 1);
  CHECK(count(svg, "stroke-dasharray") == 3);  // its two pieces and its line in the legend
  const double top = plot.place_y(40), bottom = plot.place_y(20);
  char bar[96];
  std::snprintf(bar, sizeof bar, "<line x1=\"387\" y1=\"%.2f\" x2=\"387\" y2=\"%.2f\"", bottom, top);
  CHECK(count(svg, bar) == 1);
  CHECK(count(svg, "<line x1=\"383\"") == 2);  // its two ends, and no other
  CHECK(count(svg, "nan") == 0);
}

TEST_CASE("logarithmic axes place decades evenly and refuse what is not positive", "[draw]") {
  Plot plot{.title = "t", .log_x = true, .log_y = true};
  plot.series.push_back({.name = "s", .x = {1, 10, 100}, .y = {0.01, 1, 100}, .error = {0.5, 0, 0}});
  CHECK(xml_fault(plot.svg()).empty());
  CHECK(plot.place_x(10) == Approx((plot.place_x(1) + plot.place_x(100)) / 2));
  CHECK(plot.place_y(1) == Approx((plot.place_y(0.01) + plot.place_y(100)) / 2));
  CHECK(count(plot.svg(), "inf") == 0);
  plot.series[0].error.clear();
  plot.series[0].y = {1e-200, 1, 1.7e308};  // whose quotient no double holds
  CHECK((count(plot.svg(), "inf") == 0 && count(plot.svg(), "nan") == 0));
  CHECK(plot.y_axis().ticks.size() > 5);
  CHECK(plot.place_y(1e54) == Approx((plot.place_y(1e-200) + plot.place_y(1e308)) / 2).epsilon(1e-3));
  plot.series[0].y[1] = 0;
  CHECK_THROWS_WITH(plot.svg(), Catch::Contains("series \"s\" has 0 on the logarithmic y axis"));
}

TEST_CASE("bars stand on zero, beside each other within their category", "[draw]") {
  Plot plot{.title = "t", .categories = {"one", "two"}};
  plot.series.push_back({.name = "ours", .y = {10, 5}, .error = {1, 0}});
  plot.series.push_back({.name = "theirs", .y = {0, 7.5}});
  const std::string svg = plot.svg();
  INFO(svg);
  CHECK(xml_fault(svg).empty());
  CHECK(plot.y_axis().low == 0);
  CHECK(plot.place_y(0) == Approx(378));
  CHECK(count(svg, ">one</text>") == 1);
  CHECK(count(svg, "fill=\"#1f5fa8\"/>") == 2);
  CHECK(count(svg, "fill=\"#d9730d\"/>") == 2);
  // Groups of 0.8 of 309 wide, in the middle of their halves; two bars in each, y from 0 to 12 (the error bar ends at 11).
  CHECK(count(svg, "<rect x=\"108.9\" y=\"101.33\" width=\"113.71\" height=\"276.67\" fill=\"#1f5fa8\"/>") == 1);
  CHECK(count(svg, "<rect x=\"541.5\" y=\"170.5\" width=\"113.71\" height=\"207.5\" fill=\"#d9730d\"/>") == 1);
  CHECK(count(svg, "height=\"0\"") == 1);
}

TEST_CASE("a plot without values is empty axes; lengths that differ are refused", "[draw]") {
  CHECK(xml_fault(Plot{.title = "nothing"}.svg()).empty());
  Plot plot{.title = "t"};
  plot.series.push_back({.name = "s", .x = {1, 2}, .y = {1}});
  CHECK_THROWS_AS(plot.svg(), skein::ShapeError);
  CHECK_THROWS_WITH(plot.svg(), Catch::Contains("plot \"t\": series \"s\" has 1 values and 0 errors for 2 places"));
  plot.series = {{.name = "s", .x = {1}, .y = {1}, .low = {0, 0}, .high = {2, 2}}};
  CHECK_THROWS_WITH(plot.svg(), Catch::Contains("series \"s\" has 2 values of low and 2 of high for 1 places on the x axis"));
  plot.series = {{.name = "s", .x = {1, 2}, .y = {1, 2}, .error = {0}}};
  CHECK_THROWS_AS(plot.y_axis(), skein::ShapeError);
  CHECK_THROWS_AS(lines().write("/nowhere/plot.svg"), skein::FileError);
}

TEST_CASE("the legend stands where the fewest points are; only what is drawn is in it", "[draw]") {
  Plot plot{.title = "t", .from_zero = true};
  plot.series.push_back({.name = "falls", .x = {0, 1, 2}, .y = {10, 2, 1}});
  plot.series.push_back({.name = "nothing", .x = {0}, .y = {NAN}});
  CHECK(count(plot.svg(), "y=\"64\" fill=\"#222\">falls</text>") == 1);  // upper right
  CHECK(count(plot.svg(), ">nothing<") == 0);
  plot.series[0].y = {1, 2, 10};
  CHECK(count(plot.svg(), "<text x=\"122\" y=\"64\" fill=\"#222\">falls</text>") == 1);  // upper left
  plot.series[0].y = {10, 9, 10};
  CHECK(count(plot.svg(), "y=\"366\" fill=\"#222\">falls</text>") == 1);  // lower right
}

TEST_CASE("shares are in percent and end at 100; epochs are whole; bars say their values", "[draw]") {
  Plot plot{.title = "t", .whole_x = true, .percent = true};
  plot.series.push_back({.name = "s", .x = {1, 2, 3}, .y = {0.91, 0.98, 0.998}});
  CHECK(plot.y_axis().high == 1);
  CHECK(count(plot.svg(), ">100 %</text>") == 1);
  CHECK(count(plot.svg(), ">1.5</text>") == 0);
  plot.series[0].y[2] = 1.2;
  CHECK(plot.y_axis().high > 1);
  for (const double far : {3e9, 1e300}) {  // more than an int, or a long, holds
    plot.series[0].x[2] = far;
    CHECK(plot.x_axis().high >= far);
  }
  Plot bars{.title = "t", .categories = {"a"}, .say_values = true};
  bars.series.push_back({.name = "s", .y = {0.71828}});
  CHECK(count(bars.svg(), ">0.72</text>") == 1);
  bars.series[0].low = {0.5}, bars.series[0].high = {1.0};  // not the same on both sides
  char bar[64];
  std::snprintf(bar, sizeof bar, "y1=\"%g\" x2=\"367.22\" y2=\"%g\"", bars.place_y(0.5), bars.place_y(1));
  INFO(bars.svg());
  CHECK(bars.y_axis().high >= 1);
  CHECK(count(bars.svg(), bar) == 1);
  bars.series[0].high.clear();
  CHECK_THROWS_AS(bars.svg(), skein::ShapeError);
}

TEST_CASE("a point whose bar of error does not hold it is within the frame, too; an error is not negative", "[draw]") {
  Plot plot{.title = "t"};
  plot.series.push_back({.name = "s", .x = {1, 2}, .y = {10, 1}, .low = {1, 1}, .high = {2, 2}});
  CHECK((plot.y_axis().low <= 1 && plot.y_axis().high >= 10));
  plot.series[0].y = {-10, 1};
  CHECK((plot.y_axis().low <= -10 && plot.y_axis().high >= 2));
  plot.log_y = true;
  plot.series[0].y = {100, 0.01};
  CHECK((plot.y_axis().low <= 0.01 && plot.y_axis().high >= 100));
  plot = {.title = "t"};
  plot.series.push_back({.name = "s", .x = {1, 2}, .y = {10, 1}, .error = {0, -3}});
  CHECK_THROWS_WITH(plot.svg(), Catch::Contains("series \"s\" has an error of -3: a bar of error is as long as it says"));
  for (const std::vector<double>& y : {std::vector<double>{-1.7e308, 1.7e308}, {0, 5e-324}, {5e-324, 5e-324}}) {
    plot.series[0].y = y;
    for (const double error : {0.0, 1.7e308}) {
      plot.series[0].error = {error, error};
      INFO(plot.svg());
      CHECK((count(plot.svg(), "inf") == 0 && count(plot.svg(), "nan") == 0));
    }
  }
}

TEST_CASE("two plots stand side by side in one picture", "[draw]") {
  skein::draw::Svg both(1440, 440);
  lines().draw(both);
  lines().draw(both, 720);
  const std::string svg = both.text();
  CHECK(xml_fault(svg).empty());
  CHECK(count(svg, "points=\"78,378 387,212 696,46\"") == 1);
  CHECK(count(svg, "points=\"798,378 1107,212 1416,46\"") == 1);
}

TEST_CASE("the plot of the guide", "[draw]") {
  // [quote plot]
  skein::draw::Plot plot{.title = "Seconds an epoch", .x_label = "ranks", .y_label = "seconds", .from_zero = true};
  plot.series = {{.name = "measured", .x = {1, 2, 4}, .y = {8, 4.1, 2.2}, .error = {0.2, 0.1, 0.1}},
                 {.name = "linear", .x = {1, 2, 4}, .y = {8, 4, 2}, .marks = false, .dashed = true}};
  const std::string picture = plot.svg();  // or plot.write("seconds.svg")
  // [end]
  CHECK(count(picture, "<polyline") == 2);
  CHECK(count(picture, "<circle") == 3);
}
