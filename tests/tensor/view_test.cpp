// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/view.hpp>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;
using sk::all;
using sk::new_axis;
using sk::range;

namespace {
sk::Tensor<int, 2> ramp(long rows, long columns) {
  sk::Tensor<int, 2> t(sk::dims(rows, columns));
  int i = 0;
  for (int& x : t) x = i++;
  return t;
}
}  // namespace

TEST_CASE("slices are views of the same memory") {
  auto a = ramp(4, 5);
  CHECK(a(2, 3) == 13);
  CHECK(list(a(1)) == std::vector<int>{5, 6, 7, 8, 9});
  CHECK(list(a(all, 2)) == std::vector<int>{2, 7, 12, 17});
  CHECK(list(a(range(1, 3), range(0, 5, 2))) == std::vector<int>{5, 7, 9, 10, 12, 14});
  CHECK(list(a(range(-1))) == std::vector<int>{15, 16, 17, 18, 19});
  CHECK(list(a(-1, range(0, -3))) == std::vector<int>{15, 16});
  CHECK(a(range(2, 2)).shape() == sk::dims(0, 5));
  CHECK(list(a(range(1, 3, LONG_MAX), range(0, 5, LONG_MAX))) == std::vector<int>{5});  // a step beyond all of them
  CHECK(a(range(4)).shape() == sk::dims(0, 5));
  CHECK(a(0)(all, new_axis).shape() == sk::dims(5, 1));
  CHECK(a(new_axis, all, 1).shape() == sk::dims(1, 4));
  CHECK(a[3][4] == 19);
  a(1) = 7;
  CHECK(a(1, 4) == 7);
  a(all, range(0, 2)) = a(all, range(3, 5));
  CHECK(list(a(0)) == std::vector<int>{3, 4, 2, 3, 4});
  a(0) += a(2);
  CHECK(a(0, 2) == 14);
}

TEST_CASE("a slice of nothing takes no step from a pointer to nothing") {
  const sk::Tensor<float, 2> none(sk::dims(0, 4));
  CHECK(none(all, range(1)).data == none.data());
  CHECK(none.view().reverse(1)(all, range(2)).data == none.data());
}

TEST_CASE("a slice outside says which index, axis and shape") {
  auto a = ramp(4, 5);
  CHECK(text_of([&] { a(range(0, 2), 5); }) == "slice: index 5 is outside of axis 1 of shape (4, 5)");
  CHECK(text_of([&] { a(-5); }) == "slice: index -5 is outside of axis 0 of shape (4, 5)");
  CHECK(text_of([&] { a(range(0, 9)); }) == "slice: index 9 is outside of axis 0 of shape (4, 5)");
  CHECK(text_of([&] { a(range(3, 0, -1)); }) == "slice: step -1: steps are positive, reverse() turns an axis round");
}

TEST_CASE("transposes, permutations, reversals and diagonals are views") {
  auto a = ramp(2, 3);
  CHECK(list(a.transpose()) == std::vector<int>{0, 3, 1, 4, 2, 5});
  CHECK(list(a.transpose().transpose()) == list(a));
  CHECK(list(a.reverse(1)) == std::vector<int>{2, 1, 0, 5, 4, 3});
  CHECK(list(a.reverse(-2)) == std::vector<int>{3, 4, 5, 0, 1, 2});
  CHECK(list(a.diagonal()) == std::vector<int>{0, 4});
  sk::Tensor<int, 3> b(sk::dims(2, 3, 4));
  int i = 0;
  for (int& x : b) x = i++;
  const auto p = b.permute(2, 0, 1);
  CHECK(p.shape() == sk::dims(4, 2, 3));
  for (int x = 0; x < 2; ++x)
    for (int y = 0; y < 3; ++y)
      for (int z = 0; z < 4; ++z) CHECK(p(z, x, y) == b(x, y, z));
  CHECK(text_of([&] { b.permute(0, 0, 1); }) == "permute: axis 0 is named twice");
  CHECK(text_of([&] { b.permute(0, 1, 3); }).find("permute: axis 3 of a tensor of rank 3") == 0);
}

TEST_CASE("reshape shares memory, or says why it cannot") {
  auto a = ramp(4, 6);
  CHECK(a.reshape(3, 8)(2, 7) == 23);
  CHECK(a.reshape(-1, 2).shape() == sk::dims(12, 2));
  CHECK(a.flatten().data == a.data());
  a.reshape(24)(0) = 99;
  CHECK(a(0, 0) == 99);
  CHECK(text_of([&] { a.reshape(5, 5); }) == "reshape: shapes (4, 6) and (5, 5) differ in their number of values");
  CHECK(text_of([&] { a.reshape(-1, 5); }).find("differ in their number of values") != std::string::npos);
  CHECK(text_of([&] { a.reshape(-1, -1); }) == "reshape: only one extent may be -1");
  CHECK(text_of([&] { a.reshape(-4, -6); }) == "reshape: an extent is -4: only -1, whatever is left, is negative");
  CHECK(text_of([&] { ramp(0, 3).reshape(0, -1); }) == "reshape: beside an extent of 0 none can be -1: any would do");
  CHECK(ramp(0, 3).reshape(-1, 3).shape() == sk::dims(0, 3));
  CHECK_THROWS_AS(ramp(0, 3).reshape(1L << 32, 1L << 32), sk::ShapeError);  // their product is 0 in 64 bits
  CHECK(text_of([&] { a.transpose().flatten(); }).find("the view has gaps or another order, copy() it first") !=
        std::string::npos);
  CHECK(a(sk::range(1, 3)).contiguous());
  CHECK_FALSE(a(all, range(0, 3)).contiguous());
}

TEST_CASE("named views are re-seated, views of memory are made by hand") {
  auto a = ramp(2, 3);
  auto v = a(0);
  v = a(1);
  CHECK(v(0) == 3);
  CHECK(a(0, 0) == 0);
  std::vector<float> memory(24, 1.f);
  const sk::TensorView<float, 2> padded{memory.data(), {3, 5}, {8, 1}};
  padded.assign(2);
  CHECK(memory[4] == 2);
  CHECK(memory[5] == 1);  // gaps stay as they are
  CHECK(memory[8] == 2);
  CHECK(memory[23] == 1);
  CHECK(sk::view_of(memory.data(), 4, 6)(1, 2) == 2);
}
