// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/tensor.hpp>

#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;

TEST_CASE("tensors move and never copy by accident; views are trivially copyable") {
  static_assert(!std::is_copy_constructible_v<sk::Tensor<float, 2>> &&
                std::is_nothrow_move_constructible_v<sk::Tensor<float, 2>>);
  static_assert(std::is_trivially_copyable_v<sk::TensorView<float, 3>> &&
                std::is_trivially_copyable_v<sk::TensorView<float, 3, sk::Cuda>>);
  static_assert(std::is_convertible_v<sk::TensorView<float, 1>, sk::TensorView<const float, 1>>);
  static_assert(!std::is_convertible_v<sk::TensorView<const float, 1>, sk::TensorView<float, 1>>);
  sk::Tensor<float, 1> a{1, 2, 3};
  const float* was = a.data();
  sk::Tensor<float, 1> b = std::move(a);
  CHECK(b.data() == was);
  CHECK(a.size() == 0);
  CHECK(a.shape() == sk::dims(0));
  sk::Tensor<float, 2> d{{1, 2, 3}, {4, 5, 6}};
  const sk::Tensor e = std::move(d).reshape(6L);
  CHECK((d.size() == 0 && d.shape() == sk::dims(0, 0) && d.copy().size() == 0));
  d = sk::Tensor<float, 2>{{7, 8}};
  CHECK((d(0, 1) == 8 && e(5) == 6));
  sk::Tensor<float, 1> c = b.copy();
  c(0) = 9;
  CHECK(b(0) == 1);
}

TEMPLATE_TEST_CASE("tensors are made of lists, arrays, vectors and spans", "", float, double, int, std::uint8_t) {
  using S = TestType;
  const std::vector<S> six{1, 2, 3, 4, 5, 6};
  const sk::Tensor<S, 2> lists{{1, 2, 3}, {4, 5, 6}};
  CHECK(lists.shape() == sk::dims(2, 3));
  CHECK(list(lists) == six);
  const S c_array[2][3] = {{1, 2, 3}, {4, 5, 6}};
  CHECK(list(sk::Tensor<S, 2>(c_array)) == six);
  const std::array<std::array<S, 3>, 2> arrays{{{1, 2, 3}, {4, 5, 6}}};
  CHECK(list(sk::Tensor<S, 2>(arrays)) == six);
  CHECK(list(sk::Tensor<S, 1>(six)) == six);
  CHECK(list(sk::Tensor<S, 2>(six, sk::dims(3, 2))) == six);
  const sk::Tensor<S, 3> deep{{{1}, {2}, {3}}, {{4}, {5}, {6}}};
  CHECK(deep.shape() == sk::dims(2, 3, 1));
  CHECK(list(deep) == six);
  const sk::Tensor<S, 2> zero(sk::dims(2, 2));
  CHECK(list(zero) == std::vector<S>(4));
}

TEST_CASE("what does not make a tensor says why") {
  using T = sk::Tensor<float, 2>;
  CHECK(text_of([] {
          T t{{1, 2}, {3}};
        }) == "Tensor: a nested list has 1 entries along axis 1, the first one there has 2: lists must be rectangular");
  CHECK(text_of([] {
          T t(std::vector<float>{1, 2, 3}, sk::dims(2, 2));
        }) == "Tensor: shapes (3) and (2, 2) differ in their number of values");
  CHECK(text_of([] { T t(sk::dims(-1, 2)); }).find("(-1, 2) is no shape") != std::string::npos);
  CHECK(text_of([] { T t(sk::dims(1L << 40, 1L << 40)); }).find("their product fits the memory") != std::string::npos);
}

TEST_CASE("assignment writes into the memory that is there; an empty tensor takes on the extents") {
  sk::Tensor<float, 2> a{{1, 2}, {3, 4}}, b{{5, 6}, {7, 8}}, empty;
  const float* was = a.data();
  a = b;
  CHECK(a.data() == was);
  CHECK(list(a) == std::vector<float>{5, 6, 7, 8});
  a = a + b(0);
  CHECK(list(a) == std::vector<float>{10, 12, 12, 14});
  a = 3;
  CHECK(list(a) == std::vector<float>{3, 3, 3, 3});
  empty = a * 2;
  CHECK(empty.shape() == sk::dims(2, 2));
  CHECK(list(empty) == std::vector<float>{6, 6, 6, 6});
  CHECK(text_of([&] {
          a = sk::Tensor<float, 1>{1, 2, 3} * 2;
        }) ==
        "assignment: shapes (3) and (2, 2) differ: the left is that of the expression, and does not broadcast to its target");
  a += b;
  a -= 1;
  a *= b;
  a /= 2;
  CHECK(list(a) == std::vector<float>{17.5, 24, 31.5, 40});
}

TEST_CASE("a number that whole ones cannot hold is not assigned as another") {
  sk::Tensor<int, 1> a{1, 2, 3};
  CHECK(
      text_of([&] { a = 2.5; }) ==
      "assignment: the number 2.5 is written to a tensor of whole numbers whose type cannot hold it: round it, or take a tensor "
      "of another scalar type");
  for (const double x : {0.5, 1e300, static_cast<double>(NAN)}) CHECK_THROWS_AS(a(sk::range(1)) = x, sk::ArgumentError);
  sk::Tensor<std::uint8_t, 1> bytes{1, 2};
  CHECK_THROWS_AS(bytes = 300, sk::ArgumentError);
  CHECK_THROWS_AS(bytes.view().assign(-1), sk::ArgumentError);
  sk::Tensor<bool, 1> mask{true, false};
  CHECK_THROWS_AS(mask = 2, sk::ArgumentError);
  a = 4.0;
  bytes = 255L;
  mask = 1;
  CHECK(list(a) == std::vector<int>{4, 4, 4});
  CHECK((bytes(1) == 255 && mask(1)));
}

TEST_CASE("a tensor made of an expression has its extents, scalar and device") {
  const sk::Tensor<double, 2> a{{1, 2}, {3, 4}};
  sk::Tensor b = a * 2 + 1;
  static_assert(std::is_same_v<decltype(b), sk::Tensor<double, 2, sk::Cpu>>);
  CHECK(list(b) == std::vector<double>{3, 5, 7, 9});
  const sk::Tensor<double, 3> higher = a;
  CHECK(higher.shape() == sk::dims(1, 2, 2));
  static_assert(std::is_same_v<decltype(sk::eval(a > 2)), sk::Tensor<bool, 2, sk::Cpu>>);
}

TEST_CASE("an expression owns what came as an rvalue") {
  const auto make = [](float x) { return sk::Tensor<float, 1>{x, x + 1}; };
  auto e = make(1) * 2 + make(10);
  auto f = e + e;                             // copies of a tree share what it owns
  const std::vector<float> waste(1000, 7.f);  // memory that is likely reused
  CHECK(list(e) == std::vector<float>{12, 15});
  CHECK(list(f) == std::vector<float>{24, 30});
  const auto reshaped = make(3).reshape(2, 1);
  static_assert(std::is_same_v<decltype(reshaped), const sk::Tensor<float, 2, sk::Cpu>>);
  CHECK(list(reshaped) == std::vector<float>{3, 4});
  auto row = sk::Tensor<float, 2>{{1, 2}, {3, 4}}(1);  // a slice of a temporary is a tensor of its own
  static_assert(std::is_same_v<decltype(row), sk::Tensor<float, 1, sk::Cpu>>);
  CHECK(list(row) == std::vector<float>{3, 4});
}

TEST_CASE("to() brings the same values to a device") {
  const sk::Tensor<float, 2> a{{1, 2}, {3, 4}};
  const auto b = a.to<sk::Cpu>();
  CHECK(b.data() != a.data());
  CHECK(list(b) == list(a));
}

TEST_CASE("to_host() is what it is given on the host, and of a temporary its values") {
  using T = sk::Tensor<double, 1>;
  using View = sk::TensorView<double, 1>;
  static_assert(std::is_same_v<decltype(sk::to_host(std::declval<T&>())), T&> &&
                std::is_same_v<decltype(sk::to_host(std::declval<const T&>())), const T&>);
  static_assert(std::is_same_v<decltype(sk::to_host(std::declval<T>())), T> &&
                std::is_same_v<decltype(sk::to_host(std::declval<const T>())), T> &&
                std::is_same_v<decltype(sk::to_host(std::declval<const View>())), View>);
  T a{1, 2};
  const double* memory = a.data();
  CHECK(sk::to_host(a).data() == memory);
  const T b{3, 4};
  const auto&& copied = sk::to_host(std::move(b));
  CHECK((copied(1) == 4 && b(1) == 4));
  const auto&& sum = sk::to_host(a + b);
  CHECK(T(sum)(1) == 6);
  const auto&& moved = sk::to_host(std::move(a));
  CHECK((moved.data() == memory && moved(1) == 2 && a.empty()));
}

/// Is it neither a reference nor a view?
template <class T> inline constexpr bool owns = !std::is_reference_v<T> && !sk::detail::IsView<std::remove_cvref_t<T>>::value;
TEST_CASE("a temporary tensor gives no views and no references") {
  const auto none = []<class X>(X*) {
    static_assert(owns<decltype(std::declval<X>()(0L, sk::all))> && owns<decltype(std::declval<X>()(0L, 0L))>);
    static_assert(owns<decltype(std::declval<X>()[0])> && owns<decltype(std::declval<X>().shape())>);
    static_assert(owns<decltype(std::declval<X>().transpose())> && owns<decltype(std::declval<X>().permute(1, 0))>);
    static_assert(owns<decltype(std::declval<X>().reverse(0))> && owns<decltype(std::declval<X>().diagonal())>);
    static_assert(owns<decltype(std::declval<X>().reshape(4))> && owns<decltype(std::declval<X>().flatten())>);
    static_assert(
        !requires { std::declval<X>().view(); } && !requires { std::declval<X>().span(); });
  };
  none(static_cast<sk::Tensor<float, 2>*>(nullptr));
  none(static_cast<const sk::Tensor<float, 2>*>(nullptr));
  const sk::Tensor<float, 2> a{{1, 2}, {3, 4}};
  CHECK((std::move(a).reshape(4)(3) == 4 && std::move(a).flatten()(2) == 3 && std::move(a).transpose()(0, 1) == 3));
  CHECK((std::move(a)(1, sk::all)(0) == 3 && a(1, 1) == 4));  // copies
}

TEST_CASE("a tensor of rank 0 that was moved from says so") {
  sk::Tensor<float, 0> from;
  from = 3.f;
  const sk::Tensor<float, 0> to(std::move(from));
  CHECK(to.item() == 3);
  CHECK(text_of([&] { static_cast<void>(from.item()); }) == "this tensor was moved from, and has no value: assign one first");
  from = 4.f;
  CHECK(from.item() == 4);
}

TEST_CASE("a tensor of rank 0 is a value") {
  sk::Tensor<float, 0> t;
  t = 4;
  CHECK(t() == 4);
  const float x = t;
  CHECK(x == 4);
  const sk::Tensor<float, 0> taken = std::move(t);
  t = 2;  // a value again
  CHECK((taken() == 4 && t() == 2));
  CHECK(text_of([] { sk::Tensor<float, 1>{1, 2}.item(); }) == "item: the tensor has shape (2), not one value");
}
