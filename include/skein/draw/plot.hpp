// SPDX-License-Identifier: Apache-2.0
// Plots: lines with marks and error bars, or groups of bars; axes with round ticks, linear or logarithmic, titles and a legend.
// A pure function of the values.
//
//     sk::draw::Plot plot{.title = "Seconds an epoch", .x_label = "ranks", .y_label = "seconds"};
//     plot.series.push_back({.name = "measured", .x = {1, 2, 4}, .y = {8, 4.1, 2.2}, .error = {0.2, 0.1, 0.1}});
//     plot.write("seconds.svg");
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "axis.hpp"
#include "svg.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::draw {

/// A curve, or the bars of one color: y[i] at x[i]. An error bar is y[i] - error[i] to y[i] + error[i], or low[i] to high[i]
/// where these are given; all three may be empty. Points that are not finite interrupt a curve.
struct Series {
  std::string name{};
  std::vector<double> x{}, y{}, error{}, low{}, high{};
  bool line = true, marks = true, dashed = false;
  double stroke = 2;         ///< of the line
  std::string_view color{};  ///< empty: the next of the palette

  /// The ends of the error bar of y[i], or y[i] twice.
  std::pair<double, double> ends(std::size_t i) const;
};

/// A plot. With `categories` it is one of bars: y[i] of each series stands over categories[i], x is not used.
struct Plot {
  std::string title{}, x_label{}, y_label{};
  std::vector<std::string> categories{};
  bool log_x = false, log_y = false, from_zero = false;
  bool whole_x = false;     ///< ticks at whole numbers only, as of epochs
  bool percent = false;     ///< y are shares: labelled in percent, and no axis beyond 100 % for values that are not
  bool say_values = false;  ///< a bar has its value above it
  double width = 720, height = 440;
  std::vector<Series> series{};

  /// Where the frame of the axes is, in pixels.
  static constexpr double left = 78, top = 46, right = 24, bottom = 62;
  /// The frame's own size, in pixels.
  double frame_width() const { return width - left - right; }
  double frame_height() const { return height - top - bottom; }

  /// Is it a plot of bars.
  bool bars() const { return !categories.empty(); }
  /// Whether there is any value to draw.
  bool any() const;
  /// The axes that the values ask for; bars begin at zero. Throws ArgumentError where a logarithmic axis has a value that is not
  /// positive.
  Axis x_axis() const;
  Axis y_axis() const;
  /// Where a value is drawn, in pixels.
  double place_x(double x) const { return at_x(x_axis(), x); }
  double place_y(double y) const { return at_y(y_axis(), y); }

  /// The picture as a text. Throws ShapeError where a series has values of different number, ArgumentError where it has a
  /// negative error.
  std::string svg() const;
  /// Into a picture that has room for it, so far from its left.
  void draw(Svg& picture, double from_left = 0) const;
  /// Throws FileError where it cannot be written.
  void write(const std::string& path) const { write_svg(path, svg()); }

 private:
  static bool drawn(const Series& s);
  std::string_view color(std::size_t i) const;
  double at_x(const Axis& a, double v) const { return left + frame_width() * a.at(v); }
  double at_y(const Axis& a, double v) const { return top + frame_height() * (1 - a.at(v)); }

  struct Range {
    double least = HUGE_VAL, greatest = -HUGE_VAL;
  };
  void check() const;
  Range range(const char* name, bool logarithmic, std::vector<double> Series::*values) const;
  struct Pen;
};

/// A plot that is being drawn: its picture, its axes, and where it begins.
struct Plot::Pen {
  const Plot& plot;
  Svg& svg;
  Axis x, y;
  double from_left;

  double at_x(double v) const { return from_left + plot.at_x(x, v); }
  double at_y(double v) const { return plot.at_y(y, v); }
  void axes() const;
  void curve(std::size_t index) const;
  void bars(std::size_t index) const;
  void error_bar(const Series& s, std::size_t i, double at, std::string_view color) const;
  void legend() const;
  /// Says the corner that the fewest points of curves or bars are in: the upper right one, where that is no worse than others.
  bool legend_left(double wide, double high, bool& low) const;
  std::string label(double tick, const Axis& a, bool percent) const;
};

}  // namespace skein::inline SKEIN_ABI::draw

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "plot.ipp"
#endif
