// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/evaluate.hpp>

#include <numeric>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;
using sk::all;
using sk::new_axis;
using sk::range;

TEST_CASE("the bound tree is trivially copyable: a kernel can take it") {
  const sk::Tensor<float, 2> a{{1, 2}, {3, 4}};
  const auto e = where(a > 1, relu(a * 2.f + a(0)), 0.f) + sk::Tensor<float, 1>{1, 2};
  static_assert(std::is_trivially_copyable_v<decltype(e.bind(e.shape()))>);
  CHECK(list(e) == std::vector<float>{1, 8, 8, 12});
}

TEST_CASE("broadcasting follows NumPy's rule") {
  const auto m = values<double>(sk::dims(4, 5), 1);
  const auto b = values<double>(sk::dims(3, 1, 5), 2);
  const auto r = values<double>(sk::dims(5), 3);
  const auto c = values<double>(sk::dims(4, 1), 4);
  const sk::Tensor<double, 3> out(m * b + r - c);
  CHECK(out.shape() == sk::dims(3, 4, 5));
  for (long i = 0; i < 3; ++i)
    for (long j = 0; j < 4; ++j)
      for (long k = 0; k < 5; ++k)
        CHECK(support::close(out(i, j, k), m(j, k) * b(i, 0, k) + r(k) - c(j, 0), support::Roundings::arithmetic, 8));
  const sk::Tensor<double, 2> outer(r(all, new_axis) * r);
  CHECK(outer(3, 2) == r(3) * r(2));
  CHECK(text_of([&] {
          m + sk::Tensor<double, 1>{1, 2, 3};
        }) ==
        "elementwise operation: shapes (4, 5) and (3) do not broadcast: aligned at the last extent, they must be equal or 1");
}

TEST_CASE("assignments through every layout equal the naive loop") {
  // target and sources in all 6 orders of 3 axes, padded, reversed and stepped
  const auto source = values<float>(sk::dims(5, 6, 19), 1);
  const auto other = values<float>(sk::dims(6, 19), 2);
  sk::Tensor<float, 3> memory(sk::dims(19, 19, 19));
  const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& o : orders)
    for (long step : {1L, 2L}) {
      long inverse[3];
      for (int i = 0; i < 3; ++i) inverse[o[i]] = i;
      const long e[3] = {5, 6, step == 1 ? 19 : 9};
      const auto block = memory(range(0, e[o[0]]), range(0, e[o[1]]), range(0, e[o[2]]));
      const auto to = block.permute(inverse[0], inverse[1], inverse[2]);  // extents 5, 6, e[2] in another order of memory
      const auto a = source(all, all, range(0, step * e[2], step)).reverse(1);
      const auto b = other(all, range(0, e[2]));
      memory = -1000;
      to.assign(a * 2 + b);
      for (long i = 0; i < 5; ++i)
        for (long j = 0; j < 6; ++j)
          for (long k = 0; k < e[2]; ++k)
            REQUIRE(support::close(to(i, j, k), source(i, 5 - j, k * step) * 2 + other(j, k), support::Roundings::arithmetic, 4));
      long untouched = 0;
      for (float x : memory) untouched += x == -1000;
      CHECK(untouched == 19 * 19 * 19 - 5 * 6 * e[2]);
    }
}

TEST_CASE("dense operands of any rank collapse to one row, padded rows to two axes") {
  const auto a = values<float>(sk::dims(2, 3, 4, 5), 1);
  sk::Tensor<float, 4> b(a.shape());
  const auto rank_of = [&](const auto& to, const auto& e) {
    sk::detail::Loop<4> loop{to.extents, to.strides};
    auto bound = e.template bind<4>(to.extents);
    sk::detail::sort_axes(loop, bound);
    sk::detail::collapse(loop, bound);
    CHECK(loop.extents.count() == to.size());
    return loop.rank;
  };
  CHECK(rank_of(b.view(), a.view()) == 1);
  CHECK(rank_of(b.view(), a * 2 + a) == 1);
  CHECK(rank_of(b.view(), a + sk::Tensor<float, 1>{1, 2, 3, 4, 5}) == 2);
  CHECK(rank_of(b.view().transpose(), a.view().transpose()) == 1);
  CHECK(rank_of(b(all, all, all, range(0, 3)), a(all, all, all, range(0, 3))) == 2);
  CHECK(rank_of(b(all, all, range(0, 2)), a(all, all, range(0, 2))) == 2);
}

TEST_CASE("a target that overlaps its source in another order goes through a temporary") {
  sk::Tensor<int, 1> a{1, 2, 3, 4, 5, 6};
  a(range(1, 6)) = a(range(0, 5)) + 0;
  CHECK(list(a) == std::vector<int>{1, 1, 2, 3, 4, 5});
  a(range(0, 5)) = a(range(1, 6));
  CHECK(list(a) == std::vector<int>{1, 2, 3, 4, 5, 5});
  a = a.reverse(0);
  CHECK(list(a) == std::vector<int>{5, 5, 4, 3, 2, 1});
  sk::Tensor<float, 2> m{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  m = m.transpose();
  CHECK(list(m) == std::vector<float>{1, 4, 7, 2, 5, 8, 3, 6, 9});
  m = m + m(0) + m(all, range(0, 1));  // a row and a column of the target itself, broadcast
  CHECK(list(m) == std::vector<float>{3, 9, 15, 5, 11, 17, 7, 13, 19});
  m = m * 2 - m;  // the same values in the same order: no temporary is needed
  CHECK(m(2, 2) == 19);
}

TEST_CASE("workers write disjoint slices of one assignment") {
  for (int count : {1, 2, 3, 5}) {
    sk::Workers workers(count);
    const auto a = values<float>(sk::dims(37, 50), 1);
    const auto row = values<float>(sk::dims(50), 2);
    sk::Tensor<float, 2> b(a.shape()), c(a.shape());
    const sk::Tensor<float, 2> expected(exp(a) + row), flat(a * 3);
    workers.run([&](sk::Worker& w) {
      assign(b.view(), exp(a) + row, w);
      assign(c.view(), a * 3, w);
    });
    CHECK(list(b) == list(expected));
    CHECK(list(c) == list(flat));
    if (count > 1)
      CHECK(text_of([&] {
              workers.run([&](sk::Worker& w) { assign(b.view(), b.reverse(0), w); });
            }).find("assign to a tensor of its own") != std::string::npos);
  }
}

TEST_CASE("empty tensors are assigned without harm") {
  sk::Tensor<float, 2> none(sk::dims(0, 3));
  none.view().assign(none * 2 + 1);
  none.view().assign(5);
  CHECK(none.size() == 0);
  const sk::Tensor<float, 2> made(none + 1);
  CHECK(made.shape() == sk::dims(0, 3));
}
