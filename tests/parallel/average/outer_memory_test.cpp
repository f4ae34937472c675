// SPDX-License-Identifier: Apache-2.0
#include "skein/parallel/average/outer_memory.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <vector>

#include <skein/optim/adam.hpp>

namespace sk = skein;
using Memory = sk::parallel::detail::OuterMemory<sk::optim::Sgd, double, sk::Cpu>;

TEST_CASE("an outer optimizer steps from the anchor towards the mean, a part at a time", "[parallel]") {
  const sk::optim::Sgd sgd{.lr = 0.5f, .momentum = 0.75f};
  Memory memory(sgd, 32, {});
  std::vector<double> begun(32), sum(32), anchor, momentum(32);
  for (std::size_t i = 0; i < 32; ++i)
    begun[i] = static_cast<double>(i), sum[i] = 2 * (begun[i] - 1 - 0.25 * static_cast<double>(i % 3));
  memory.set_anchor(begun.data());
  anchor = begun;
  for (std::int64_t number = 1; number <= 2; ++number)
    for (const sk::plan::Range part : {sk::plan::Range{0, 16}, sk::plan::Range{16, 32}}) {
      memory.step(part, sum.data() + part.begin, 0.5, number);
      for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i) {
        momentum[i] = 0.75 * momentum[i] + (anchor[i] - 0.5 * sum[i]);
        anchor[i] -= 0.5 * momentum[i];
      }
    }
  for (std::size_t i = 0; i < 32; ++i) CHECK(memory.anchor()[i] == Approx(anchor[i]).margin(1e-12).epsilon(0));
}

TEST_CASE("an outer optimizer's array that is not finite is named, an anchor of a frozen parameter is not", "[parallel]") {
  sk::parallel::detail::OuterMemory<sk::optim::Adam, float, sk::Cpu> memory(sk::optim::Adam{.lr = 0.1f}, 32, {});
  std::vector<float> begun(32, 1.0f), sum(32, 1.0f);
  begun[20] = -std::numeric_limits<float>::infinity();
  sum[3] = 1e22f;  // its square is not finite
  memory.set_anchor(begun.data());
  memory.step({8, 16}, sum.data() + 8, 1, 1);
  CHECK(memory.not_finite().empty());
  memory.step({0, 8}, sum.data(), 1, 1);
  CHECK(memory.not_finite() == "array 1 of the outer optimizer (DiLoCo) is not finite");
  CHECK(sk::parallel::detail::OuterMemory<sk::parallel::PlainAverage, float, sk::Cpu>({}, 32, {}).not_finite().empty());
}

TEST_CASE("an outer optimizer's memory goes into a file and comes back, not into that of another model", "[parallel]") {
  const sk::optim::Sgd sgd{.lr = 0.5f, .momentum = 0.75f};
  const std::vector<double> begun(16, 3.0), sum(16, 1.0);
  Memory memory(sgd, 16, {}), other(sgd, 16, {}), larger(sgd, 32, {});
  memory.set_anchor(begun.data());
  memory.step({0, 16}, sum.data(), 1, 1);
  const auto saved = memory.saved();
  REQUIRE(saved.size() == 2);  // the anchor and the momentum
  REQUIRE(other.load(saved));
  memory.step({0, 16}, sum.data(), 1, 2);
  other.step({0, 16}, sum.data(), 1, 2);
  CHECK(memory.saved() == other.saved());
  CHECK_FALSE(larger.load(saved));
  CHECK_FALSE(memory.load({saved[0]}));
  sk::parallel::detail::OuterMemory<sk::parallel::PlainAverage, double, sk::Cpu> none({}, 16, {});
  CHECK(none.saved().empty());
  CHECK_FALSE(none.load(saved));
}
