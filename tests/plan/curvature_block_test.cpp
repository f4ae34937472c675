// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/curvature_block.hpp>

#include <catch2/catch.hpp>
#include <skein/nn/recurrent.hpp>

namespace sk = skein;
namespace plan = skein::plan;

TEST_CASE("A block has two Kronecker factors, or a small matrix for each column") {
  constexpr plan::FactorSizes kronecker{5, 3}, units{2, 7, true};
  static_assert(kronecker.values() == 25 + 9 && kronecker.triangles() == 15 + 6);
  static_assert(kronecker.division_cost() == 5 * 3 * (5 + 3));
  static_assert(units.values() == 7 * 4 && units.triangles() == 7 * 3);
  static_assert(units.division_cost() == 7 * 2 * 2 && units.factor(true).values() == 0);
}

TEST_CASE("Of factors of more than four times as many rows, eigenvectors are kept, else whole inverses") {
  constexpr plan::FactorSizes both{9, 8}, units{9, 7, true};
  constexpr plan::InverseForm whole{}, eigen{.eigenvalues = true}, two{.rank = 2};
  static_assert(whole.values(both, false) == 81 && whole.values(both, true) == 64 && whole.values(units, false) == 7 * 81);
  static_assert(eigen.values(both, false) == 90 && eigen.matrix_values(both, false) == 81);
  static_assert(eigen.values(units, false) == 7 * 81 && eigen.values(units, true) == 0);
  static_assert(two.eigenvectors(both, false) == 2 && two.values(both, false) == 2 * 9 + 1 && two.values(both, true) == 64);
  static_assert(two.values(units, false) == 7 * 81 && !two.whole(both) && two.whole(units) && whole.whole(both));
  static_assert(whole.cost(both, false) == 729 && whole.cost(units, false) == 7 * 729 && whole.cost(units, true) == 0);
  static_assert(two.cost(both, false) == 3 * 81 * 2 && two.cost(both, true) == 512);
  static_assert(whole.division_cost(both) == 9 * 8 * (9 + 8) && two.division_cost(both) == 9 * 8 * (4 + 8));
}

TEST_CASE("The two blocks of a Gru have all rows of its weights and biases, each once") {
  constexpr sk::LayerInfo i = sk::nn::Gru<2>::describe({2, {4, 3}});
  constexpr long pitch = sk::row_pitch(6);
  int seen[7] = {};
  for (const plan::CurvatureBlock& b : i.curvature) {
    for (long row = 0; row + 1 < b.a; ++row) ++seen[b.begin / pitch + row];
    ++seen[b.last_row / pitch];
    CHECK(b.g == 6);
  }
  for (const int times : seen) CHECK(times == 1);
  CHECK(i.stored_parameters() == 7 * pitch);
}
