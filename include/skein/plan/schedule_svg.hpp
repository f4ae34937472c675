// SPDX-License-Identifier: Apache-2.0
// A picture of pipelines' timelines as SVG: one band a timeline, a row a rank, a box a step with its micro-batch; all on one axis
// of time, so that what was measured stands under what the table says.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "../draw/svg.hpp"
#include "timeline.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// How a timeline is drawn.
struct ScheduleSvgOptions {
  int width = 960, row = 26;  ///< pixels
  std::string unit{};         ///< of time: "ms"; empty: no axis label
};

namespace detail {

/// Draws bands one below the other; `scale` is pixels a unit of time.
struct TimelineDrawing {
  static constexpr int left = 62, head = 22, gap = 10, legend = 26;
  static constexpr std::string_view colors[] = {"#4878a8", "#e08214", "#f1b04c", "#7b9f35", "#555555"};  // by task

  draw::Svg& svg;
  const ScheduleSvgOptions& options;
  double scale;

  void tasks() const {
    for (int task = 0; task < 5; ++task) {
      svg.rect(left + 150 * task, 6, 12, 12, colors[task]);
      svg.words(left + 150 * task + 17, 16, name_of(static_cast<Task>(task)));
    }
  }
  /// Returns where the next one begins.
  int band(const Timeline& t, int y) const {
    const std::string length = draw::significant(t.length(), 4) + (options.unit.empty() ? "" : " " + options.unit);
    svg.words(left, y + 15, t.title + " (length " + length + ", bubble " + draw::decimal(100 * t.bubble(), 1) + " %)",
              {.bold = true});
    y += head;
    for (int r = 0; r < t.ranks; ++r) {
      svg.words(4, y + options.row * r + options.row / 2 + 4, "rank " + std::to_string(r));
      svg.rect(left, y + options.row * r + 2, t.length() * scale, options.row - 4, "#eeeeee");
    }
    for (const TimedStep& s : t.steps) step(s, y + options.row * s.rank + 2, t.stages > t.ranks ? s.step.stage / t.ranks : 0);
    return y + options.row * t.ranks + gap;
  }
  /// A rank's stages are told apart by two shades.
  void step(const TimedStep& s, int top, int chunk) const {
    const double x = left + s.begin * scale, wide = (s.end - s.begin) * scale;
    if (wide <= 0) return;
    svg.rect(x, top, wide, options.row - 4, colors[static_cast<int>(s.step.task)], chunk % 2 ? 0.65 : 1.0, {"white", 0.5});
    if (wide >= 9 && s.step.task != Task::update)
      svg.words(x + wide / 2, top + options.row / 2 + 2, std::to_string(s.step.micro), {.anchor = "middle", .color = "white"});
  }
};

}  // namespace detail

/// The picture as a text: all timelines on one axis, the first uppermost.
inline std::string schedule_svg(std::span<const Timeline> timelines, const ScheduleSvgOptions& o = {}) {
  using Drawing = detail::TimelineDrawing;
  double length = 0;
  int rows = 0;
  for (const Timeline& t : timelines) length = std::max(length, t.length()), rows += t.ranks;
  if (length <= 0) length = 1;
  const int bands = static_cast<int>(timelines.size()),
            height = Drawing::legend + rows * o.row + bands * (Drawing::head + Drawing::gap) + 24;
  draw::Svg svg(o.width, height);
  const Drawing drawing{svg, o, (o.width - Drawing::left - 10) / length};
  drawing.tasks();
  int y = Drawing::legend;
  for (const Timeline& t : timelines) y = drawing.band(t, y);
  if (!o.unit.empty()) svg.words(Drawing::left, height - 8, "0 to " + draw::significant(length, 4) + " " + o.unit);
  return svg.text();
}
/// Of one timeline.
inline std::string schedule_svg(const Timeline& t, const ScheduleSvgOptions& o = {}) {
  return schedule_svg(std::span<const Timeline>(&t, 1), o);
}

}  // namespace skein::inline SKEIN_ABI::plan
