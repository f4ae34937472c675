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
  ops::AdamPass<float> pass;
  pass.gradients = gradients;
  pass.gradient_count = 1;
  pass.end = static_cast<long>(n);
  pass.fresh1 = 0.5f;
  pass.beta2 = 0.5f;
  pass.fresh2 = 0.25f;
  pass.epsilon = 1e-8f;
  pass.rate = 0.1f;
  pass.parameters = p.data(), pass.first = m.data(), pass.second = v.data();
  ops::adam(Cpu{}, pass);
  pass.parameters = p2.data(), pass.first = m2.data(), pass.second = v2.data();
  ops::reference::adam(pass);
  float worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(p[i] / p2[i] - 1));
  CHECK(worst <= 4 * 1.2e-7f);
}

TEST_CASE("An empty range touches nothing", "[ops]") {
  float p[1] = {3}, s[1] = {5};
  const float g[1] = {7};
  const float* gradients[] = {g};
  ops::SgdPass<float> pass;
  pass.parameters = p;
  pass.gradients = gradients;
  pass.gradient_count = 1;
  pass.momenta = s;
  pass.lr = 1;
  ops::sgd(Cpu{}, pass);
  CHECK(p[0] == 3);
  CHECK(s[0] == 5);
  CHECK(ops::sum_of_squares(Cpu{}, static_cast<const ops::UpdatePass<float>&>(pass)) == 0);
}
