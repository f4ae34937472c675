// SPDX-License-Identifier: Apache-2.0
// A picture as an SVG text: lines, boxes, circles and words on a white ground, which every picture of the library is drawn with.
// No script, no font file: it looks the same everywhere, and the same values give the same bytes, whatever the locale says.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::draw {

/// Colors that can be told apart, in the order in which series take them.
inline constexpr std::string_view palette[] = {"#1f5fa8", "#d9730d", "#2d8a4e", "#b3272d",
                                               "#6b4ba1", "#7a5c3e", "#c2569b", "#5b6770"};
/// Of words, of labels, of the lines of a grid, of a frame.
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

/// Text inside an XML element or attribute. Control characters, which XML cannot hold, become spaces.
inline void append_xml(std::string& text, std::string_view content) {
  for (const char c : content) {
    if (c == '&') text += "&amp;";
    else if (c == '<') text += "&lt;";
    else if (c == '>') text += "&gt;";
    else if (c == '"') text += "&quot;";
    else text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
}

/// A number with at most so many decimals, without zeros at its end.
inline std::string decimal(double value, int decimals = 2) {
  char digits[400];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals).ptr;
  std::string text(digits, end);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}
/// A number with at most so many significant digits: 0.02513, 1.5e-07.
inline std::string significant(double value, int digits = 6) {
  char buffer[48];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr};
}

/// The picture, while it is drawn; lengths are in pixels, y grows downwards.
class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + decimal(width) + " " + decimal(height) + "\"";
    attribute("width", width), attribute("height", height);
    text_ += " font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<rect";
    attribute("width", width), attribute("height", height);
    text_ += " fill=\"#fff\"/>\n";
  }
  /// Pixels.
  double width() const { return width_; }
  double height() const { return height_; }

  /// From one place to another.
  void line(double x1, double y1, double x2, double y2, const Stroke& look = {}) {
    text_ += "<line";
    attribute("x1", x1), attribute("y1", y1), attribute("x2", x2), attribute("y2", y2);
    stroke(look);
  }
  /// A filled box; x and y are its upper left corner.
  void rect(double x, double y, double width, double height, std::string_view fill, double opacity = 1,
            const Stroke& outline = {.width = 0}) {
    text_ += "<rect";
    attribute("x", x), attribute("y", y), attribute("width", width), attribute("height", height), attribute("fill", fill);
    if (opacity != 1) attribute("fill-opacity", opacity);
    if (outline.width > 0) stroke(outline);
    else text_ += "/>\n";
  }
  /// A filled circle around a place.
  void circle(double x, double y, double radius, std::string_view fill) {
    text_ += "<circle";
    attribute("cx", x), attribute("cy", y), attribute("r", radius), attribute("fill", fill);
    text_ += "/>\n";
  }
  /// Through all places in their order.
  void polyline(std::span<const Point> points, const Stroke& look) {
    text_ += "<polyline fill=\"none\" stroke-linejoin=\"round\" points=\"";
    for (const Point& p : points) text_ += (&p == points.data() ? "" : " ") + decimal(p.x) + "," + decimal(p.y);
    text_ += '"';
    stroke(look);
  }
  /// Nothing where the content is empty.
  void words(double x, double y, std::string_view content, const Words& look = {}) {
    if (content.empty()) return;
    text_ += "<text";
    attribute("x", x), attribute("y", y), attribute("fill", look.color);
    if (look.anchor != "start") attribute("text-anchor", look.anchor);
    if (look.size != 12) attribute("font-size", look.size);
    if (look.bold) text_ += " font-weight=\"600\"";
    if (look.upwards) attribute("transform", "rotate(-90 " + decimal(x) + " " + decimal(y) + ")");
    text_ += '>';
    append_xml(text_, content);
    text_ += "</text>\n";
  }
  /// The whole file, as far as it has been drawn.
  std::string text() const { return text_ + "</svg>\n"; }

 private:
  void attribute(std::string_view name, std::string_view value) {
    text_.append(" ").append(name).append("=\"").append(value) += '"';
  }
  void attribute(std::string_view name, double value) { attribute(name, decimal(value)); }
  void stroke(const Stroke& look) {
    attribute("stroke", look.color), attribute("stroke-width", look.width);
    if (look.dashed) text_ += " stroke-dasharray=\"6 4\"";
    text_ += "/>\n";
  }

  double width_, height_;
  std::string text_;
};

/// Throws FileError where the picture cannot be written.
inline void write_svg(const std::string& path, std::string_view svg) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file && std::fwrite(svg.data(), 1, svg.size(), file) == svg.size();
  if (!file || std::fclose(file) != 0 || !written) throw FileError(path, -1, "the picture cannot be written there");
}

}  // namespace skein::inline SKEIN_ABI::draw
