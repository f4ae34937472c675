// SPDX-License-Identifier: Apache-2.0
// A picture of pipelines' timelines as SVG: one band a timeline, a row a rank, a box a step with its micro-batch; all on one axis
// of time, so that what was measured stands under what the table says.
#pragma once
#include <cstdio>
#include <span>
#include <string>

#include "timeline.hpp"

namespace skein::inline SKEIN_ABI::plan {

struct ScheduleSvgOptions {
  int width = 960, row = 26;  ///< pixels
  std::string unit{};         ///< of time: "ms"; empty: no axis label
};

inline std::string schedule_svg(std::span<const Timeline> timelines, const ScheduleSvgOptions& o = {}) {
  constexpr const char* colors[] = {"#4878a8", "#e08214", "#f1b04c", "#7b9f35", "#555555"};  // by task
  double length = 0;
  int rows = 0;
  for (const Timeline& t : timelines) length = std::max(length, t.length()), rows += t.ranks;
  if (length <= 0) length = 1;
  const int left = 62, head = 22, legend = 26,
            height = legend + rows * o.row + static_cast<int>(timelines.size()) * (head + 10) + 24;
  const double scale = (o.width - left - 10) / length;
  std::string svg;
  const auto print = [&](const char* format, auto... values) {
    char line[400];
    std::snprintf(line, sizeof line, format, values...);
    svg += line;
  };
  const auto escaped = [](const std::string& s) {
    std::string out;
    for (const char c : s) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  };
  print(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n",
      o.width, height, o.width, height);
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (int task = 0; task < 5; ++task) {
    print("<rect x=\"%d\" y=\"6\" width=\"12\" height=\"12\" fill=\"%s\"/>", left + 150 * task, colors[task]);
    print("<text x=\"%d\" y=\"16\">%s</text>\n", left + 150 * task + 17, std::string(name_of(static_cast<Task>(task))).c_str());
  }
  int y = legend;
  for (const Timeline& t : timelines) {
    print("<text x=\"%d\" y=\"%d\" font-weight=\"bold\">", left, y + 15);
    svg += escaped(t.title);
    print(" (length %.4g%s%s, bubble %.1f %%)</text>\n", t.length(), o.unit.empty() ? "" : " ", o.unit.c_str(), 100 * t.bubble());
    y += head;
    for (int r = 0; r < t.ranks; ++r) {
      print("<text x=\"4\" y=\"%d\">rank %d</text>", y + o.row * r + o.row / 2 + 4, r);
      print("<rect x=\"%d\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#eeeeee\"/>\n", left, y + o.row * r + 2,
            t.length() * scale, o.row - 4);
    }
    for (const TimedStep& s : t.steps) {
      const double x = left + s.begin * scale, w = (s.end - s.begin) * scale;
      if (w <= 0) continue;
      const int top = y + o.row * s.rank + 2, chunk = t.stages > t.ranks ? s.step.stage / t.ranks : 0;
      print(
          "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\" stroke=\"white\" "
          "stroke-width=\"0.5\"/>",
          x, top, w, o.row - 4, colors[static_cast<int>(s.step.task)], chunk % 2 ? 0.65 : 1.0);
      if (w >= 9 && s.step.task != Task::update)
        print("<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\" fill=\"white\">%d</text>", x + w / 2, top + o.row / 2 + 2,
              s.step.micro);
      svg += "\n";
    }
    y += o.row * t.ranks + 10;
  }
  if (!o.unit.empty()) print("<text x=\"%d\" y=\"%d\">0 to %.4g %s</text>\n", left, height - 8, length, o.unit.c_str());
  svg += "</svg>\n";
  return svg;
}
inline std::string schedule_svg(const Timeline& t, const ScheduleSvgOptions& o = {}) {
  return schedule_svg(std::span<const Timeline>(&t, 1), o);
}

}  // namespace skein::inline SKEIN_ABI::plan
