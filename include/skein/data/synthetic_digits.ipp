// SPDX-License-Identifier: Apache-2.0
// The bodies of synthetic_digits.hpp.
#pragma once
#include "synthetic_digits.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE void DigitPainter::paint(std::uint8_t* pixels) {
  ink_.fill(0);
  const Glyph& glyph = digit_glyphs[digit()][uniform() < 0.5 ? 0 : 1];
  choose_hand();
  for (int s = 0; s < glyph.count; ++s) draw(glyph.strokes[s]);
  if (uniform() < 0.35) blot();
  finish(pixels);
}

SKEIN_INLINE void DigitPainter::choose_hand() {
  const double angle = wobble(0.17), shear = wobble(0.22), wide = between(10.5, 19), high = between(15, 21.5);
  const double sine = angle - angle * angle * angle / 6, cosine = 1 - angle * angle / 2;
  map_ = {wide * cosine, wide * shear - high * sine, wide * sine, high * cosine};
  middle_ = {13.5 + wobble(1.3), 13.5 + wobble(1.3)};
  bend_ = {wobble(0.12), wobble(0.12)};
  pen_ = between(0.75, 1.9);
  strength_ = between(0.65, 1.0);
}

SKEIN_INLINE Point DigitPainter::place(Point p) {
  const double u = p.x - 0.5 + wobble(0.028), v = p.y - 0.5 + wobble(0.028);
  const double x = u + bend_.x * (4 * v * v - 0.5), y = v + bend_.y * (4 * u * u - 0.5);
  return {middle_.x + map_[0] * x + map_[1] * y, middle_.y + map_[2] * x + map_[3] * y};
}

SKEIN_INLINE void DigitPainter::draw(const Stroke& stroke) {
  Point p[9];
  for (int i = 0; i < stroke.count; ++i) p[i] = place(stroke.points[i]);
  for (int i = 0; i + 1 < stroke.count; ++i) {
    if (!stroke.smooth) {
      line(p[i], p[i + 1], pen_, strength_);
      continue;
    }
    const Point a = p[i > 0 ? i - 1 : 0], d = p[i + 2 < stroke.count ? i + 2 : i + 1];  // Catmull and Rom, in four pieces
    Point from = p[i];
    for (int k = 1; k <= 4; ++k) {
      const double t = k / 4.0;
      const Point to{spline(a.x, p[i].x, p[i + 1].x, d.x, t), spline(a.y, p[i].y, p[i + 1].y, d.y, t)};
      line(from, to, pen_, strength_);
      from = to;
    }
  }
}

SKEIN_INLINE double DigitPainter::spline(double a, double b, double c, double d, double t) {
  return 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t * t * t);
}

SKEIN_INLINE void DigitPainter::blot() {
  const Point from{between(0, 27), between(0, 27)}, to{from.x + between(-8, 8), from.y + between(-8, 8)};
  const double pen = between(0.5, 1.1), strength = between(0.3, 0.8);  // not as arguments: their order is the compiler's
  line(from, to, pen, strength);
}

SKEIN_INLINE void DigitPainter::line(Point a, Point b, double radius, double strength) {
  const double reach = radius + 0.5, dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const int left = pixel(std::min(a.x, b.x) - reach), right = pixel(std::max(a.x, b.x) + reach + 1);
  const int top = pixel(std::min(a.y, b.y) - reach), bottom = pixel(std::max(a.y, b.y) + reach + 1);
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) {
      const double px = x - a.x, py = y - a.y, t = length > 0 ? std::clamp((px * dx + py * dy) / length, 0.0, 1.0) : 0.0;
      const double ex = px - t * dx, ey = py - t * dy, shade = reach - std::sqrt(ex * ex + ey * ey);
      double& ink = ink_[static_cast<std::size_t>(y * side + x)];
      ink = std::max(ink, strength * std::clamp(shade, 0.0, 1.0));
    }
}

SKEIN_INLINE void DigitPainter::finish(std::uint8_t* pixels) {
  const double grain = between(0.02, 0.16), ground = between(0, 0.08);
  for (std::size_t i = 0; i < ink_.size(); ++i) {
    const Philox p = Philox::at(key_, 2 * sample_ + 1, 1 + i);
    const double noise =
        uniform_from(p.word[0]) + uniform_from(p.word[1]) + uniform_from(p.word[2]) + uniform_from(p.word[3]) - 2.0;
    const double value = ground + (1 - ground) * ink_[i] + 1.7320508 * grain * noise;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 1.0) * 255 + 0.5);
  }
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE InMemory<std::uint8_t> synthetic_digits(std::int64_t samples, Seed seed) {
  if (samples < 0) throw ArgumentError("synthetic_digits: the number of samples is negative");
  constexpr std::int64_t pixels = detail::DigitPainter::side * detail::DigitPainter::side;
  const std::uint64_t key = random_key(seed.value, 0x646967697473ull);  // "digits"
  std::vector<std::uint8_t> images(static_cast<std::size_t>(samples * pixels));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    detail::DigitPainter painter(key, i);
    painter.paint(images.data() + i * pixels);
    labels[static_cast<std::size_t>(i)] = painter.digit();
  }
  return InMemory<std::uint8_t>({3, {28, 28, 1}}, std::move(images), std::move(labels), 10)
      .normalize(0.1634, 0.2532)
      .made_by({.normalized_as_read = true});
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
