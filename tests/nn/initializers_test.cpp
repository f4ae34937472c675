// SPDX-License-Identifier: Apache-2.0
// Initial values: bounds and variance by formula, gaps untouched, the same values with and without padding.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <skein/nn/initializers.hpp>

namespace sk = skein;
using sk::nn::Init;

namespace {

constexpr double gap = 77;

/// The logical values of a stored parameter; gaps must still hold what stood there.
template <class S = double>
std::vector<S> filled(sk::Extents e, Init init, long fan_in, long fan_out, std::uint64_t stream = 0, std::uint64_t key = 5) {
  std::vector<S> stored(static_cast<std::size_t>(sk::stored_count(e)), S(gap)), values;
  sk::nn::initialize(stored.data(), e, init, fan_in, fan_out, key, stream);
  const long pitch = sk::row_pitch(e.last());
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (static_cast<long>(i) % pitch < e.last()) values.push_back(stored[i]);
    else REQUIRE(stored[i] == S(gap));
  return values;
}

struct Moments {
  double mean = 0, variance = 0, largest = 0;
};
Moments moments(const std::vector<double>& v) {
  Moments m;
  for (const double x : v) m.mean += x / static_cast<double>(v.size());
  for (const double x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  for (const double x : v) m.largest = std::max(m.largest, std::abs(x));
  return m;
}

}  // namespace

TEST_CASE("uniform initial values keep their bound and fill it", "[nn]") {
  const struct {
    Init init;
    double bound;
  } cases[] = {{Init::fan_in_uniform, 1 / std::sqrt(50.0)},
               {Init::kaiming_uniform, std::sqrt(6 / 50.0)},
               {Init::xavier_uniform, std::sqrt(6 / (50.0 + 30.0))}};
  for (const auto& c : cases) {
    const Moments m = moments(filled({2, {400, 70}}, c.init, 50, 30));
    CHECK(m.largest <= c.bound);
    CHECK(m.largest > 0.999 * c.bound);
    CHECK(std::abs(m.mean) < 0.02 * c.bound);
    CHECK(m.variance == Approx(c.bound * c.bound / 3).epsilon(0.03));
  }
}

TEST_CASE("normal initial values have their variance", "[nn]") {
  const struct {
    Init init;
    double variance;
  } cases[] = {{Init::kaiming_normal, 2 / 50.0}, {Init::xavier_normal, 2 / 80.0}, {Init::lecun_normal, 1 / 50.0}};
  for (const auto& c : cases) {
    const Moments m = moments(filled({2, {400, 70}}, c.init, 50, 30));
    CHECK(std::abs(m.mean) < 0.02 * std::sqrt(c.variance));
    CHECK(m.variance == Approx(c.variance).epsilon(0.03));
    CHECK(m.largest > 3 * std::sqrt(c.variance));  // a uniform of this variance ends at 1.73
  }
}

TEST_CASE("constants are constant", "[nn]") {
  CHECK(filled({1, {5}}, Init::zeros, 5, 5) == std::vector<double>(5, 0));
  CHECK(filled({1, {5}}, Init::ones, 5, 5) == std::vector<double>(5, 1));
}

TEST_CASE("initial values depend on key, stream and logical index, not on the rows", "[nn]") {
  const auto rows = filled({2, {14, 10}}, Init::kaiming_normal, 50, 30);  // rows of 16, gaps of 6
  CHECK(filled({1, {140}}, Init::kaiming_normal, 50, 30) == rows);
  CHECK(filled({4, {7, 2, 2, 5}}, Init::kaiming_normal, 50, 30) == rows);
  CHECK(filled({2, {14, 10}}, Init::kaiming_normal, 50, 30, 1) != rows);
  CHECK(filled({2, {14, 10}}, Init::kaiming_normal, 50, 30, 0, 6) != rows);
  const auto single = filled<float>({2, {14, 10}}, Init::kaiming_normal, 50, 30);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(single[i] == static_cast<float>(rows[i]));
}

TEST_CASE("a fan of nothing counts as one", "[nn]") {
  for (const double v : filled({1, {64}}, Init::fan_in_uniform, 0, 0)) CHECK(std::abs(v) <= 1);
}
