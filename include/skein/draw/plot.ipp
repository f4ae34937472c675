// SPDX-License-Identifier: Apache-2.0
// The bodies of plot.hpp.
#pragma once
#include <limits>

#include "plot.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::draw {

SKEIN_INLINE std::pair<double, double> Series::ends(std::size_t i) const {
  const bool given = !low.empty() && std::isfinite(low[i]) && std::isfinite(high[i]);
  if (given) return {low[i], high[i]};
  const double e = !error.empty() && std::isfinite(error[i]) ? error[i] : 0;
  constexpr double most = std::numeric_limits<double>::max();
  return {std::max(y[i] - e, -most), std::min(y[i] + e, most)};
}

SKEIN_INLINE bool Plot::any() const {
  return std::any_of(series.begin(), series.end(), [](const Series& s) { return drawn(s); });
}

SKEIN_INLINE std::string Plot::svg() const {
  Svg picture(width, height);
  draw(picture);
  return picture.text();
}

SKEIN_INLINE bool Plot::drawn(const Series& s) {
  return std::any_of(s.y.begin(), s.y.end(), [](double v) { return std::isfinite(v); });
}

SKEIN_INLINE std::string_view Plot::color(std::size_t i) const {
  return series[i].color.empty() ? palette[i % std::size(palette)] : series[i].color;
}

SKEIN_INLINE std::string Plot::Pen::label(double tick, const Axis& a, bool percent) const {
  if (!a.logarithmic && std::fabs(tick) < 1e-9 * a.high - 1e-9 * a.low) tick = 0;
  return percent ? significant(100 * tick) + " %" : significant(tick);
}

SKEIN_INLINE void Plot::check() const {
  for (const Series& s : series) {
    const std::size_t n = bars() ? categories.size() : s.x.size();
    const auto fits = [&](const std::vector<double>& v) { return v.empty() || v.size() == n; };
    const std::string series_has = "plot \"" + title + "\": series \"" + s.name + "\" has ",
                      places = skein::text(" for {}{}", n, (bars() ? " categories" : " places on the x axis"));
    if (s.y.size() != n || !fits(s.error))
      throw ShapeError(skein::text("{}{} values and {} errors{}", series_has, s.y.size(), s.error.size(), places));
    for (const double e : s.error)
      if (e < 0) throw ArgumentError(series_has + "an error of " + significant(e) + ": a bar of error is as long as it says");
    if (!fits(s.low) || s.low.size() != s.high.size())
      throw ShapeError(skein::text("{}{} values of low and {} of high{}", series_has, s.low.size(), s.high.size(), places));
  }
}

SKEIN_INLINE Plot::Range Plot::range(const char* name, bool logarithmic, std::vector<double> Series::*values) const {
  Range range;
  for (const Series& s : series)
    for (std::size_t i = 0; i < (s.*values).size(); ++i) {
      const double v = (s.*values)[i];
      if (!std::isfinite(v)) continue;
      if (logarithmic && !(v > 0))
        throw ArgumentError("plot \"" + title + "\": series \"" + s.name + "\" has " + significant(v) + " on the logarithmic " +
                            name + " axis: it takes positive values");
      const auto [low, high] = values == &Series::y ? s.ends(i) : std::pair{v, v};
      range.least = std::min({range.least, v, logarithmic && low <= 0 ? v : low});
      range.greatest = std::max({range.greatest, v, high});  // a bar need not hold its value
    }
  if (!(range.least <= range.greatest)) return logarithmic ? Range{1, 10} : Range{0, 1};
  return range;
}

namespace detail {
/// A little beyond both ends, as far as there are numbers.
inline Axis log_axis(double least, double greatest) {
  return Axis::log10(least / 1.15, std::min(greatest, std::numeric_limits<double>::max() / 1.15) * 1.15);
}
}  // namespace detail

SKEIN_INLINE Axis Plot::x_axis() const {
  if (bars()) return {0, static_cast<double>(categories.size()), false, {}};
  const auto [least, greatest] = range("x", log_x, &Series::x);
  if (log_x) return detail::log_axis(least, greatest);
  if (whole_x && std::max(-least, greatest) < 0x1p53)  // beyond, all are whole
    return Axis::whole(static_cast<long>(std::floor(least)), static_cast<long>(std::ceil(greatest)), 9);
  return Axis::linear(least, greatest, 6);
}

SKEIN_INLINE Axis Plot::y_axis() const {
  check();
  auto [least, greatest] = range("y", log_y, &Series::y);
  if (log_y) return detail::log_axis(least, greatest);
  if (from_zero || bars()) least = std::min(least, 0.0), greatest = std::max(greatest, 0.0);
  Axis axis = Axis::linear(least, greatest, 6);
  if (percent && greatest <= 1 && axis.high > 1) {
    axis.high = 1;
    while (!axis.ticks.empty() && axis.ticks.back() > 1 + 1e-9) axis.ticks.pop_back();
  }
  return axis;
}

SKEIN_INLINE void Plot::draw(Svg& picture, double from_left) const {
  check();
  const Pen pen{*this, picture, x_axis(), y_axis(), from_left};
  pen.axes();
  for (std::size_t i = 0; i < series.size(); ++i) bars() ? pen.bars(i) : pen.curve(i);
  const double x = from_left + left, y = top + frame_height();
  picture.line(x, y, x + frame_width(), y);
  picture.line(x, top, x, y);
  pen.legend();
}

SKEIN_INLINE void Plot::Pen::axes() const {
  const double x0 = from_left + left, x1 = x0 + plot.frame_width(), bottom_line = top + plot.frame_height();
  const Words under{.anchor = "middle", .color = grey};
  svg.words(x0, top - 18, plot.title, {.size = 15, .bold = true});
  for (const double t : y.ticks) {
    svg.line(x0, at_y(t), x1, at_y(t), {.color = light});
    svg.words(x0 - 8, at_y(t) + 4, label(t, y, plot.percent), {.anchor = "end", .color = grey});
  }
  for (const double t : x.ticks) {
    svg.line(at_x(t), bottom_line, at_x(t), bottom_line + 5);
    svg.words(at_x(t), bottom_line + 20, label(t, x, false), under);
  }
  for (std::size_t c = 0; c < plot.categories.size(); ++c)
    svg.words(at_x(static_cast<double>(c) + 0.5), bottom_line + 20, plot.categories[c], under);
  svg.words((x0 + x1) / 2, plot.height - 18, plot.x_label, under);
  svg.words(from_left + 18, (top + bottom_line) / 2, plot.y_label, {.anchor = "middle", .color = grey, .upwards = true});
}

SKEIN_INLINE void Plot::Pen::curve(std::size_t index) const {
  const Series& s = plot.series[index];
  const std::string_view color = plot.color(index);
  std::vector<Point> points;
  const auto close = [&] {
    if (!points.empty() && s.line) svg.polyline({points.data(), points.size()}, {color, s.stroke, s.dashed});
    points.clear();
  };
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    if (!std::isfinite(s.x[i]) || !std::isfinite(s.y[i])) {
      close();
      continue;
    }
    points.push_back({at_x(s.x[i]), at_y(s.y[i])});
    error_bar(s, i, at_x(s.x[i]), color);
    if (s.marks) svg.circle(at_x(s.x[i]), at_y(s.y[i]), 3, color);
  }
  close();
}

SKEIN_INLINE void Plot::Pen::bars(std::size_t index) const {
  const Series& s = plot.series[index];
  const double group = 0.8 * plot.frame_width() / static_cast<double>(plot.categories.size()),
               each = group / static_cast<double>(plot.series.size()), base = at_y(y.logarithmic ? y.low : 0);
  for (std::size_t i = 0; i < s.y.size(); ++i) {
    if (!std::isfinite(s.y[i])) continue;
    const double from = at_x(static_cast<double>(i) + 0.5) - group / 2 + each * static_cast<double>(index), to = at_y(s.y[i]);
    svg.rect(from, std::min(base, to), 0.92 * each, std::fabs(base - to), plot.color(index));
    error_bar(s, i, from + 0.46 * each, dark);
    if (plot.say_values)
      svg.words(from + 0.46 * each, at_y(std::max(s.ends(i).second, 0.0)) - 5, significant(s.y[i], 2), {.anchor = "middle"});
  }
}

SKEIN_INLINE void Plot::Pen::error_bar(const Series& s, std::size_t i, double at, std::string_view color) const {
  auto [low, high] = s.ends(i);
  if (!(low < high)) return;
  if (y.logarithmic) low = std::max(low, y.low);
  svg.line(at, at_y(low), at, at_y(high), {color});
  for (const double end : {low, high}) svg.line(at - 4, at_y(end), at + 4, at_y(end), {color});
}

SKEIN_INLINE bool Plot::Pen::legend_left(double wide, double high, bool& low) const {
  int inside[2][2] = {};  // [left][low]
  const double x0 = from_left + left, x1 = x0 + plot.frame_width(), y0 = top, y1 = top + plot.frame_height();
  const auto see = [&](double px, double py) {
    for (const bool at_left : {false, true})
      for (const bool at_low : {false, true})
        inside[at_left][at_low] +=
            (at_left ? px < x0 + wide + 12 : px > x1 - wide - 12) && (at_low ? py > y1 - high - 8 : py < y0 + high + 8);
  };
  for (const Series& s : plot.series)
    for (std::size_t i = 0; i < s.y.size(); ++i) {
      if (!std::isfinite(s.y[i])) continue;
      const double px = at_x(plot.bars() ? static_cast<double>(i) + 0.5 : s.x[i]), py = at_y(s.y[i]);
      if (plot.bars()) see(px, y1);
      see(px, py);
      for (int part = 1; part < 8 && !plot.bars() && i > 0 && std::isfinite(s.y[i - 1]); ++part)
        see(px + (at_x(s.x[i - 1]) - px) * part / 8, py + (at_y(s.y[i - 1]) - py) * part / 8);
    }
  bool best_left = false;
  low = false;
  for (const bool at_low : {false, true})
    for (const bool at_left : {false, true})
      if (inside[at_left][at_low] < inside[best_left][low]) best_left = at_left, low = at_low;
  return best_left;
}

SKEIN_INLINE void Plot::Pen::legend() const {
  std::size_t named = 0, longest = 0;
  for (const Series& s : plot.series)
    if (!s.name.empty() && drawn(s)) ++named, longest = std::max(longest, s.name.size());
  if (named == 0) return;
  const double wide = 40 + 6.6 * static_cast<double>(longest), high = 18 * static_cast<double>(named) + 6;
  bool low = false;
  const double x = legend_left(wide, high, low) ? from_left + left + 12 : from_left + left + plot.frame_width() - wide;
  double row = low ? top + plot.frame_height() - high + 8 : top + 14;
  svg.rect(x - 6, row - 12, wide + 6, high, "#fff", 0.85);
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    if (s.name.empty() || !drawn(s)) continue;
    svg.line(x, row, x + 24, row, {plot.color(i), s.stroke > 2 ? s.stroke : 2.5, s.dashed});
    svg.words(x + 32, row + 4, s.name);
    row += 18;
  }
}

}  // namespace skein::inline SKEIN_ABI::draw

SKEIN_END_COLD
