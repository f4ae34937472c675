// SPDX-License-Identifier: Apache-2.0
// Runs a loss on rows as a network may hand them over (padded, with anything in the gaps), and on slices as workers would.
#pragma once
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include <skein/core/shape.hpp>
#include <skein/nn/loss/loss.hpp>

#include "apart.hpp"

namespace test {

template <class Scalar> struct LossRows {
  long count = 0, width = 0;
  std::vector<double> outputs{}, targets{};  // (count, width)
  std::vector<std::int32_t> labels{};        // (count)

  struct Result {
    skein::nn::LossSums sums;
    std::vector<double> gradient;  // (count, width), of the mean loss where scaled so
    double weight = 0;             // what Loss::weight said beforehand
  };

  /// scale 0: 1 / weight, the gradient of the mean. `slices`: so many calls on parts of the rows.
  template <class Loss> Result operator()(const Loss& loss, double scale = 0, int slices = 1, bool wants_gradient = true) const {
    const long pitch = skein::row_pitch(width);
    std::vector<Scalar> x(static_cast<std::size_t>(count * pitch), std::numeric_limits<Scalar>::quiet_NaN()), t = x;
    std::vector<Scalar> g(x.size(), Scalar(99));
    for (long r = 0; r < count; ++r)
      for (long c = 0; c < width; ++c) {
        x[static_cast<std::size_t>(r * pitch + c)] = static_cast<Scalar>(outputs[static_cast<std::size_t>(r * width + c)]);
        if (!targets.empty())
          t[static_cast<std::size_t>(r * pitch + c)] = static_cast<Scalar>(targets[static_cast<std::size_t>(r * width + c)]);
      }
    const auto call = [&](long lo, long hi) {
      skein::nn::LossCall<Scalar, skein::Cpu> k;
      k.outputs = x.data() + lo * pitch;
      k.output_pitch = k.target_pitch = pitch;
      k.width = width;
      k.labels = labels.empty() ? nullptr : labels.data() + lo;
      k.targets = targets.empty() ? nullptr : t.data() + lo * pitch;
      k.count = hi - lo;
      k.gradient = wants_gradient ? g.data() + lo * pitch : nullptr;
      k.first = lo;
      return k;
    };
    Result result;
    result.weight = loss.weight(call(0, count));
    for (int s = 0; s < slices; ++s) {
      auto k = call(count * s / slices, count * (s + 1) / slices);
      k.scale = static_cast<Scalar>(scale != 0 ? scale : 1 / result.weight);
      result.sums += loss(k);
    }
    for (long r = 0; r < count && wants_gradient; ++r)
      for (long c = 0; c < pitch; ++c) {
        const double v = static_cast<double>(g[static_cast<std::size_t>(r * pitch + c)]);
        if (c < width) result.gradient.push_back(v);
        else REQUIRE(v == 0);  // gaps
      }
    return result;
  }
};

/// The fixture's mean and its gradient, in both scalar types; the same sums in one call, in three, and without a gradient.
template <class Loss> void matches_fixture(const Loss& loss, const LossRows<double>& rows, const std::vector<double>& value,
                                           const std::vector<double>& gradient) {
  const auto exact = rows(loss);
  CHECK(close<double>(exact.sums.mean(), value.at(0), 32));
  CHECK(first_apart<double>(exact.gradient, gradient, 64) == -1);
  CHECK(close<double>(exact.weight, exact.sums.weight));
  const LossRows<float> single{rows.count, rows.width, rows.outputs, rows.targets, rows.labels};
  const auto rough = single(loss);
  CHECK(std::abs(rough.sums.mean() - value.at(0)) <= 1e-6 * std::max(1.0, std::abs(value.at(0))));
  CHECK(first_apart<float>(rough.gradient, gradient, 8) == -1);
  const auto parts = single(loss, 0, 3);
  CHECK(close<double>(parts.sums.loss, rough.sums.loss));
  CHECK(parts.sums.weight == rough.sums.weight);
  CHECK(parts.sums.correct == rough.sums.correct);
  CHECK(parts.gradient == rough.gradient);
  CHECK(single(loss, 0, 1, false).sums.loss == rough.sums.loss);
}

/// d loss / d outputs against central differences, in double.
template <class Loss> void matches_differences(const Loss& loss, LossRows<double> rows, double tolerance = 1e-7) {
  const auto analytic = rows(loss, 1.0);
  for (std::size_t i = 0; i < rows.outputs.size(); ++i) {
    const double x = rows.outputs[i], h = 1e-5;
    rows.outputs[i] = x + h;
    const double up = rows(loss, 1.0).sums.loss;
    rows.outputs[i] = x - h;
    const double down = rows(loss, 1.0).sums.loss;
    rows.outputs[i] = x;
    CHECK(std::abs(analytic.gradient[i] - (up - down) / (2 * h)) <= tolerance);
  }
}

}  // namespace test
