// SPDX-License-Identifier: Apache-2.0
// Handwritten digits without a file: each is drawn as pen strokes, bent, jittered, turned, sheared and scaled, with a random pen,
// blots and noise. A pure function of (seed, sample); for demonstrations and tests where MNIST is absent.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "in_memory.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

namespace detail {
struct Point {
  double x, y;
};

/// A pen stroke: up to nine points in the unit square, y downwards; drawn as a smooth curve or as straight lines.
struct Stroke {
  bool smooth;
  int count;
  Point points[9];
};

/// The strokes of a digit in one of its ways of writing.
struct Glyph {
  int count;
  Stroke strokes[3];
};

// Two ways of writing each digit.
inline constexpr Glyph digit_glyphs[10][2] = {
    {{1, {{true, 9, {{.52, .05}, {.24, .18}, {.14, .5}, {.24, .84}, {.5, .96}, {.77, .83}, {.87, .5}, {.76, .17}, {.50, .05}}}}},
     {1, {{true, 8, {{.62, .08}, {.3, .14}, {.18, .5}, {.3, .88}, {.6, .92}, {.82, .6}, {.78, .22}, {.5, .1}}}}}},
    {{1, {{false, 2, {{.5, .04}, {.5, .96}}}}},
     {2, {{false, 3, {{.3, .28}, {.54, .05}, {.54, .95}}}, {false, 2, {{.3, .95}, {.76, .95}}}}}},
    {{2,
      {{true, 6, {{.18, .28}, {.32, .07}, {.66, .07}, {.8, .3}, {.56, .62}, {.16, .94}}}, {false, 2, {{.16, .94}, {.86, .92}}}}},
     {1, {{true, 9, {{.2, .25}, {.4, .05}, {.74, .14}, {.72, .42}, {.4, .76}, {.18, .88}, {.3, .78}, {.55, .9}, {.88, .86}}}}}},
    {{2,
      {{true, 6, {{.2, .14}, {.5, .04}, {.78, .16}, {.74, .36}, {.58, .46}, {.42, .47}}},
       {true, 6, {{.42, .47}, {.72, .52}, {.84, .72}, {.66, .93}, {.4, .96}, {.16, .84}}}}},
     {3,
      {{false, 2, {{.2, .08}, {.76, .08}}},
       {false, 2, {{.76, .08}, {.44, .42}}},
       {true, 6, {{.44, .42}, {.76, .48}, {.84, .72}, {.66, .92}, {.38, .95}, {.16, .82}}}}}},
    {{2, {{false, 3, {{.3, .06}, {.16, .58}, {.86, .56}}}, {false, 2, {{.7, .2}, {.66, .96}}}}},
     {2, {{false, 4, {{.64, .96}, {.64, .05}, {.12, .64}, {.88, .64}}}, {false, 2, {{.64, .5}, {.64, .96}}}}}},
    {{3,
      {{false, 2, {{.8, .07}, {.28, .07}}},
       {false, 2, {{.28, .07}, {.24, .44}}},
       {true, 7, {{.24, .44}, {.5, .38}, {.78, .5}, {.82, .74}, {.62, .93}, {.38, .95}, {.16, .84}}}}},
     {2,
      {{false, 2, {{.84, .1}, {.34, .1}}},
       {true, 7, {{.34, .1}, {.28, .42}, {.58, .42}, {.78, .6}, {.7, .84}, {.44, .96}, {.18, .88}}}}}},
    {{1, {{true, 9, {{.7, .06}, {.4, .24}, {.2, .58}, {.28, .88}, {.56, .95}, {.8, .76}, {.68, .54}, {.42, .54}, {.22, .7}}}}},
     {1, {{true, 9, {{.44, .04}, {.26, .4}, {.22, .74}, {.4, .95}, {.66, .92}, {.78, .72}, {.62, .58}, {.4, .62}, {.26, .78}}}}}},
    {{1, {{false, 3, {{.14, .08}, {.86, .08}, {.4, .96}}}}},
     {3,
      {{true, 3, {{.16, .16}, {.5, .1}, {.84, .1}}},
       {true, 3, {{.84, .1}, {.54, .5}, {.42, .96}}},
       {false, 2, {{.3, .52}, {.74, .48}}}}}},
    {{2,
      {{true, 7, {{.5, .48}, {.24, .34}, {.26, .12}, {.5, .04}, {.74, .12}, {.76, .34}, {.5, .48}}},
       {true, 7, {{.5, .48}, {.2, .64}, {.2, .86}, {.5, .96}, {.8, .86}, {.8, .64}, {.5, .48}}}}},
     {1, {{true, 9, {{.74, .12}, {.4, .06}, {.26, .26}, {.54, .48}, {.8, .74}, {.56, .95}, {.24, .8}, {.48, .5}, {.76, .14}}}}}},
    {{2,
      {{true, 7, {{.76, .3}, {.58, .48}, {.32, .46}, {.22, .24}, {.42, .06}, {.68, .1}, {.76, .3}}},
       {true, 3, {{.76, .3}, {.74, .64}, {.6, .96}}}}},
     {2,
      {{true, 7, {{.74, .26}, {.54, .5}, {.28, .42}, {.24, .18}, {.48, .05}, {.72, .12}, {.74, .26}}},
       {false, 2, {{.74, .2}, {.74, .95}}}}}},
};

/// Draws one digit into 28 x 28 bytes.
class DigitPainter {
 public:
  static constexpr int side = 28;

  DigitPainter(std::uint64_t key, std::int64_t sample) : key_(key), sample_(static_cast<std::uint64_t>(sample)) {}

  int digit() const { return static_cast<int>(random_below(key_, 2 * sample_ + 1, 0, 10)); }

  void paint(std::uint8_t* pixels);

 private:
  double uniform() { return random_uniform(key_, 2 * sample_, next_++); }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// About normal, by a sum: only additions, so that it is the same everywhere.
  double wobble(double deviation) { return deviation * 1.7320508 * (uniform() + uniform() + uniform() + uniform() - 2); }

  /// The writer: an affine map with a slow bend, and a pen.
  void choose_hand();
  Point place(Point p);
  void draw(const Stroke& stroke);
  static double spline(double a, double b, double c, double d, double t);
  /// A stray stroke somewhere: a neighbouring letter, a scratch.
  void blot();
  /// Ink within `radius` of a segment, fading over one pixel; the darkest stroke wins.
  void line(Point a, Point b, double radius, double strength);
  static int pixel(double v) { return static_cast<int>(std::clamp(v, 0.0, side - 1.0)); }

  void finish(std::uint8_t* pixels);

  std::uint64_t key_, sample_, next_ = 0;
  std::array<double, 4> map_{};
  Point middle_{}, bend_{};
  double pen_ = 1, strength_ = 1;
  std::array<double, side * side> ink_{};
};
}  // namespace detail

/// `samples` images of 28 x 28 x 1 with labels 0 to 9, about equally many of each, normalised to mean 0 and deviation 1 or
/// nearly. The same seed gives the same images; a longer set begins with the shorter one. About 16 us a sample. LeNet
/// reaches 98.5 to 99 % on them, a linear classifier 78 %.
InMemory<std::uint8_t> synthetic_digits(std::int64_t samples, Seed seed = {});

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "synthetic_digits.ipp"
#endif
