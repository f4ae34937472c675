// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <skein/ops/optimizer.hpp>

#include "../support/larger.hpp"

using namespace skein;

TEST_CASE("Adam's quotient is right to the last bits over thirty orders of magnitude", "[ops]") {
  const std::size_t n = 640;
  std::vector<float> g(n), p(n), m(n), v(n), p2(n), m2(n), v2(n);
  for (std::size_t i = 0; i < n; ++i)
    g[i] = static_cast<float>((i % 2 ? -1.0 : 1.0) * std::pow(10.0, -15.0 + 30.0 * static_cast<double>(i) / n));
  const float* gradients[] = {g.data()};
  ops::AdamArguments<float> arguments;
  arguments.gradients = gradients;
  arguments.gradient_count = 1;
  arguments.end = static_cast<long>(n);
  arguments.fresh1 = 0.5f;
  arguments.beta2 = 0.5f;
  arguments.fresh2 = 0.25f;
  arguments.epsilon = 1e-8f;
  arguments.rate = 0.1f;
  arguments.parameters = p.data(), arguments.first = m.data(), arguments.second = v.data();
  ops::adam<Cpu>(arguments);
  arguments.parameters = p2.data(), arguments.first = m2.data(), arguments.second = v2.data();
  ops::reference::adam(arguments);
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = support::larger(worst, p[i] / p2[i] - 1);
  CHECK(worst <= 4 * 1.2e-7f);
}

TEST_CASE("Gradients whose squares overflow, and NaNs, do the same in vectors as in the reference", "[ops]") {
  for (const float gradient : {1e20f, 1e22f, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> g(16, gradient);
    const float* gradients[] = {g.data()};
    const auto agree = [&](auto arguments, auto state, auto step) {
      std::vector<float> p(16, 1), s(16), t(16), p2 = p, s2 = s, t2 = t;
      arguments.gradients = gradients;
      arguments.gradient_count = 1;
      arguments.end = 16;
      arguments.parameters = p.data();
      state(arguments, s.data(), t.data());
      step(arguments);
      arguments.parameters = p2.data();
      state(arguments, s2.data(), t2.data());
      ops::reference::update(arguments);
      CHECK(std::isnan(p[0]) == std::isnan(p2[0]));
      CHECK((std::isnan(p[0]) || p[0] == Approx(p2[0])));
    };
    ops::AdamArguments<float> adam;
    adam.fresh1 = 0.1f, adam.beta2 = 0.999f, adam.fresh2 = 0.001f, adam.epsilon = 1e-8f, adam.rate = 1e-3f;
    agree(
        adam, [](auto& a, float* s, float* t) { a.first = s, a.second = t; }, [](const auto& a) { ops::adam<Cpu>(a); });
    ops::LionArguments<float> lion;
    lion.lr = 0.1f, lion.fresh1 = 0.1f, lion.fresh2 = 0.01f;
    agree(
        lion, [](auto& a, float* s, float*) { a.momenta = s; }, [](const auto& a) { ops::cpu::lion(a); });
    ops::RmsPropArguments<float> centered;
    centered.lr = 0.1f, centered.alpha = 0.9f, centered.fresh = 0.1f, centered.epsilon = 1e-8f;
    agree(
        centered, [](auto& a, float* s, float* t) { a.square = s, a.average = t; }, [](const auto& a) { ops::cpu::rms_prop(a); });
  }
}

TEST_CASE("An empty range touches nothing", "[ops]") {
  float p[1] = {3}, s[1] = {5};
  const float g[1] = {7};
  const float* gradients[] = {g};
  ops::SgdArguments<float> arguments;
  arguments.parameters = p;
  arguments.gradients = gradients;
  arguments.gradient_count = 1;
  arguments.momenta = s;
  arguments.lr = 1;
  ops::sgd<Cpu>(arguments);
  CHECK(p[0] == 3);
  CHECK(s[0] == 5);
  CHECK(ops::sum_of_squares<Cpu>(static_cast<const ops::UpdateArguments<float>&>(arguments)) == 0);
}

TEST_CASE("The sign in Lion is none of a gradient that is no number: the weight shows it", "[ops]") {
  constexpr int n = 67;  // vectors, and a tail
  const bool vectors = GENERATE(true, false);
  for (const int at : {0, 5, n - 1}) {
    float p[n], s[n] = {}, g[n];
    std::fill(p, p + n, 1.0f), std::fill(g, g + n, -2.0f);
    g[at] = std::numeric_limits<float>::quiet_NaN();
    g[1] = 0;
    const float* gradients[] = {g};
    ops::LionArguments<float> arguments;
    arguments.parameters = p, arguments.gradients = gradients, arguments.gradient_count = 1, arguments.end = n;
    arguments.momenta = s;
    arguments.lr = 0.5f, arguments.fresh1 = 0.1f, arguments.fresh2 = 0.01f;
    if (vectors) ops::cpu::lion(arguments);
    else ops::reference::update(arguments);
    for (int i = 0; i < n; ++i) {
      CAPTURE(i);
      if (i == at) CHECK(std::isnan(p[i]));
      else CHECK(p[i] == (i == 1 ? 1.0f : 1.5f));
    }
  }
}
