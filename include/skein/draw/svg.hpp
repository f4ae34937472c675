// SPDX-License-Identifier: Apache-2.0
// A picture as an SVG text: lines, boxes, circles and words on a white ground, which every picture of the library is drawn with.
// No script, no font file: it looks the same everywhere, and the same values give the same bytes, whatever the locale says.
#pragma once
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "../core/error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::draw {

/// Colors that can be told apart, in the order in which series take them.
inline constexpr std::string_view palette[] = {"#1f5fa8", "#d9730d", "#2d8a4e", "#b3272d",
                                               "#6b4ba1", "#7a5c3e", "#c2569b", "#5b6770"};
/// The colors of words, of labels, of the lines of a grid, of a frame.
inline constexpr std::string_view dark = "#222", grey = "#555", light = "#e6e6e6", frame_color = "#888";

/// A place in a picture, in pixels from its upper left corner.
struct Point {
  double x = 0, y = 0;
};

/// How a line or the outline of a box looks; width 0 draws none.
struct Stroke {
  std::string_view color = frame_color;
  double width = 1;
  bool dashed = false;
};

/// How words look, and which end of them is at their place: "start", "middle" or "end".
struct Words {
  std::string_view anchor = "start", color = dark;
  int size = 12;
  bool bold = false, upwards = false;  ///< upwards: turned by 90 degrees, as along an axis
};

/// Text inside an XML element or attribute. Control characters, which XML cannot hold, become spaces, and bytes
/// that are no UTF-8 its sign for them, U+FFFD.
void append_xml(std::string& text, std::string_view content);

/// A number with at most so many decimals, without zeros at its end.
std::string decimal(double value, int decimals = 2);
/// A number with at most so many significant digits: 0.02513, 1.5e-07.
std::string significant(double value, int digits = 6);

/// The picture, while it is drawn; lengths are in pixels, y grows downwards.
class Svg {
 public:
  Svg(double width, double height);
  /// Pixels.
  double width() const { return width_; }
  double height() const { return height_; }

  /// From one place to another.
  void line(double x1, double y1, double x2, double y2, const Stroke& look = {});
  /// A filled box; x and y are its upper left corner.
  void rect(double x, double y, double width, double height, std::string_view fill, double opacity = 1,
            const Stroke& outline = {.width = 0});
  /// A filled circle around a place.
  void circle(double x, double y, double radius, std::string_view fill);
  /// Through all places in their order.
  void polyline(std::span<const Point> points, const Stroke& look);
  /// Nothing where the content is empty.
  void words(double x, double y, std::string_view content, const Words& look = {});
  /// The whole file, as far as it has been drawn.
  std::string text() const { return text_ + "</svg>\n"; }

 private:
  void attribute(std::string_view name, std::string_view value);
  void attribute(std::string_view name, double value) { attribute(name, decimal(value)); }
  void stroke(const Stroke& look);

  double width_, height_;
  std::string text_;
};

/// Throws FileError where the picture cannot be written; then an old one stays.
void write_svg(const std::string& path, std::string_view svg);

}  // namespace skein::inline SKEIN_ABI::draw

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "svg.ipp"
#endif
