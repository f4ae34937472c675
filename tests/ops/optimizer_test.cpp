// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <algorithm>
#include <cmath>
#include <vector>

#include <skein/ops/optimizer.hpp>

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
  ops::adam(Cpu{}, arguments);
  arguments.parameters = p2.data(), arguments.first = m2.data(), arguments.second = v2.data();
  ops::reference::adam(arguments);
  float worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(p[i] / p2[i] - 1));
  CHECK(worst <= 4 * 1.2e-7f);
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
  ops::sgd(Cpu{}, arguments);
  CHECK(p[0] == 3);
  CHECK(s[0] == 5);
  CHECK(ops::sum_of_squares(Cpu{}, static_cast<const ops::UpdateArguments<float>&>(arguments)) == 0);
}
