// SPDX-License-Identifier: Apache-2.0
// The bodies of schedule_svg.hpp.
#pragma once
#include "schedule_svg.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan::detail {

SKEIN_INLINE void TimelineDrawing::tasks() const {
  for (int task = 0; task < 5; ++task) {
    svg.rect(left + 150 * task, 6, 12, 12, colors[task]);
    svg.words(left + 150 * task + 17, 16, name_of(static_cast<Task>(task)));
  }
}

SKEIN_INLINE int TimelineDrawing::band(const Timeline& t, int y) const {
  const std::string length = draw::significant(t.length(), 4) + (options.unit.empty() ? "" : " " + options.unit);
  svg.words(left, y + 15, t.title + " (length " + length + ", bubble " + draw::decimal(100 * t.bubble(), 1) + " %)",
            {.bold = true});
  y += head;
  for (int r = 0; r < t.ranks; ++r) {
    svg.words(4, y + options.row * r + options.row / 2 + 4, skein::text("rank {}", r));
    svg.rect(left, y + options.row * r + 2, t.length() * scale, options.row - 4, "#eeeeee");
  }
  for (const TimedStep& s : t.steps) step(s, y + options.row * s.rank + 2, t.stages > t.ranks ? s.step.stage / t.ranks : 0);
  return y + options.row * t.ranks + gap;
}

SKEIN_INLINE void TimelineDrawing::step(const TimedStep& s, int top, int chunk) const {
  const double x = left + s.begin * scale, wide = (s.end - s.begin) * scale;
  if (wide <= 0) return;
  svg.rect(x, top, wide, options.row - 4, colors[static_cast<int>(s.step.task)], chunk % 2 ? 0.65 : 1.0, {"white", 0.5});
  if (wide >= 9 && s.step.task != Task::update)
    svg.words(x + wide / 2, top + options.row / 2 + 2, std::to_string(s.step.micro), {.anchor = "middle", .color = "white"});
}

}  // namespace skein::inline SKEIN_ABI::plan::detail

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE std::string schedule_svg(std::span<const Timeline> timelines, const ScheduleSvgOptions& o) {
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

SKEIN_INLINE std::string schedule_svg(const Timeline& t, const ScheduleSvgOptions& o) {
  return schedule_svg(std::span<const Timeline>(&t, 1), o);
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
