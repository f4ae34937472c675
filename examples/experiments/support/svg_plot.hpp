// SPDX-License-Identifier: Apache-2.0
// Plots of the experiments as SVG texts: lines with marks and error bars, or groups of bars; axes with round ticks, linear or
// logarithmic, titles and a legend. A pure function of the values; no script, no font file, a white ground of its own.
//
//     SvgPlot plot{.title = "Seconds an epoch", .x_label = "ranks", .y_label = "seconds"};
//     plot.series.push_back({.name = "measured", .x = {1, 2, 4}, .y = {8, 4.1, 2.2}, .error = {0.2, 0.1, 0.1}});
//     plot.write("seconds.svg");
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <skein/core/error.hpp>
#include <skein/train/axis.hpp>

namespace experiments {

/// A curve: x[i], y[i]; error[i] (may be empty) is half the length of its error bar. Points that are not finite interrupt it.
struct SvgSeries {
  std::string name{};
  std::vector<double> x{}, y{}, error{};
  bool line = true, marks = true, dashed = false;
};

/// A plot. With `categories` it is one of bars: y[i] of each series stands over categories[i], x is not used.
struct SvgPlot {
  std::string title{}, x_label{}, y_label{};
  std::vector<std::string> categories{};
  bool log_x = false, log_y = false, from_zero = false;
  double width = 720, height = 440;
  std::vector<SvgSeries> series{};

  /// Where the frame of the axes is, in the units of the picture.
  static constexpr double left = 78, top = 46, right = 24, bottom = 62;
  double frame_width() const { return width - left - right; }
  double frame_height() const { return height - top - bottom; }

  /// The axes that the values ask for; bars begin at zero. Throws ArgumentError where a logarithmic axis has a value that is not
  /// positive.
  skein::train::Axis x_axis() const { return axis("x", log_x, false, &SvgSeries::x); }
  skein::train::Axis y_axis() const { return axis("y", log_y, from_zero || bars(), &SvgSeries::y); }
  double place_x(double x) const { return left + frame_width() * x_axis().at(x); }
  double place_y(double y) const { return top + frame_height() * (1 - y_axis().at(y)); }
  bool bars() const { return !categories.empty(); }

  std::string svg() const {
    check();
    std::string s = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
                    "\" width=\"" + number(width) + "\" height=\"" + number(height) +
                    "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<rect width=\"" + number(width) +
                    "\" height=\"" + number(height) + "\" fill=\"#fff\"/>\n";
    const skein::train::Axis x = bars() ? skein::train::Axis{0, static_cast<double>(categories.size()), false, {}} : x_axis(),
                             y = y_axis();
    text(s, left, top - 18, "start", "font-size=\"15\" font-weight=\"600\" fill=\"#222\"", title);
    for (const double t : y.ticks) {
      line(s, left, at_y(y, t), left + frame_width(), at_y(y, t), "#e6e6e6");
      text(s, left - 8, at_y(y, t) + 4, "end", grey, label(t, y));
    }
    for (const double t : x.ticks) {
      line(s, at_x(x, t), top + frame_height(), at_x(x, t), top + frame_height() + 5, "#888");
      text(s, at_x(x, t), top + frame_height() + 20, "middle", grey, label(t, x));
    }
    for (std::size_t c = 0; c < categories.size(); ++c)
      text(s, at_x(x, static_cast<double>(c) + 0.5), top + frame_height() + 20, "middle", grey, categories[c]);
    for (std::size_t i = 0; i < series.size(); ++i) bars() ? draw_bars(s, i, x, y) : draw_curve(s, i, x, y);
    line(s, left, top + frame_height(), left + frame_width(), top + frame_height(), "#888");
    line(s, left, top, left, top + frame_height(), "#888");
    text(s, left + frame_width() / 2, height - 18, "middle", grey, x_label);
    text(s, 18, top + frame_height() / 2, "middle",
         std::string(grey) + " transform=\"rotate(-90 18 " + number(top + frame_height() / 2) + ")\"", y_label);
    legend(s);
    return s + "</svg>\n";
  }
  /// Throws FileError where it cannot be written.
  void write(const std::string& path) const {
    const std::string s = svg();
    std::FILE* file = std::fopen(path.c_str(), "w");
    const bool written = file && std::fwrite(s.data(), 1, s.size(), file) == s.size();
    if (!file || std::fclose(file) != 0 || !written) throw skein::FileError(path, -1, "cannot be written");
  }
  static const char* colour(std::size_t i) {
    constexpr const char* colors[] = {"#1f5fa8", "#d9730d", "#2d8a4e", "#b3272d", "#6b4ba1", "#7a5c3e", "#c2569b", "#5b6770"};
    return colors[i % std::size(colors)];
  }

 private:
  static constexpr const char* grey = "fill=\"#555\"";

  void check() const {
    for (const SvgSeries& s : series) {
      const std::size_t n = bars() ? categories.size() : s.x.size();
      if (s.y.size() != n || (!s.error.empty() && s.error.size() != n))
        throw skein::ShapeError("plot \"" + title + "\": series \"" + s.name + "\" has " + std::to_string(s.y.size()) +
                                " values and " + std::to_string(s.error.size()) + " errors for " + std::to_string(n) +
                                (bars() ? " categories" : " places on the x axis"));
    }
  }
  skein::train::Axis axis(const char* name, bool logarithmic, bool zero, std::vector<double> SvgSeries::*values) const {
    double least = HUGE_VAL, greatest = -HUGE_VAL;
    for (const SvgSeries& s : series)
      for (std::size_t i = 0; i < (s.*values).size(); ++i) {
        const double v = (s.*values)[i];
        if (!std::isfinite(v)) continue;
        if (logarithmic && !(v > 0))
          throw skein::ArgumentError("plot \"" + title + "\": series \"" + s.name + "\" has " + number(v) +
                                     " on the logarithmic " + name + " axis: it takes positive values");
        const double e = values == &SvgSeries::y && i < s.error.size() && std::isfinite(s.error[i]) ? s.error[i] : 0;
        least = std::min(least, logarithmic && v - e <= 0 ? v : v - e), greatest = std::max(greatest, v + e);
      }
    if (!(least <= greatest)) least = logarithmic ? 1 : 0, greatest = logarithmic ? 10 : 1;
    if (logarithmic) return skein::train::Axis::log10(least / 1.15, greatest * 1.15);
    if (zero) least = std::min(least, 0.0), greatest = std::max(greatest, 0.0);
    return skein::train::Axis::linear(least, greatest, 6);
  }

  double at_x(const skein::train::Axis& a, double v) const { return left + frame_width() * a.at(v); }
  double at_y(const skein::train::Axis& a, double v) const { return top + frame_height() * (1 - a.at(v)); }

  void draw_curve(std::string& s, std::size_t index, const skein::train::Axis& x, const skein::train::Axis& y) const {
    const SvgSeries& c = series[index];
    const std::string stroke = std::string(" stroke=\"") + colour(index) + "\"";
    std::string points;
    const auto close = [&] {
      if (!points.empty() && c.line)
        s += "<polyline fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\"" + stroke +
             (c.dashed ? " stroke-dasharray=\"6 4\"" : "") + " points=\"" + points + "\"/>\n";
      points.clear();
    };
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      if (!std::isfinite(c.x[i]) || !std::isfinite(c.y[i])) {
        close();
        continue;
      }
      points += (points.empty() ? "" : " ") + number(at_x(x, c.x[i])) + "," + number(at_y(y, c.y[i]));
      error_bar(s, c, i, at_x(x, c.x[i]), y, colour(index));
      if (c.marks)
        s += "<circle cx=\"" + number(at_x(x, c.x[i])) + "\" cy=\"" + number(at_y(y, c.y[i])) + "\" r=\"3\" fill=\"" +
             colour(index) + "\"/>\n";
    }
    close();
  }
  void draw_bars(std::string& s, std::size_t index, const skein::train::Axis& x, const skein::train::Axis& y) const {
    const SvgSeries& c = series[index];
    const double group = 0.8 * frame_width() / static_cast<double>(categories.size()),
                 each = group / static_cast<double>(series.size());
    const double base = at_y(y, y.logarithmic ? y.low : 0);
    for (std::size_t i = 0; i < c.y.size(); ++i) {
      if (!std::isfinite(c.y[i])) continue;
      const double from = at_x(x, static_cast<double>(i) + 0.5) - group / 2 + each * static_cast<double>(index),
                   to = at_y(y, c.y[i]);
      s += "<rect x=\"" + number(from) + "\" y=\"" + number(std::min(base, to)) + "\" width=\"" + number(0.92 * each) +
           "\" height=\"" + number(std::fabs(base - to)) + "\" fill=\"" + colour(index) + "\"/>\n";
      error_bar(s, c, i, from + 0.46 * each, y, "#222");
    }
  }
  void error_bar(std::string& s, const SvgSeries& c, std::size_t i, double x, const skein::train::Axis& y,
                 const char* stroke) const {
    if (c.error.empty() || !std::isfinite(c.error[i]) || !(c.error[i] > 0)) return;
    const double low = y.logarithmic ? std::max(c.y[i] - c.error[i], y.low) : c.y[i] - c.error[i], high = c.y[i] + c.error[i];
    line(s, x, at_y(y, low), x, at_y(y, high), stroke);
    for (const double end : {low, high}) line(s, x - 4, at_y(y, end), x + 4, at_y(y, end), stroke);
  }
  void legend(std::string& s) const {
    std::size_t named = 0, longest = 0;
    for (const SvgSeries& c : series) named += !c.name.empty(), longest = std::max(longest, c.name.size());
    if (named == 0) return;
    const double wide = 40 + 6.6 * static_cast<double>(longest), x = left + frame_width() - wide;
    double y = top + 14;
    s += "<rect fill=\"#fff\" fill-opacity=\"0.85\" x=\"" + number(x - 6) + "\" y=\"" + number(y - 12) + "\" width=\"" +
         number(wide + 6) + "\" height=\"" + number(18 * static_cast<double>(named) + 6) + "\"/>\n";
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (series[i].name.empty()) continue;
      line(s, x, y, x + 24, y, colour(i), 2.5);
      text(s, x + 32, y + 4, "start", "fill=\"#222\"", series[i].name);
      y += 18;
    }
  }

  static std::string number(double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.2f", v);
    std::string s = text;
    while (s.back() == '0') s.pop_back();
    if (s.back() == '.') s.pop_back();
    return s == "-0" ? "0" : s;
  }
  static std::string label(double tick, const skein::train::Axis& a) {
    char text[40];
    if (!a.logarithmic && std::fabs(tick) < 1e-9 * (a.high - a.low)) tick = 0;
    std::snprintf(text, sizeof text, "%.6g", tick);
    return text;
  }
  static void line(std::string& s, double x1, double y1, double x2, double y2, const char* stroke, double wide = 1) {
    s += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
         "\" stroke=\"" + stroke + "\" stroke-width=\"" + number(wide) + "\"/>\n";
  }
  static void text(std::string& s, double x, double y, const char* anchor, const std::string& style, const std::string& content) {
    if (content.empty()) return;
    s += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" " + style + ">";
    for (const char c : content) {
      if (c == '&') s += "&amp;";
      else if (c == '<') s += "&lt;";
      else if (c == '>') s += "&gt;";
      else if (static_cast<unsigned char>(c) >= 32) s += c;
    }
    s += "</text>\n";
  }
};

}  // namespace experiments
