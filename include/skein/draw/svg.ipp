// SPDX-License-Identifier: Apache-2.0
// The bodies of svg.hpp.
#pragma once
#include "../core/atomic_file.hpp"
#include "../core/text.hpp"
#include "svg.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::draw {

SKEIN_INLINE void append_xml(std::string& text, std::string_view content) {
  while (!content.empty()) {
    const char c = content.front();
    const std::size_t length = skein::detail::utf8_length(content);
    const bool none = content.starts_with("\xEF\xBF\xBE") || content.starts_with("\xEF\xBF\xBF");  // XML has not these two
    if (length == 0 || none) text += "\xEF\xBF\xBD";  // U+FFFD, which stands for what is none
    else if (length > 1) text += content.substr(0, length);
    else if (c == '&') text += "&amp;";
    else if (c == '<') text += "&lt;";
    else if (c == '>') text += "&gt;";
    else if (c == '"') text += "&quot;";
    else text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    content.remove_prefix(length > 0 ? length : 1);
  }
}

SKEIN_INLINE std::string decimal(double value, int decimals) {
  char digits[400];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals).ptr;
  std::string text(digits, end);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

SKEIN_INLINE std::string significant(double value, int digits) {
  char buffer[48];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr};
}

SKEIN_INLINE Svg::Svg(double width, double height) : width_(width), height_(height) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + decimal(width) + " " + decimal(height) + "\"";
  attribute("width", width), attribute("height", height);
  text_ += " font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<rect";
  attribute("width", width), attribute("height", height);
  text_ += " fill=\"#fff\"/>\n";
}

SKEIN_INLINE void Svg::line(double x1, double y1, double x2, double y2, const Stroke& look) {
  text_ += "<line";
  attribute("x1", x1), attribute("y1", y1), attribute("x2", x2), attribute("y2", y2);
  stroke(look);
}

SKEIN_INLINE void Svg::rect(double x, double y, double width, double height, std::string_view fill, double opacity,
                            const Stroke& outline) {
  text_ += "<rect";
  attribute("x", x), attribute("y", y), attribute("width", width), attribute("height", height), attribute("fill", fill);
  if (opacity != 1) attribute("fill-opacity", opacity);
  if (outline.width > 0) stroke(outline);
  else text_ += "/>\n";
}

SKEIN_INLINE void Svg::circle(double x, double y, double radius, std::string_view fill) {
  text_ += "<circle";
  attribute("cx", x), attribute("cy", y), attribute("r", radius), attribute("fill", fill);
  text_ += "/>\n";
}

SKEIN_INLINE void Svg::polyline(std::span<const Point> points, const Stroke& look) {
  text_ += "<polyline fill=\"none\" stroke-linejoin=\"round\" points=\"";
  TextList places(" ");
  for (const Point& p : points) places.add(decimal(p.x) + "," + decimal(p.y));
  text_ += places.text();
  text_ += '"';
  stroke(look);
}

SKEIN_INLINE void Svg::words(double x, double y, std::string_view content, const Words& look) {
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

SKEIN_INLINE void Svg::attribute(std::string_view name, std::string_view value) {
  text_.append(" ").append(name).append("=\"").append(value) += '"';
}

SKEIN_INLINE void Svg::stroke(const Stroke& look) {
  attribute("stroke", look.color), attribute("stroke-width", look.width);
  if (look.dashed) text_ += " stroke-dasharray=\"6 4\"";
  text_ += "/>\n";
}

SKEIN_INLINE void write_svg(const std::string& path, std::string_view svg) {
  AtomicFile file(path);
  file.append(svg.data(), svg.size());
  file.commit();
}

}  // namespace skein::inline SKEIN_ABI::draw

SKEIN_END_COLD
