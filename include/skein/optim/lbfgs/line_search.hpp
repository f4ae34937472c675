// SPDX-License-Identifier: Apache-2.0
// The search for a step length along a direction: bracketing, then cubic interpolation within the bracket, until the strong Wolfe
// conditions hold. Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6; trial lengths and safeguards are those
// of minFunc, which torch.optim.LBFGS has too. Here are numbers alone: gradients are arrays of the caller, by their numbers.
#pragma once
#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// A point on the line: how far along, the loss there, its derivative along the direction, and in which of the caller's arrays
/// the gradient is.
struct LinePoint {
  double length = 0, loss = 0, slope = 0;
  int gradient = 0;
};

/// The loss along a direction.
class LineFunction {
 public:
  virtual ~LineFunction() = default;
  /// Evaluates the loss so far along, and leaves the gradient in that array, one of four: 0 has that of the start.
  virtual LinePoint at(double length, int array) = 0;
};

/// What ends a search.
struct WolfeOptions {
  double decrease = 1e-4;          ///< c1: the loss falls by this share of what the slope at the start promises
  double curvature = 0.9;          ///< c2: the slope is at most this share of that at the start
  double tolerance_change = 1e-9;  ///< a bracket in which no parameter can move by so much is not searched further
  double largest = 1;              ///< element of the direction, in magnitude
  int most = 25;                   ///< evaluations beside the first
};

/// A point that fulfils the conditions, or the best one found. `start` has length 0 and a negative slope; `first` is the length
/// to begin with. A loss that is not finite, or whose slope is not, counts as one that does not fall.
LinePoint strong_wolfe(LineFunction& line, const LinePoint& start, double first, const WolfeOptions& options);

/// The minimum within [least, most] of the cubic through two points with their slopes; the middle where there is none.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double least, double most);

}  // namespace skein::inline SKEIN_ABI::optim

#if !SKEIN_COMPILED
#include "line_search.ipp"
#endif
