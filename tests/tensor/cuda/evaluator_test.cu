// SPDX-License-Identifier: Apache-2.0
// Tensors on a device: where they lie, what crosses to the host and back, and assignments there.
#include <skein/tensor/create.hpp>
#include <skein/tensor/cuda/evaluator.hpp>
#include <skein/tensor/concatenate.hpp>
#include <skein/tensor/npy.hpp>
#include <skein/tensor/npz.hpp>
#include <skein/tensor/print.hpp>

#include <type_traits>

#include <catch2/catch.hpp>
#include "../support.hpp"
#include "temporary_folder.hpp"

using namespace tensor_test;
using sk::range;

namespace {
template <class E> auto values_of(const E& e) { return list(sk::to_host(e)); }
template <class T> concept ReadByHost = requires(T t) { t.begin(); }
|| requires(T t) { t.item(); }
|| requires(T t) { t.span(); };
}  // namespace

TEST_CASE("tensors are made on a device and come back") {
  const sk::Tensor<float, 2, sk::Cuda> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(values_of(a) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(values_of(sk::zeros<float>(sk::Cuda{0}, 2, 2)) == std::vector<float>(4));
  CHECK(values_of(sk::ones<double>(sk::Cuda{}, 3)) == std::vector<double>{1, 1, 1});
  CHECK(values_of(sk::full(sk::dims(3), 7, sk::Cuda{})) == std::vector<int>{7, 7, 7});
  CHECK(values_of(sk::eye<float>(2, sk::Cuda{})) == std::vector<float>{1, 0, 0, 1});
  CHECK(values_of(sk::arange(4L, sk::Cuda{})) == std::vector<long>{0, 1, 2, 3});
  CHECK(values_of(sk::linspace(0.f, 1.f, 5, sk::Cuda{})) == std::vector<float>{0, 0.25, 0.5, 0.75, 1});
  const auto host = values<double>(sk::dims(4, 5), 1);
  CHECK(list(host.to<sk::Cuda>().to<sk::Cpu>()) == list(host));
  CHECK(values_of(host.to<sk::Cuda>().copy()) == list(host));
  CHECK(sk::Tensor<float, 2, sk::Cuda>().to<sk::Cpu>().empty());
  CHECK(a.to<sk::Cpu>().device() == sk::Cpu{});
}

TEST_CASE("a small program on a device") {
  // [quote device]
  const sk::Tensor<float, 2> host{{1, 2, 3}, {4, 5, 6}};
  const sk::Tensor<float, 2, sk::Cuda> a = host.to<sk::Cuda>();  // on GPU 0; .to(sk::Cuda{1}): on the second
  const auto noise = sk::normal<float>(sk::Seed{1}, a.shape(), 0.f, 1.f, 0, sk::Cuda{});
  const sk::Tensor<float, 2, sk::Cuda> b = where(a > 2, a * 0.5f, noise);  // one kernel
  const sk::Tensor<float, 2> back = b.to<sk::Cpu>();
  const float corner = b(1)(sk::range(2, 3)).value();  // one value: waits for the GPU
  // [end]
  CHECK(back(1, 2) == 3);
  CHECK(corner == 3);
  CHECK(back(0, 0) == sk::eval(sk::normal<float>(sk::Seed{1}, sk::dims(2, 3)))(0, 0));
}

TEST_CASE("random fills on a device have the Cpu's values") {
  const sk::Tensor<float, 2, sk::Cuda> u = sk::uniform<float>(sk::Seed{5}, sk::dims(11, 13), -1.f, 3.f, 0, sk::Cuda{});
  CHECK(values_of(u) == list(sk::uniform<float>(sk::Seed{5}, sk::dims(11, 13), -1, 3)));
  const sk::Tensor<double, 1, sk::Cuda> n = sk::normal<double>(sk::Seed{5}, sk::dims(1001), 2., 0.5, 3, sk::Cuda{});
  const auto got = n.to<sk::Cpu>();
  const sk::Tensor<double, 1> expected = sk::normal<double>(sk::Seed{5}, sk::dims(1001), 2, 0.5, 3);
  for (long i = 0; i < 1001; ++i)  // drawn as floats: one of those may round the other way
    REQUIRE(std::abs(got(i) - expected(i)) <= 1.2e-7 * (1 + std::abs(expected(i))));
}

TEST_CASE("each assignment on a device gives what it gives on the Cpu") {
  const auto a = values<float>(sk::dims(7, 24), 1), c = values<float>(sk::dims(7, 1), 3);
  const auto b = values<float>(sk::dims(24), 2);
  const auto x = a.to<sk::Cuda>(), z = c.to<sk::Cuda>();
  const auto y = b.to<sk::Cuda>();
  const auto same = [](const auto& here, const auto& there) {
    const auto h = sk::eval(here);
    const auto t = sk::eval(sk::to_host(there));
    CHECK(h.shape() == t.shape());
    bool near = true;
    for (long i = 0; i < h.size(); ++i) near = near && support::close(h.data()[i], t.data()[i], support::Roundings::function, 4);
    CHECK(near);
  };
  same(where(a > 0.5f, a * b + c, relu(a - 1)), where(x > 0.5f, x * y + z, relu(x - 1)));
  same(sigmoid(a) * tanh(b) + exp(c), sigmoid(x) * tanh(y) + exp(z));
  same(sk::cast<double>(a) / 3, sk::cast<double>(x) / 3);
  same(a(sk::all, range(1, 20, 3)).transpose() * 2, x(sk::all, range(1, 20, 3)).transpose() * 2);
  same(a.reverse(1) + b(range(0, 24)), x.reverse(1) + y(range(0, 24)));
  same(b(sk::all, sk::new_axis) * b, y(sk::all, sk::new_axis) * y);
  same(concatenate(0, a, a * 2, c * b), concatenate(0, x, x * 2, z * y));
  same(stack(1, b, b + 1), stack(1, y, y + 1));
  same(a.reshape(6, 28) - 1, x.reshape(6, 28) - 1);
  auto m = a.copy();
  auto n = x.copy();
  m(range(1, 5), sk::all) += b;
  n(range(1, 5), sk::all) += y;
  m(0) = 3;
  n(0) = 3;
  m *= 2;
  n *= 2;
  same(m, n);
}

TEST_CASE("on a device, too, a target that overlaps its source goes through a temporary") {
  sk::Tensor<int, 1, sk::Cuda> a{1, 2, 3, 4, 5, 6};
  a(range(1, 6)) = a(range(0, 5)) + 0;
  CHECK(values_of(a) == std::vector<int>{1, 1, 2, 3, 4, 5});
  a = a.reverse(0);
  CHECK(values_of(a) == std::vector<int>{5, 4, 3, 2, 1, 1});
  sk::Tensor<float, 2, sk::Cuda> m{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  m = m.transpose();
  CHECK(values_of(m) == std::vector<float>{1, 4, 7, 2, 5, 8, 3, 6, 9});
  sk::Tensor<float, 2, sk::Cuda> none(sk::dims(0, 3));
  none = none * 2 + 1;
  CHECK(none.size() == 0);
}

TEST_CASE("values of a device are read by name only, and shown and saved through the host") {
  using Gpu = sk::Tensor<float, 2, sk::Cuda>;
  static_assert(!ReadByHost<Gpu&> && !ReadByHost<sk::TensorView<float, 1, sk::Cuda>>);
  static_assert(ReadByHost<sk::Tensor<float, 2>&> && ReadByHost<sk::TensorView<float, 1>>);
  static_assert(!std::is_convertible_v<sk::Tensor<float, 0, sk::Cuda>, float>);
  const Gpu a{{1, 2}, {3, 4.5f}};
  CHECK(a(1)(range(1, 2)).value() == 4.5f);
  CHECK(text_of([&] { a.value(); }) == "value: the tensor has shape (2, 2), not one value");
  CHECK(to_text(a) == "[[1, 2],\n [3, 4.5]]");
  CHECK(to_text(a.transpose() * 2, ".1f") == "[[2.0, 6.0],\n [4.0, 9.0]]");
  const support::TemporaryFolder folder;
  const std::string file = folder / "a.npy", archive = folder / "a.npz";
  save_npy(file, a.transpose());
  CHECK(list(sk::load_npy<float, 2>(file)) == std::vector<float>{1, 3, 2, 4.5f});
  CHECK(values_of(sk::load_npy<float, 2>(file).to<sk::Cuda>() + 1) == std::vector<float>{2, 4, 3, 5.5f});
  sk::NpzWriter out(archive);
  out.add("a", a);
  out.close();
  CHECK(list(sk::load_npz(archive).get<float, 2>("a")) == std::vector<float>{1, 2, 3, 4.5f});
}

TEST_CASE("ordinals are kept apart: what mixes them throws, to() goes between them") {
  const sk::cuda::UseDevice first(sk::Cuda{0});
  if (sk::cuda::device_count() < 2) {
    WARN("this takes two GPUs");
    return;
  }
  const sk::Tensor<float, 1, sk::Cuda> a{1, 2, 3};
  const auto b = a.to(sk::Cuda{1});
  CHECK(b.device() == sk::Cuda{1});
  CHECK(values_of(b * 2) == std::vector<float>{2, 4, 6});
  CHECK((b * 2 + 1).device() == sk::Cuda{1});
  CHECK(sk::Tensor<float, 1, sk::Cuda>(b * 2).device() == sk::Cuda{1});
  CHECK(sk::cuda::current_device() == sk::Cuda{0});  // which works on the second, and stays so
  CHECK(values_of(b.to(sk::Cuda{0}) + a) == std::vector<float>{2, 4, 6});
  CHECK(sk::zeros<float>(sk::Cuda{1}, 2).device() == sk::Cuda{1});
  const sk::Tensor<float, 1, sk::Cuda> u = sk::uniform<float>(sk::Seed{1}, sk::dims(4), 0.f, 1.f, 0, sk::Cuda{1});
  CHECK(u.device() == sk::Cuda{1});
  CHECK(text_of([&] { a + b; }) == "elementwise operation: tensors on Cuda 0 and 1 meet: move one of them with .to()");
  sk::Tensor<float, 1, sk::Cuda> target(sk::dims(3));
  CHECK(text_of([&] { target = b * 2; }) ==
        "assignment: the expression is on another ordinal of the device than its target: move it with .to()");
}
