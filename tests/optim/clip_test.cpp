// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include <skein/optim/clip.hpp>

#include "support/apart.hpp"

using namespace skein;

TEST_CASE("ClipNorm is PyTorch's factor, and 1 where it is off", "[optim]") {
  CHECK(optim::ClipNorm{.max_norm = 1}(0.5) == 1.0);
  CHECK(optim::ClipNorm{.max_norm = 1}(4) == Approx(1 / (4 + 1e-6)).epsilon(1e-12));
  CHECK(optim::ClipNorm{}(1e9) == 1.0);
  CHECK_FALSE(optim::ClipNorm{}.active());
  CHECK(optim::ClipNorm{.max_norm = 2}.active());
}

TEST_CASE("The sum of squares is that of the scaled sum over workers, for any range", "[optim]") {
  const long n = 5000;
  for (const int workers : {1, 2, 3}) {
    std::vector<std::vector<float>> gradients(static_cast<std::size_t>(workers));
    std::vector<const float*> pointers;
    for (int w = 0; w < workers; ++w) {
      for (const double v : test::wave(n, 0.3 + w, 0.1, 10))
        gradients[static_cast<std::size_t>(w)].push_back(static_cast<float>(v));
      pointers.push_back(gradients[static_cast<std::size_t>(w)].data());
    }
    optim::UpdateCall<float, Cpu> call;
    call.gradients = pointers.data();
    call.gradient_count = workers;
    call.gradient_scale = 0.25f;
    for (const auto& [begin, end] : {std::pair<long, long>{0, n}, {3, 4999}, {16, 17}, {100, 100}}) {
      call.begin = begin;
      call.end = end;
      double sum = 0;
      for (long i = begin; i < end; ++i) {
        double g = 0;
        for (const float* one : pointers) g += static_cast<double>(one[i]);
        sum += g * g / 16;
      }
      CHECK(test::close<float>(optim::sum_of_squares(call), sum, 16));
    }
    call.begin = 0;
    call.end = n;
    const optim::ParameterGroupRange ranges[] = {{0, 1000}, {1000, 4000, 1, 1, true}, {4000, n}};
    const double with_frozen = optim::sum_of_squares(call),
                 without = optim::sum_of_squares(std::span<const optim::ParameterGroupRange>(ranges), call);
    call.begin = 1000;
    call.end = 4000;
    CHECK(without == Approx(with_frozen - optim::sum_of_squares(call)).epsilon(1e-6));
  }
}

TEST_CASE("The sum of squares keeps its digits over a million elements", "[optim]") {
  const std::vector<float> g(1 << 20, 0.1f);
  const float* gradients[] = {g.data()};
  optim::UpdateCall<float, Cpu> call;
  call.gradients = gradients;
  call.end = 1 << 20;
  const double each = static_cast<double>(0.1f);
  CHECK(optim::sum_of_squares(call) == Approx(each * each * (1 << 20)).epsilon(2e-6));
}

TEST_CASE("The sum of squares of finite gradients is finite where float has no such squares", "[optim]") {
  std::vector<float> g(3000, 0.5f);
  g[70] = 1e20f, g[2900] = -2e30f;
  const float* gradients[] = {g.data()};
  optim::UpdateCall<float, Cpu> call;
  call.gradients = gradients;
  call.end = 3000;
  CHECK(optim::sum_of_squares(call) == Approx(4e60).epsilon(1e-6));
  call.end = 2000;
  CHECK(optim::sum_of_squares(call) == Approx(1e40).epsilon(1e-6));
  g[1000] = std::numeric_limits<float>::infinity();
  CHECK(std::isinf(optim::sum_of_squares(call)));
  g[1000] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(optim::sum_of_squares(call)));
}
