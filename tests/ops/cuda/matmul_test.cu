// SPDX-License-Identifier: Apache-2.0
// mm and mv of tensors on the GPU: dense, transposed, cut out and stepped operands, expressions, and what does not fit.
#include <skein/cuda.hpp>

#include <catch2/catch.hpp>

#include "../../support/close.hpp"

namespace sk = skein;
using sk::range;

namespace {
template <class S> sk::Tensor<S, 2> waves(long rows, long columns, double step) {
  sk::Tensor<S, 2> t(sk::dims(rows, columns));
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) t(i, j) = static_cast<S>(std::sin(step * static_cast<double>(i * columns + j + 1)));
  return t;
}
template <class A, class B> long apart(const A& a, const B& b) {
  using S = typename A::Scalar;
  REQUIRE(a.shape() == b.shape());
  long wrong = 0;
  for (long i = 0; i < a.extent(0); ++i)
    for (long j = 0; j < a.extent(1); ++j) wrong += !support::close<S>(a(i, j), b(i, j), support::Roundings::sum, 20);
  return wrong;
}
}  // namespace

TEMPLATE_TEST_CASE("mm on Cuda equals mm on the Cpu for dense, transposed, cut out and stepped operands", "[matmul]", float,
                   double) {
  using S = TestType;
  const auto a = waves<S>(40, 60, 0.7), b = waves<S>(60, 50, 1.1);
  const auto c = a.template to<sk::Cuda>(), d = b.template to<sk::Cuda>();
  const auto check = [&](auto f) { CHECK(apart(f(c, d).template to<sk::Cpu>(), f(a, b)) == 0); };
  check([](const auto& x, const auto& y) { return mm(x, y); });
  check([](const auto& x, const auto& y) { return mm(y.transpose(), x.transpose()); });
  check([](const auto& x, const auto& y) { return mm(x(range(0, 7), range(0, 13)), y(range(0, 13), range(3, 30))); });
  check([](const auto& x, const auto& y) { return mm(y(sk::all, range(0, 20)).transpose(), x(range(5, 9)).transpose()); });
  check([](const auto& x, const auto& y) { return mm(x(range(0, 40, 2), range(0, 60, 3)), y(range(0, 20), range(0, 50, 7))); });
  check([](const auto& x, const auto& y) { return mm(x(range(0, 1)), y(sk::all, range(0, 1))); });
  check([](const auto& x, const auto& y) { return mm(x + S(1), y * S(2)); });
}
TEST_CASE("mm on Cuda: nothing to sum, and what does not fit", "[matmul]") {
  const sk::Tensor<float, 2, sk::Cuda> none(sk::dims(2, 0));
  CHECK(apart(mm(none, none.transpose()).to<sk::Cpu>(), sk::Tensor<float, 2>{{0, 0}, {0, 0}}) == 0);
  const auto a = sk::Tensor<float, 2>{{1, 2}, {3, 4}}.to<sk::Cuda>();
  CHECK_THROWS_WITH(mm(a, none.transpose()), Catch::Contains("do not multiply"));
  const auto y = mv(a, sk::Tensor<float, 1>{1, -1}.to<sk::Cuda>()).to<sk::Cpu>();
  CHECK((y(0) == -1 && y(1) == -1));
}
TEST_CASE("mm on another GPU leaves the current one current", "[matmul]") {
  if (sk::cuda::device_count() < 2) {
    WARN("this takes two GPUs");
    return;
  }
  const sk::cuda::UseDevice first(sk::Cuda{0});
  const auto a = sk::ones<float>(sk::Cuda{1}, 2, 3);
  CHECK(apart(mm(a, a.transpose()).to<sk::Cpu>(), sk::Tensor<float, 2>{{3, 3}, {3, 3}}) == 0);
  CHECK(sk::cuda::current_device() == sk::Cuda{0});
}
