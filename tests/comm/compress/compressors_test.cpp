// SPDX-License-Identifier: Apache-2.0
// Each compressor's contract: bytes, linearity, the error of a round trip.
#include <skein/comm/compress/error_feedback.hpp>
#include <skein/comm/compress/compressed_collectives.hpp>
#include <skein/comm/compress/half_codec.hpp>
#include <skein/comm/compress/int8_codec.hpp>
#include <skein/comm/compress/power_sgd.hpp>
#include <skein/comm/compress/top_k.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "../../support/larger.hpp"

namespace sk = skein;
using namespace skein::comm;

static_assert(LinearCompressor<HalfCodec<sk::bf16>> && LinearCompressor<HalfCodec<sk::fp16>> && LinearCompressor<PowerSgd<2>>);
static_assert(Compressor<Int8Codec<>> && !LinearCompressor<Int8Codec<>> && Compressor<TopK<10>> && !LinearCompressor<TopK<10>>);
static_assert(LinearCompressor<ErrorFeedback<HalfCodec<sk::bf16>>> && !LinearCompressor<ErrorFeedback<TopK<10>>>);
static_assert(!Compressor<int> && !Compressor<sk::Sum>);
static_assert(wire_bytes(HalfCodec<sk::bf16>{}, 1000) == 2000 && wire_bytes(HalfCodec<sk::fp16>{}, 7) == 14);
static_assert(wire_bytes(Int8Codec<256>{}, 1000) == 1000 + 4 * 4 && wire_bytes(Int8Codec<100>{}, 0) == 0);
static_assert(PowerSgd<2>(0).rows(1000) == 32 && PowerSgd<2>(0).columns(1000) == 32 && PowerSgd<4>(0, 10).columns(1000) == 100);

namespace {
std::vector<float> normals(std::size_t n, std::uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}
template <class C> std::vector<float> round_trip(C&& c, std::vector<float> v) {
  compress_in_place(c, v);
  return v;
}
double norm(const std::vector<float>& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0, std::plus<>(),
                                      [](float a, float b) { return double(a) * double(b); }));
}
std::vector<float> minus(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}
}  // namespace

TEST_CASE("16-bit wires are within half a unit in the last place, and exact where they can be") {
  const std::vector<float> v = normals(5000, 1, 10);
  const std::vector<float> b = round_trip(HalfCodec<sk::bf16>{}, v), h = round_trip(HalfCodec<sk::fp16>{}, v),
                           f = round_trip(HalfCodec<float>{}, v);
  bool rounds = false;
  for (std::size_t i = 0; i < v.size(); ++i) {
    CHECK(std::abs(b[i] - v[i]) <= std::abs(v[i]) * 0x1p-8f);
    CHECK(std::abs(h[i] - v[i]) <= std::max(std::abs(v[i]), 0x1p-14f) * 0x1p-11f);
    rounds = rounds || (b[i] != v[i] && h[i] != v[i]);
  }
  CHECK(rounds);
  CHECK(f == v);
  const std::vector<float> whole{-3, 0, 1, 100, 0.5f};
  CHECK(round_trip(HalfCodec<sk::bf16>{}, whole) == whole);
}

TEST_CASE("8-bit values are within half a scale of their block") {
  for (const std::size_t n : {1ul, 63ul, 64ul, 65ul, 1000ul}) {
    std::vector<float> v = normals(n, 2);
    for (std::size_t i = 0; i < n; ++i) v[i] *= i < 64 ? 1e-3f : 1e3f;  // blocks of other sizes do not disturb each other
    const std::vector<float> d = round_trip(Int8Codec<64>{}, v);
    for (std::size_t at = 0; at < n; at += 64) {
      float largest = 0;
      for (std::size_t i = at; i < std::min(n, at + 64); ++i) largest = std::max(largest, std::abs(v[i]));
      for (std::size_t i = at; i < std::min(n, at + 64); ++i) CHECK(std::abs(d[i] - v[i]) <= largest / 254 * 1.0001f);
    }
  }
  CHECK(round_trip(Int8Codec<4>{}, {0, 0, 0}) == std::vector<float>{0, 0, 0});
  CHECK(round_trip(Int8Codec<4>{}, {127, -127, 1, 0}) == std::vector<float>{127, -127, 1, 0});
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> bad = round_trip(Int8Codec<2>{}, {1, inf, 3, 3, NAN, 0});
  CHECK((std::isnan(bad[0]) && std::isnan(bad[1]) && std::isnan(bad[4])));
  CHECK(bad[2] == 3);
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(std::abs(round_trip(Int8Codec<2>{}, {tiny, 0})[0]) <= 200 * tiny);
}

TEST_CASE("top-k keeps the largest, the first of equals, and nothing else") {
  CHECK(round_trip(TopK<3>{}, {1, -5, 2, 4, 0, -1}) == std::vector<float>{0, -5, 0, 4, 0, 0});
  CHECK(round_trip(TopK<2>{}, {1, -1, 1, 1}) == std::vector<float>{1, -1, 0, 0});
  CHECK(round_trip(TopK<1>{}, {1, -1, 7}) == std::vector<float>{1, -1, 7});
  CHECK(round_trip(TopK<100>{}, {1, 2, 3}) == std::vector<float>{0, 0, 3});
  CHECK(round_trip(TopK<4>{}, {}).empty());
  CHECK(std::isnan(round_trip(TopK<4>{}, {9, NAN, 3, 2})[1]));
  CHECK(wire_bytes(TopK<10>{}, 1001) == 101 * 8);
  // What is left out is the smaller part: at most (1 - k / n) of the squares.
  const std::vector<float> v = normals(1000, 3);
  CHECK(norm(minus(v, round_trip(TopK<4>{}, v))) <= std::sqrt(0.75) * norm(v));
  std::vector<TopK<4>::Element> wire{{5, 1.0f}};
  std::vector<float> four(4);
  CHECK_THROWS_WITH(TopK<4>{}.decode(wire, four), "TopK: place 5 of 4 values has come: the wire is damaged");
}

TEST_CASE("PowerSGD gives back what has its rank, and comes near to the best approximation of what has not") {
  const std::size_t rows = 20, columns = 30;
  const std::vector<float> a = normals(rows * 2, 4), b = normals(columns * 2, 5);
  std::vector<float> m(rows * columns), steep(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) m[i * columns + j] = 3 * a[2 * i] * b[2 * j] + a[2 * i + 1] * b[2 * j + 1];
  CHECK(norm(minus(m, round_trip(PowerSgd<2>(7, rows), m))) < 1e-5 * norm(m));
  CHECK(norm(minus(m, round_trip(PowerSgd<3>(7, rows), m))) < 1e-4 * norm(m));  // one column too many is no harm
  for (std::size_t i = 0; i < rows; ++i)                                        // columns of P that are nearly parallel
    for (std::size_t j = 0; j < columns; ++j) steep[i * columns + j] = a[2 * i] * b[2 * j] + 1e-4f * a[2 * i + 1] * b[2 * j + 1];
  CHECK(norm(minus(steep, round_trip(PowerSgd<2>(7, rows), steep))) < 2e-6 * norm(steep));
  PowerSgd<1> one(7, rows);
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {  // a power iteration a call
    const double error = norm(minus(m, round_trip(one, m)));
    if (step == 0) first = error;
    last = error;
  }
  CHECK(last < first);
  CHECK(last < 0.7 * norm(m));
  CHECK(norm(minus(m, round_trip(one, m))) == Approx(last).epsilon(1e-3));  // converged
  CHECK(wire_bytes(PowerSgd<2>(7, rows), m.size()) == 4 * 2 * (rows + columns));
  CHECK(round_trip(PowerSgd<2>(), std::vector<float>(10)) == std::vector<float>(10));
  CHECK(round_trip(PowerSgd<2>(), {}).empty());
  std::vector<float> other(5);
  CHECK_THROWS_WITH(compress_in_place(one, other),
                    Catch::Contains("one object serves one range of values; it has had 600 values, and gets 5"));
  for (const std::size_t n : {1ul, 2ul, 5ul, 17ul, 1001ul}) {  // ragged ends
    const std::vector<float> v(n, 2.0f);
    const PowerSgd<1> shape;
    CHECK(shape.rows(n) * shape.columns(n) >= n);
    CHECK(round_trip(PowerSgd<2>(), v).size() == n);
  }
}

TEST_CASE("PowerSgd: after a gradient that is zero, or of a small rank, later ones are sent as before") {
  const std::size_t rows = 24, columns = 16;
  const std::vector<float> a = normals(rows * 2, 4), b = normals(columns * 2, 5);
  std::vector<float> two(rows * columns), one(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      one[i * columns + j] = a[2 * i + 1] * b[2 * j + 1];
      two[i * columns + j] = 3 * a[2 * i] * b[2 * j] + one[i * columns + j];
    }
  for (const std::vector<float>& before : {std::vector<float>(rows * columns), one}) {
    PowerSgd<2> c(7, rows);
    (void)round_trip(c, before);
    CHECK(norm(minus(two, round_trip(c, two))) < 1e-4 * norm(two));
  }
  PowerSgd<2> loaded(7, rows);
  loaded.remember(std::vector<float>(2 * columns), rows * columns);  // saved before its first step
  CHECK(norm(minus(two, round_trip(loaded, two))) < 1e-4 * norm(two));
}

TEST_CASE("linear means: what was encoded apart may be added") {
  const std::vector<float> a = normals(400, 6), b = normals(400, 7);
  std::vector<float> sum(400);
  for (std::size_t i = 0; i < 400; ++i) sum[i] = a[i] + b[i];
  PowerSgd<2> x(1), y(1), z(1);
  std::vector<float> wire_x(40), wire_y(40), wire_z(40);
  for (int round = 0; round < 2; ++round) {
    x.encode(a, wire_x, round);
    y.encode(b, wire_y, round);
    z.encode(sum, wire_z, round);
    for (std::size_t i = 0; i < 40; ++i) {
      CHECK(wire_x[i] + wire_y[i] == Approx(wire_z[i]).margin(1e-3));
      wire_x[i] += wire_y[i];
    }
    x.take(wire_x, round);
    y.take(wire_x, round);
    z.take(wire_z, round);
  }
}

namespace {
/// Sum of all that was decoded + residual = sum of inputs, after every step.
template <class C> void feedback_law(C compressor, double bound, bool needs_feedback) {
  INFO(C::name);
  ErrorFeedback<C> with{compressor};
  C without = compressor;
  const std::size_t n = 900;
  std::vector<double> inputs(n), said(n), said_without(n);
  const std::vector<float> constant = normals(n, 11);
  for (int step = 0; step < 60; ++step) {
    std::vector<float> v = normals(n, 100 + static_cast<std::uint32_t>(step), 0.3f);
    for (std::size_t i = 0; i < n; ++i) inputs[i] += v[i] += constant[i];
    std::vector<float> w = v;
    compress_in_place(with, v);
    compress_in_place(without, w);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      said[i] += v[i];
      said_without[i] += w[i];
      worst = support::larger(worst, said[i] + with.residual()[i] - inputs[i]);
    }
    CHECK(worst < bound);
  }
  double error = 0, error_without = 0, size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    error += std::pow(said[i] - inputs[i], 2);
    error_without += std::pow(said_without[i] - inputs[i], 2);
    size += std::pow(inputs[i], 2);
  }
  CHECK(error < 0.5 * error_without);  // its effect
  if (needs_feedback) CHECK(error < 0.1 * size);
  with.reset();
  CHECK(std::all_of(with.residual().begin(), with.residual().end(), [](float x) { return x == 0; }));
}
}  // namespace

TEST_CASE("error feedback: what was decoded and what is kept add up to what came in") {
  feedback_law(HalfCodec<sk::bf16>{}, 1e-4, false);
  feedback_law(HalfCodec<sk::fp16>{}, 1e-4, false);
  feedback_law(Int8Codec<64>{}, 1e-4, false);
  feedback_law(TopK<10>{}, 2e-4, true);
  feedback_law(PowerSgd<4>{3}, 2e-3, true);
}

namespace {
/// After one call with a NaN and an infinity, everything is finite again, and the last 20 calls say 20 times what is given, but
/// for what they keep: `apart` of the norm of what is given.
template <class C> void forgets_what_is_not_finite(C compressor, double apart) {
  INFO(C::name);
  ErrorFeedback<C> with{compressor};
  const std::vector<float> good = normals(400, 21);
  std::vector<float> said(400), wanted(400);
  for (int step = 0; step < 40; ++step) {
    std::vector<float> v = good;
    if (step == 3) v[17] = NAN, v[250] = std::numeric_limits<float>::infinity();
    compress_in_place(with, v);
    CHECK(std::all_of(with.residual().begin(), with.residual().end(), [](float x) { return std::isfinite(x); }));
    if (step > 3) CHECK(std::all_of(v.begin(), v.end(), [](float x) { return std::isfinite(x); }));
    for (std::size_t i = 0; step >= 20 && i < 400; ++i) {
      said[i] += v[i];
      wanted[i] += good[i];
    }
  }
  CHECK(norm(minus(said, wanted)) < apart * norm(good));
  CHECK(norm({with.residual().begin(), with.residual().end()}) < 2 * apart * norm(good));
}
}  // namespace

TEST_CASE("error feedback keeps no NaN: the step after one that was left out is sound again") {
  forgets_what_is_not_finite(HalfCodec<sk::bf16>{}, 0.01);
  forgets_what_is_not_finite(Int8Codec<64>{}, 0.02);
  forgets_what_is_not_finite(TopK<10>{}, 4);
  forgets_what_is_not_finite(PowerSgd<4>{3}, 4);
}

TEST_CASE("blocks of 8-bit integers: the largest finite values stay finite, the smallest become zero") {
  const auto round_trip = [](std::vector<float> values) {
    sk::comm::Int8Codec<4> codec;
    sk::comm::compress_in_place(codec, std::span<float>(values));
    return values;
  };
  const float most = std::numeric_limits<float>::max();
  for (float x = most; x > most * 0.9999999f * 0.999999f; x = std::nextafter(x, 0.0f)) {
    const std::vector<float> came = round_trip({x, -x, 0, x / 2});
    REQUIRE((std::isfinite(came[0]) && std::isfinite(came[1])));
    REQUIRE(std::abs(came[0] - x) <= x / 127 / 2);
    REQUIRE(std::abs(came[3] - x / 2) <= x / 127 * 0.5001f);
  }
  CHECK(round_trip({3e-37f, -3e-37f, 1e-45f, 0}) == std::vector<float>(4, 0.0f));
  CHECK(round_trip({4e-37f, 0, 0, 0})[0] == Approx(4e-37f));
}
