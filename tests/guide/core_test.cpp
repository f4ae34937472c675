// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of core, device, plan and autodiff. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <skein/skein.hpp>
#include <skein/autodiff/dual.hpp>

namespace sk = skein;

// [quote shapes]
static_assert(sk::Shape<28, 28, 1>::extents.height() == 28 && sk::Shape<28, 28, 1>::count == 784);
static_assert(sk::row_pitch(3) == 3 && sk::row_pitch(10) == 16 && sk::row_pitch(512) == 528);
static_assert(sk::sample_pitch({3, {5, 5, 16}}) == 400 && sk::sample_pitch({1, {84}}) == 96);
// [end]

// [quote network]
struct GuideMlp : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>> {};
// [end]

TEST_CASE("errors, random numbers, workers", "[guide]") {
  const sk::Tensor<float, 1> a{1, 2, 3}, b{1, 2, 3, 4};
  std::string what;
  // [quote errors]
  try {
    const sk::Tensor<float, 1> sum = a + b;  // (3) and (4)
  } catch (const sk::Error& e) {
    what = e.what();  // what failed, both shapes, what they must be
  }
  // [end]
  CHECK_THAT(what, Catch::Contains("shapes (3) and (4) do not broadcast"));

  // [quote random]
  const std::uint64_t key = sk::random_key(42, 7);                // seed 42, purpose 7
  const float millionth = sk::random_uniform(key, 0, 1'000'000);  // of stream 0, without the values before it
  // [end]
  CHECK(millionth == sk::random_uniform(sk::random_key(42, 7), 0, 1'000'000));
  CHECK((millionth >= 0 && millionth < 1));

  // [quote workers]
  sk::Workers workers{2};
  std::vector<long> part(2);
  long total = 0;
  workers.run([&](sk::Worker& w) {
    const auto [begin, end] = w.slice(1000);  // this worker's share of [0, 1000)
    for (long i = begin; i < end; ++i) part[static_cast<std::size_t>(w.index)] += i;
    w.barrier();
    if (w.index == 0) total = part[0] + part[1];
  });
  // [end]
  CHECK(total == 499'500);
}

TEST_CASE("arenas and spans", "[guide]") {
  // [quote arena]
  sk::Arena<float> arena(1000);                                // zero, aligned to 64 bytes, moves only
  const sk::DeviceSpan<float> head = arena.span().sub(0, 10);  // owns nothing
  head[3] = 1;
  const sk::Arena<float> other = arena.copy();
  // [end]
  CHECK(other.data()[3] == 1);
  CHECK(other.data()[4] == 0);
}

TEST_CASE("a network as data", "[guide]") {
  // [quote plan]
  using Model = sk::Model<GuideMlp, sk::Shape<28, 28, 1>>;
  constexpr sk::plan::Entry weight = Model::parameter("1.weight");  // an unknown name does not compile
  static_assert(weight.extents == sk::Extents{2, {784, 32}} && weight.offset == 0);
  std::vector<sk::plan::Range> order;  // what would be reduced first, second, ...
  sk::plan::for_each_bucket(Model::program.layers(), Model::sizes.stored, 256, [&](sk::plan::Range r) { order.push_back(r); });
  // [end]
  REQUIRE(order.size() == 2);
  CHECK(order[0].end == Model::sizes.stored);
  CHECK(order[1].begin == 0);
  CHECK(order[0].begin == order[1].end);
}

TEST_CASE("dual numbers", "[guide]") {
  // [quote dual]
  const auto swish = [](auto x) { return x * sigmoid(x); };
  const sk::Dual<double> y = swish(sk::Dual<double>(2.0, 1.0));  // at 2, with dx/dx = 1
  // [end]
  const double s = 1 / (1 + std::exp(-2.0));
  CHECK(y.value == Approx(2 * s));
  CHECK(y.derivative == Approx(s + 2 * s * (1 - s)));
}
