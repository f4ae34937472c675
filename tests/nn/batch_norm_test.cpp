// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include <skein/nn/batch_norm.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/apart.hpp"
#include "support/layer_harness.hpp"
#include "support/thrown.hpp"

using skein::Shape;
using skein::nn::BatchNorm;
using support::LayerHarness;

namespace {
using Fixture = BatchNorm<skein::Epsilon<1, 1000>, skein::Momentum<1, 5>>;

template <class Harness> void set_parameters(Harness& h) {
  h.set_parameter(0, [](long i) { return 1 + 0.3 * support::wave(i, 0.5); });
  h.set_parameter(1, [](long i) { return support::wave(i, 0.8); });
}
template <class Harness>
std::vector<double> logical(Harness&, const support::Guarded<typename Harness::Scalar>& a, long count, long pitch) {
  std::vector<double> values;
  for (long b = 0; b < a.size() / pitch; ++b)
    for (long i = 0; i < count; ++i) values.push_back(static_cast<double>(a[b * pitch + i]));
  return values;
}
template <class Harness> std::vector<double> gradient(Harness& h, int p) {
  std::vector<double> values;
  for (long i = 0; i < Harness::parameter_size(p); ++i) values.push_back(static_cast<double>(h.gradient_at(p, i)));
  return values;
}
template <class Harness> std::vector<double> buffer(Harness& h, int p, long channels) {
  std::vector<double> values;
  for (long c = 0; c < channels; ++c) values.push_back(static_cast<double>(h.buffers[p * skein::row_pitch(channels) + c]));
  return values;
}

// Two steps of training, then evaluation: as make_norm_loss_optim.py does.
template <class In, class Scalar> void follows(long batch, int workers, const std::vector<double>& y,
                                               const std::vector<double>& dx, const std::vector<double>& dweight,
                                               const std::vector<double>& dbias, const std::vector<double>& mean,
                                               const std::vector<double>& variance, const std::vector<double>& eval_y,
                                               const std::vector<double>& eval_dx, const std::vector<double>& eval_dweight) {
  LayerHarness<Fixture, In, Scalar> h(batch, workers);
  set_parameters(h);
  h.set_dy([](long b, long i) { return support::wave(b * In::count + i, 1.3); });
  for (int k = 0; k < 2; ++k) {
    h.set_x([k](long b, long i) { return 2 * support::wave(b * In::count + i, 0.7 + k, 0.1) + 1; });
    h.forward();
    h.backward();
  }
  constexpr double c = std::is_same_v<Scalar, double> ? 256 : 32;
  CHECK(test::first_apart<Scalar>(logical(h, h.y, In::count, h.out_pitch), y, c) == -1);
  CHECK(test::first_apart<Scalar>(logical(h, h.dx, In::count, h.in_pitch), dx, c) == -1);
  CHECK(test::first_apart<Scalar>(gradient(h, 0), dweight, c) == -1);
  CHECK(test::first_apart<Scalar>(gradient(h, 1), dbias, c) == -1);
  CHECK(test::first_apart<Scalar>(buffer(h, 0, In::extents.last()), mean, c) == -1);
  CHECK(test::first_apart<Scalar>(buffer(h, 1, In::extents.last()), variance, c) == -1);
  h.context.phase = skein::nn::Phase::evaluation;
  h.forward();
  h.backward();
  CHECK(test::first_apart<Scalar>(logical(h, h.y, In::count, h.out_pitch), eval_y, c) == -1);
  CHECK(test::first_apart<Scalar>(logical(h, h.dx, In::count, h.in_pitch), eval_dx, c) == -1);
  CHECK(test::first_apart<Scalar>(gradient(h, 0), eval_dweight, c) == -1);
  CHECK(test::first_apart<Scalar>(buffer(h, 0, In::extents.last()), mean, c) == -1);  // evaluation leaves them
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}
}  // namespace

TEST_CASE("BatchNorm says what it needs", "[nn]") {
  constexpr auto info = BatchNorm<>::describe({3, {8, 8, 6}});
  STATIC_REQUIRE(info.output == skein::Extents{3, {8, 8, 6}});
  STATIC_REQUIRE(info.parameter_count() == 12);
  STATIC_REQUIRE(info.couples_batch);
  STATIC_REQUIRE(info.saves_input);
  STATIC_REQUIRE_FALSE(info.parameters[0].decay);
  STATIC_REQUIRE_FALSE(info.parameters[1].decay);
  STATIC_REQUIRE(info.buffer_entries() == 2);
  STATIC_REQUIRE(info.buffers[1].init == skein::Init::ones);
}

TEST_CASE("BatchNorm follows PyTorch: two steps, running statistics, evaluation; by any number of workers", "[nn]") {
  for (const int workers : {1, 2, 3}) {
    follows<Shape<5>, double>(7, workers, fixtures::bn_flat_y, fixtures::bn_flat_dx, fixtures::bn_flat_dweight,
                              fixtures::bn_flat_dbias, fixtures::bn_flat_mean, fixtures::bn_flat_var, fixtures::bn_flat_eval_y,
                              fixtures::bn_flat_eval_dx, fixtures::bn_flat_eval_dweight);
    follows<Shape<5>, float>(7, workers, fixtures::bn_flat_y, fixtures::bn_flat_dx, fixtures::bn_flat_dweight,
                             fixtures::bn_flat_dbias, fixtures::bn_flat_mean, fixtures::bn_flat_var, fixtures::bn_flat_eval_y,
                             fixtures::bn_flat_eval_dx, fixtures::bn_flat_eval_dweight);
    follows<Shape<2, 3, 3>, double>(3, workers, fixtures::bn_image_y, fixtures::bn_image_dx, fixtures::bn_image_dweight,
                                    fixtures::bn_image_dbias, fixtures::bn_image_mean, fixtures::bn_image_var,
                                    fixtures::bn_image_eval_y, fixtures::bn_image_eval_dx, fixtures::bn_image_eval_dweight);
    follows<Shape<2, 3, 3>, float>(3, workers, fixtures::bn_image_y, fixtures::bn_image_dx, fixtures::bn_image_dweight,
                                   fixtures::bn_image_dbias, fixtures::bn_image_mean, fixtures::bn_image_var,
                                   fixtures::bn_image_eval_y, fixtures::bn_image_eval_dx, fixtures::bn_image_eval_dweight);
  }
}

TEST_CASE("BatchNorm's gradients agree with finite differences", "[nn]") {
  const auto check = [](auto h) {
    set_parameters(h);
    h.check_gradients(1e-5);
    h.context.phase = skein::nn::Phase::evaluation;
    for (long i = 0; i < h.buffers.size() / 2; ++i) h.buffers[i] = 0.3;
    h.check_gradients(1e-5);
  };
  check(LayerHarness<BatchNorm<>, Shape<5>>(6, 2));
  check(LayerHarness<BatchNorm<>, Shape<16>>(5));
  check(LayerHarness<BatchNorm<>, Shape<2, 2, 6>>(5, 3));
  check(LayerHarness<BatchNorm<>, Shape<3, 3, 1>>(4));
  check(LayerHarness<BatchNorm<>, Shape<2, 3, 20>>(3, 2));
  check(LayerHarness<BatchNorm<>, Shape<4, 3>>(4));
}

TEST_CASE("BatchNorm keeps its digits far from zero", "[nn]") {
  LayerHarness<BatchNorm<>, Shape<4, 4, 3>, float> h(16, 2);
  h.set_x([](long b, long i) { return 1000 + static_cast<double>((b * 48 + i) * 37 % 64) / 64; });
  h.forward();
  double sum = 0, square = 0;
  for (long b = 0; b < 16; ++b)
    for (long i = 1; i < 48; i += 3) {
      sum += static_cast<double>(h.y_at(b, i));
      square += static_cast<double>(h.y_at(b, i)) * static_cast<double>(h.y_at(b, i));
    }
  CHECK(std::abs(sum / 256) < 1e-4);
  CHECK(square / 256 == Approx(1).epsilon(1e-3));
}

TEST_CASE("BatchNorm in double has its variance at a mean of 1e8 deviations", "[nn]") {
  LayerHarness<BatchNorm<>, Shape<5>, double> h(12, 2), near(12, 2);
  const auto x = [](long b, long i) { return static_cast<double>((b * 5 + i) * 37 % 64) / 64; };  // and 1e8: exact
  near.set_x(x);
  h.set_x([&](long b, long i) { return 1e8 + x(b, i); });
  for (auto* one : {&h, &near}) one->forward(), one->backward();
  for (long b = 0; b < 12; ++b)
    for (long i = 0; i < 5; ++i) {
      CHECK(h.y_at(b, i) == Approx(near.y_at(b, i)).margin(1e-6).epsilon(0));
      CHECK(h.dx_at(b, i) == Approx(near.dx_at(b, i)).margin(1e-6).epsilon(0));
    }
}

TEST_CASE("BatchNorm's statistics are those of all ranks where a policy sums them", "[nn]") {
  struct Twin {  // a second rank with the same data
    static void sum(void* calls, double* values, long n) {
      ++*static_cast<int*>(calls);
      for (long i = 0; i < n; ++i) values[i] *= 2;
    }
    static void shifted(void*, double* values, long n) { values[0] += static_cast<double>(n); }
  };
  LayerHarness<BatchNorm<>, Shape<5>> alone(6, 2), with(6, 2), other(6, 2);
  int calls = 0;
  with.context.statistics_hook = Twin::sum;
  with.context.hook = &calls;
  other.context.statistics_hook = Twin::shifted;
  for (auto* h : {&alone, &with, &other}) {
    h->forward();
    h->backward();
  }
  CHECK(calls == 3);  // forward, for doubles about the mean once more, and backward
  for (long i = 0; i < 5; ++i) CHECK(with.y_at(3, i) == Approx(alone.y_at(3, i)));
  for (long i = 0; i < 5; ++i) CHECK(with.dx_at(3, i) == Approx(alone.dx_at(3, i)));
  CHECK(other.y_at(3, 0) != Approx(alone.y_at(3, 0)));
}

TEST_CASE("Each option of BatchNorm changes something, and gaps behind samples are written as zeros", "[nn]") {
  LayerHarness<BatchNorm<>, Shape<5>> base(6);
  LayerHarness<BatchNorm<skein::Epsilon<1, 10>>, Shape<5>> wide(6);
  LayerHarness<BatchNorm<skein::Momentum<1, 2>>, Shape<5>> quick(6);
  base.forward();
  wide.forward();
  quick.forward();
  CHECK(std::abs(wide.y_at(0, 0)) < std::abs(base.y_at(0, 0)));
  CHECK(quick.y_at(0, 0) == base.y_at(0, 0));
  CHECK(quick.buffers[0] == Approx(5 * base.buffers[0]));
  for (long i = 5; i < 8; ++i) CHECK(base.y_at(2, i) == 0);
}

TEST_CASE("BatchNorm takes a batch with fewer samples than workers", "[nn]") {
  LayerHarness<BatchNorm<>, Shape<2, 2, 3>> one(2, 1), many(2, 4);
  for (auto* h : {&one, &many}) {
    h->forward();
    h->backward();
  }
  for (long i = 0; i < 12; ++i) CHECK(many.y_at(1, i) == Approx(one.y_at(1, i)));
  for (long i = 0; i < 12; ++i) CHECK(many.dx_at(1, i) == Approx(one.dx_at(1, i)));
}

TEST_CASE("BatchNorm's running statistics stay where a rank's batch has no samples", "[nn]") {
  LayerHarness<BatchNorm<>, Shape<5>> none(0, 1), of_two(0, 2);
  for (auto* h : {&none, &of_two}) {
    h->buffers.fill(0.3);
    h->forward();
    h->backward();
    for (const int of : {0, 1}) CHECK(buffer(*h, of, 5) == std::vector<double>(5, 0.3));  // mean and variance
  }
}

TEST_CASE("BatchNorm trains on no batch with one value of each channel, as in PyTorch", "[nn]") {
  LayerHarness<BatchNorm<>, Shape<5>> flat(1, 1), of_two(1, 2);
  for (auto* h : {&flat, &of_two}) {
    CHECK(support::thrown<skein::ArgumentError>([&] {
            h->forward();
          }).find("layer 3 (BatchNorm of 5 channels) trains on a batch of 1 sample") != std::string::npos);
    h->context.phase = skein::nn::Phase::evaluation;
    CHECK_NOTHROW(h->forward());
    h->context.phase = skein::nn::Phase::training;
    h->context.statistics_hook = [](void*, double*, long) {};  // other ranks have samples too
    CHECK_NOTHROW(h->forward());
  }
  LayerHarness<BatchNorm<>, Shape<1, 1, 5>> pixel(1, 1);
  CHECK(!support::thrown<skein::ArgumentError>([&] { pixel.forward(); }).empty());
  LayerHarness<BatchNorm<>, Shape<2, 1, 5>> image(1, 1);
  CHECK_NOTHROW(image.forward());
}

namespace {
/// Columns c and c + 5 have the same values.
template <class In, class Scalar> LayerHarness<BatchNorm<>, In, Scalar> of_five_kinds(int workers) {
  LayerHarness<BatchNorm<>, In, Scalar> h(7, workers);
  h.set_parameter(0, [](long i) { return 1 + 0.3 * support::wave(i % 5, 0.5); });
  h.set_parameter(1, [](long i) { return support::wave(i % 5, 0.8); });
  h.set_x([](long b, long i) { return 2 * support::wave(b * 5 + i % 5, 0.7, 0.1) + 1; });
  h.set_dy([](long b, long i) { return support::wave(b * 5 + i % 5, 1.3); });
  h.forward();
  h.backward();
  return h;
}
template <class Scalar> void columns_are_those_of_few(int workers) {
  auto few = of_five_kinds<Shape<5>, Scalar>(workers);
  auto many = of_five_kinds<Shape<10000>, Scalar>(workers);
  const Scalar tolerance = 256 * std::numeric_limits<Scalar>::epsilon();
  for (const long i : {0L, 2L, 4999L, 8193L, 9999L})
    for (long b = 0; b < 7; ++b) {
      CHECK(std::abs(many.y_at(b, i) - few.y_at(b, i % 5)) < tolerance);
      CHECK(std::abs(many.dx_at(b, i) - few.dx_at(b, i % 5)) < tolerance);
    }
  CHECK(many.intact());
}
}  // namespace

TEST_CASE("BatchNorm of more columns than stand on the stack is that of each column", "[nn]") {
  for (const int workers : {1, 2}) {
    columns_are_those_of_few<float>(workers);
    columns_are_those_of_few<double>(workers);
  }
}
