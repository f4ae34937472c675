// SPDX-License-Identifier: Apache-2.0
// The plots of the experiments: well-formed XML, points, bars and error bars where the axes say, and what is refused. Their
// tables.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "../examples/experiments/support/svg_plot.hpp"
#include "../examples/experiments/support/table.hpp"

namespace {
using experiments::SvgPlot;
using experiments::SvgSeries;

/// Empty where every element is closed in its order, attributes are quoted and no bare '&' or '<' stands in a text.
std::string fault(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] == '&') {
      const std::size_t end = xml.find(';', at);
      const std::string entity = xml.substr(at, end == std::string::npos ? 1 : end - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;") return "bare & at " + std::to_string(at);
    }
    if (xml[at] == '>') return "bare > at " + std::to_string(at);
    if (xml[at] != '<') {
      if (open.empty() && xml[at] != '\n') return "text outside of the root";
      ++at;
      continue;
    }
    bool quoted = false;
    std::size_t end = at + 1;
    for (; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (xml[end] == '<') return "< within a tag at " + std::to_string(end);
    }
    if (end == xml.size()) return "a tag that does not end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

SvgPlot lines() {
  SvgPlot plot{.title = "Loss & <time>", .x_label = "epoch", .y_label = "loss"};
  plot.series.push_back({.name = "a < b", .x = {0, 5, 10}, .y = {0, 30, 60}, .error = {0, 10, 0}});
  plot.series.push_back({.name = "b", .x = {0, 5, 7.5, 10}, .y = {60, NAN, 30, 15}, .marks = false, .dashed = true});
  return plot;
}
}  // namespace

TEST_CASE("experiments: the checker of XML finds faults", "[experiments]") {
  CHECK(fault("<a><b x=\"1\"/>t &amp; u</a>\n").empty());
  for (const char* wrong : {"<a><b></a>", "<a>&</a>", "<a>", "<a></a></a>", "<a>1 > 2</a>", "<a x=\"<\"/>", "t<a/>"})
    CHECK(!fault(wrong).empty());
}

TEST_CASE("experiments: a plot of lines is well-formed, its points are where the axes say", "[experiments]") {
  const SvgPlot plot = lines();
  const std::string svg = plot.svg();
  INFO(svg);
  CHECK(fault(svg).empty());
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
  CHECK(count(svg, "stroke-dasharray") == 2);
  const double top = plot.place_y(40), bottom = plot.place_y(20);
  char bar[96];
  std::snprintf(bar, sizeof bar, "<line x1=\"387\" y1=\"%.2f\" x2=\"387\" y2=\"%.2f\"", bottom, top);
  CHECK(count(svg, bar) == 1);
  CHECK(count(svg, "<line x1=\"383\"") == 2);  // its two ends, and no other
  CHECK(count(svg, "nan") == 0);
}

TEST_CASE("experiments: logarithmic axes place decades evenly and refuse what is not positive", "[experiments]") {
  SvgPlot plot{.title = "t", .log_x = true, .log_y = true};
  plot.series.push_back({.name = "s", .x = {1, 10, 100}, .y = {0.01, 1, 100}, .error = {0.5, 0, 0}});
  CHECK(fault(plot.svg()).empty());
  CHECK(plot.place_x(10) == Approx((plot.place_x(1) + plot.place_x(100)) / 2));
  CHECK(plot.place_y(1) == Approx((plot.place_y(0.01) + plot.place_y(100)) / 2));
  CHECK(count(plot.svg(), "inf") == 0);
  plot.series[0].y[1] = 0;
  CHECK_THROWS_WITH(plot.svg(), Catch::Contains("series \"s\" has 0 on the logarithmic y axis"));
}

TEST_CASE("experiments: bars stand on zero, beside each other within their category", "[experiments]") {
  SvgPlot plot{.title = "t", .categories = {"one", "two"}};
  plot.series.push_back({.name = "ours", .y = {10, 5}, .error = {1, 0}});
  plot.series.push_back({.name = "theirs", .y = {0, 7.5}});
  const std::string svg = plot.svg();
  INFO(svg);
  CHECK(fault(svg).empty());
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

TEST_CASE("experiments: a plot without values is empty axes; lengths that differ are refused", "[experiments]") {
  CHECK(fault(SvgPlot{.title = "nothing"}.svg()).empty());
  SvgPlot plot{.title = "t"};
  plot.series.push_back({.name = "s", .x = {1, 2}, .y = {1}});
  CHECK_THROWS_AS(plot.svg(), skein::ShapeError);
  CHECK_THROWS_WITH(plot.svg(), Catch::Contains("plot \"t\": series \"s\" has 1 values and 0 errors for 2 places"));
  CHECK_THROWS_AS(lines().write("/nowhere/plot.svg"), skein::FileError);
}

TEST_CASE("experiments: columns of a table are as wide as their widest cell", "[experiments]") {
  experiments::Table table{{"n", "seconds", "over one"}};
  table.row({"1", experiments::cell(0.12345), "1"});
  table.row({"never", experiments::cell(1320), experiments::cell(1.5, 1.25, 1.75)});
  table.row({"-"});
  CHECK(table.text() ==
        "n      seconds               over one\n"
        "1        0.123                      1\n"
        "never     1320  1.500 (1.250 - 1.750)\n"
        "-\n");
  CHECK(experiments::cell(std::nan("")) == "-");
  CHECK(experiments::cell(std::vector<double>{1, 2, 3}) == "2 +- 1");
  CHECK(experiments::cell(std::vector<double>{0.5}) == "0.5");
  CHECK(experiments::cell(std::vector<double>{}) == "-");
}
