// SPDX-License-Identifier: Apache-2.0
// Formulas of losses, as a user writes them: for tests on both devices, and for the guide.
#pragma once
#include <skein/nn/loss/own_loss.hpp>

namespace own_losses {

// [quote focal]
/// -(1 - p)^gamma log p, for p the probability of the sample's class (Lin et al., 2017).
struct Focal {
  float gamma = 2;
  constexpr auto operator()(const auto& row) const {
    const auto log_p = row.log_probability();
    return -pow(-expm1(log_p), gamma) * log_p;
  }
};
// [end]

// [quote log_cosh]
/// log cosh(output - target), element by element.
struct LogCosh {
  template <class T> constexpr T operator()(T output, T target) const {
    const T d = abs(output - target);
    return d + log1p(exp(-2 * d)) - 0.6931471805599453;
  }
};
// [end]

// [quote hinge]
/// The hinge over classes: sum_c max(0, 1 + x_c - x_label), c not the label.
struct Hinge {
  constexpr auto operator()(const auto& row) const {
    const auto own = row.at_label();
    return row.sum([&](auto x, long c) { return c == row.label() ? 0 * x : max(0, 1 + x - own); });
  }
};
// [end]

/// Sums of terms of sums, each with the slopes of all before.
struct Nested {
  constexpr auto operator()(const auto& row) const {
    const auto a = row.sum([](auto x) { return x * x; });
    const auto b = row.sum([&](auto x, long c) { return sin(x * a / 20) + static_cast<float>(c) * x; });
    return log1p(b * b) * row.at(1) - row.sum([&](auto x) { return tanh(x * b / 10) * a; });
  }
};

}  // namespace own_losses
