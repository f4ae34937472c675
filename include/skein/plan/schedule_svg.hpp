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

  void tasks() const;
  /// Returns where the next one begins.
  int band(const Timeline& t, int y) const;
  /// A rank's stages are told apart by two shades.
  void step(const TimedStep& s, int top, int chunk) const;
};

}  // namespace detail

/// The picture as a text: all timelines on one axis, the first uppermost.
std::string schedule_svg(std::span<const Timeline> timelines, const ScheduleSvgOptions& o = {});
/// A picture of one timeline.
std::string schedule_svg(const Timeline& t, const ScheduleSvgOptions& o = {});

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "schedule_svg.ipp"
#endif
