// SPDX-License-Identifier: Apache-2.0
// What L-BFGS keeps of the curvature, and the direction that it makes of it: the two loops of Liu and Nocedal, "On the limited
// memory BFGS method for large scale optimization", 1989. For lbfgs.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::optim {

namespace detail {
template <class Scalar> using Values = std::vector<Scalar>;
template <class Scalar> double dot(const Values<Scalar>& a, const Values<Scalar>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
template <class Scalar> double largest(const Values<Scalar>& v) {
  double most = 0;
  for (const Scalar x : v)
    if (most == most && !(std::abs(static_cast<double>(x)) <= most)) most = std::abs(static_cast<double>(x));  // a NaN stays
  return most;
}
/// y += factor x
template <class Scalar> void add(Values<Scalar>& y, double factor, const Values<Scalar>& x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += static_cast<Scalar>(factor) * x[i];
}
template <class Scalar> void multiply(Values<Scalar>& v, double factor) {
  for (Scalar& x : v) x *= static_cast<Scalar>(factor);
}

/// What L-BFGS knows of the curvature: the last steps, and by how much the gradient changed in each.
template <class Scalar> class CurvaturePairs {
 public:
  /// Adds a step s in which the gradient changed by y; leaves it out where the loss is not convex along it.
  void note(Values<Scalar>&& y, Values<Scalar>&& s, int most) {
    const double ys = dot(y, s);
    if (!(ys > 1e-10)) return;
    if (static_cast<int>(pairs_.size()) == most) pairs_.pop_front();
    diagonal_ = ys / dot(y, y);
    pairs_.push_back({std::move(y), std::move(s), 1 / ys});
  }
  /// direction = - (inverse Hessian) gradient
  void direction(const Values<Scalar>& gradient, Values<Scalar>& to) const {
    to = gradient;
    multiply(to, -1);
    Values<double> shares(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = dot(pairs_[i].s, to) * pairs_[i].inverse;
      add(to, -shares[i], pairs_[i].y);
    }
    multiply(to, diagonal_);
    for (std::size_t i = 0; i < pairs_.size(); ++i) add(to, shares[i] - dot(pairs_[i].y, to) * pairs_[i].inverse, pairs_[i].s);
  }
  std::size_t size() const { return pairs_.size(); }

 private:
  struct Pair {
    Values<Scalar> y, s;
    double inverse;  ///< 1 / (y s)
  };
  std::deque<Pair> pairs_;
  double diagonal_ = 1;
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::optim
