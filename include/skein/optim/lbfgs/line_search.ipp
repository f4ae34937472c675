// SPDX-License-Identifier: Apache-2.0
// The bodies of line_search.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "line_search.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE double cubic_minimum(const LinePoint& a, const LinePoint& b, double least, double most) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (least + most) / 2;
  const double d2 = std::sqrt(square);
  const double at = a.length <= b.length
                        ? b.length - (b.length - a.length) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                        : a.length - (a.length - b.length) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::isfinite(at) ? std::min(std::max(at, least), most) : (least + most) / 2;
}

namespace detail {
/// The line so far along. Where the loss is minus infinity, or has no finite slope, it has not fallen: no step begins there.
inline LinePoint look(LineFunction& line, double length, int array) {
  LinePoint point = line.at(length, array);
  if (!std::isfinite(point.slope) || point.loss < std::numeric_limits<double>::lowest())
    point.loss = std::numeric_limits<double>::quiet_NaN();
  return point;
}
/// An array that none of the points has.
SKEIN_INLINE int free_array(const LinePoint& a, const LinePoint& b, const LinePoint& c) {
  int array = 0;
  while (array == a.gradient || array == b.gradient || array == c.gradient) ++array;
  return array;
}

/// Two points between which the conditions hold somewhere; `low` is the one with the smaller loss.
struct Bracket {
  LinePoint ends[2];
  int low = 0;
  bool crowded = false;  ///< the last trial was close to an end

  void order() { low = !(ends[0].loss <= ends[1].loss) && ends[1].loss == ends[1].loss; }  // not one whose loss is no number
  const LinePoint& best() const { return ends[low]; }
  double trial() {
    const double least = std::min(ends[0].length, ends[1].length), most = std::max(ends[0].length, ends[1].length);
    double t = cubic_minimum(ends[0], ends[1], least, most);
    const double margin = 0.1 * (most - least);
    if (std::min(most - t, t - least) >= margin) {
      crowded = false;
    } else if (crowded || t >= most || t <= least) {
      t = std::abs(t - most) < std::abs(t - least) ? most - margin : least + margin;
      crowded = false;
    } else {
      crowded = true;
    }
    return t;
  }
};

/// Narrows the bracket to a point that fulfils the conditions, with at most so many evaluations.
SKEIN_INLINE LinePoint zoom(LineFunction& line, const LinePoint& start, Bracket bracket, int evaluations, const WolfeOptions& o) {
  bracket.order();
  for (; evaluations > 0; --evaluations) {
    if (std::abs(bracket.ends[1].length - bracket.ends[0].length) * o.largest < o.tolerance_change) break;
    const double t = bracket.trial();
    const LinePoint now = look(line, t, free_array(start, bracket.ends[0], bracket.ends[1]));
    LinePoint &low = bracket.ends[bracket.low], &high = bracket.ends[1 - bracket.low];
    if (!(now.loss <= start.loss + o.decrease * t * start.slope) || !(now.loss < low.loss)) {
      high = now;
      bracket.order();
      continue;
    }
    if (std::abs(now.slope) <= -o.curvature * start.slope) return now;
    if (now.slope * (high.length - low.length) >= 0) high = low;
    low = now;
  }
  return bracket.best();
}
}  // namespace detail

SKEIN_INLINE LinePoint strong_wolfe(LineFunction& line, const LinePoint& start, double first, const WolfeOptions& o) {
  LinePoint before = start, now = detail::look(line, first, detail::free_array(start, start, start));
  int searched = 0;
  for (; searched < o.most; ++searched) {
    if (!(now.loss <= start.loss + o.decrease * now.length * start.slope) || (searched > 1 && now.loss >= before.loss)) break;
    if (std::abs(now.slope) <= -o.curvature * start.slope) return now;
    if (now.slope >= 0) break;
    const double t = cubic_minimum(before, now, now.length + 0.01 * (now.length - before.length), 10 * now.length);
    before = now;
    now = detail::look(line, t, detail::free_array(start, before, before));
  }
  if (searched == o.most) before = start;
  return detail::zoom(line, start, {{before, now}}, o.most - searched, o);
}

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
