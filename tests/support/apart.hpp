// SPDX-License-Identifier: Apache-2.0
// Comparisons of whole sequences, c * epsilon * magnitude apart at most, and the inputs that fixtures and tests share.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace test {

/// Is |a - b| <= c * epsilon<Scalar> * max(magnitude, |b|)?
template <class Scalar> bool close(double a, double b, double c = 16, double magnitude = 1) {
  return std::abs(a - b) <= c * static_cast<double>(std::numeric_limits<Scalar>::epsilon()) * std::max(magnitude, std::abs(b));
}

/// The index of the first pair that is not close, or -1; -2 where the lengths differ.
template <class Scalar, class A, class B>
long first_apart(const std::vector<A>& a, const std::vector<B>& b, double c = 16, double magnitude = 1) {
  if (a.size() != b.size()) return -2;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!close<Scalar>(static_cast<double>(a[i]), static_cast<double>(b[i]), c, magnitude)) return static_cast<long>(i);
  return -1;
}

/// amplitude * sin(a (i + 1) + b) for i in [0, n): inputs that a script in another language can make too.
inline std::vector<double> wave(long n, double a, double b = 0, double amplitude = 1) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (long i = 0; i < n; ++i) {
    const volatile double turn = a * static_cast<double>(i + 1);  // rounded, as in other languages: clang++ contracts
    values[static_cast<std::size_t>(i)] = amplitude * std::sin(turn + b);
  }
  return values;
}

}  // namespace test
