// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/reduce.hpp>
#include <skein/xtensor.hpp>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include <catch2/catch.hpp>
#include "tensor/support.hpp"

using namespace tensor_test;

TEST_CASE("a tensor is an xtensor expression without a copy, and is written through it") {
  sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};
  auto x = sk::as_xtensor(a);
  CHECK(x.data() == a.data());
  CHECK(x(1, 2) == 6);
  x(0, 0) = 10;
  CHECK(a(0, 0) == 10);
  const auto column = sk::as_xtensor(a(sk::all, 1));  // strided
  CHECK(xt::sum(column)() == 7);
  CHECK(sk::as_xtensor(a.transpose())(2, 1) == 6);
  const auto& constant = a;
  CHECK(xt::sum(sk::as_xtensor(constant))() == 30);
  xt::view(x, 1, xt::all()) = 0;
  CHECK(list(a(1)) == std::vector<float>{0, 0, 0});
  CHECK(text_of([&] { sk::as_xtensor(a.reverse(0)); }) == "as_xtensor: the view runs backwards along axis 0: copy() it first");
}

TEST_CASE("any xtensor expression assigns into a tensor") {
  sk::Tensor<double, 2> a{{1, 2}, {3, 4}};
  const double* was = a.data();
  const xt::xtensor<double, 2> x{{5, 6}, {7, 8}};
  a = x * 2 + sk::as_xtensor(a);
  CHECK(a.data() == was);
  CHECK(list(a) == std::vector<double>{11, 14, 17, 20});
  a = xt::transpose(sk::as_xtensor(a));  // reads what it writes
  CHECK(list(a) == std::vector<double>{11, 17, 14, 20});
  a = xt::xtensor<double, 1>{1, 2};  // broadcast
  CHECK(list(a) == std::vector<double>{1, 2, 1, 2});
  a.transpose().assign(x);
  CHECK(list(a) == std::vector<double>{5, 7, 6, 8});
  const sk::Tensor<double, 1> made(xt::arange<double>(0, 3) + 1);
  CHECK(list(made) == std::vector<double>{1, 2, 3});
  const sk::Tensor<double, 2> dynamic(xt::xarray<double>{{1, 2}});
  CHECK(dynamic.shape() == sk::dims(1, 2));
  CHECK(text_of([&] { a = xt::xtensor<double, 1>{1, 2, 3}; }).find("assignment: shapes (3) and (2, 2) differ") == 0);
  CHECK(text_of([] {
          sk::Tensor<double, 2> t(xt::xarray<double>{1, 2});
        }) == "Tensor: an xtensor expression of rank 1 does not make a tensor of rank 2");
}

TEST_CASE("an xtensor container is a view without a copy") {
  xt::xtensor<float, 2> x{{1, 2, 3}, {4, 5, 6}};
  const auto v = sk::from_xtensor<2>(x);
  CHECK(v.data == x.data());
  v(sk::all, 0) = 9;
  CHECK(x(1, 0) == 9);
  xt::xtensor<float, 2, xt::layout_type::column_major> y = x;
  CHECK(list(sk::from_xtensor<2>(y)) == list(v));
  CHECK(sum(sk::from_xtensor<2>(y) * v) == sum(v * v));
  CHECK(text_of([&] { sk::from_xtensor<1>(x); }) == "from_xtensor: the array has rank 2, rank 1 was asked for");
}

TEST_CASE("what is written through a view with gaps stays within the view") {
  const auto after = [](auto write) {
    sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};
    auto x = sk::as_xtensor(a(sk::all, sk::range(0, 3, 2)));  // the first and the last column
    write(x);
    return list(a);
  };
  using List = std::vector<float>;
  CHECK(after([](auto& x) { x += 10; }) == List{11, 2, 13, 14, 5, 16});
  CHECK(after([](auto& x) { x = x * 2; }) == List{2, 2, 6, 8, 5, 12});
  CHECK(after([](auto& x) { xt::noalias(x) = x + 10; }) == List{11, 2, 13, 14, 5, 16});
  CHECK(after([](auto& x) { x.fill(0); }) == List{0, 2, 0, 0, 5, 0});
  CHECK(after([](auto& x) { x = xt::broadcast(7.f, x.shape()); }) == List{7, 2, 7, 7, 5, 7});
  sk::Tensor<float, 2> none(sk::dims(0, 3));
  CHECK(xt::sum(sk::as_xtensor(none(sk::all, sk::range(0, 2))))() == 0);
}
