// SPDX-License-Identifier: Apache-2.0
// The gradient check for users: right layers and networks pass, and each wrong gradient is named.
#include <catch2/catch.hpp>

#include <cstdio>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/check_gradients.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/tanh.hpp>

#include "../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using namespace sk::literals;

namespace {
struct HalfScale : own_layers::Scale {  // half of the parameter's gradient
  static void backward(auto& f) {
    f.gradient("scale"_p) += sum_leading(0.5 * f.dy() * f.x());
    f.dx() = f.dy() * f.parameter("scale"_p);
  }
};
struct NoInput : own_layers::Scale {  // a dx that forgets the factor
  static void backward(auto& f) {
    f.gradient("scale"_p) += sum_leading(f.dy() * f.x());
    f.dx() = f.dy();
  }
};
struct NoOutput : own_layers::Scale {
  static void forward(auto&) {}
};
struct NoInputGradient : own_layers::Scale {
  static void backward(auto& f) { f.gradient("scale"_p) += sum_leading(f.dy() * f.x()); }
};
struct NoParameterGradient : own_layers::Scale {
  static void backward(auto& f) { f.dx() = f.dy() * f.parameter("scale"_p); }
};
template <class L> using Net = nn::Sequential<nn::Linear<6>, L, nn::Tanh>;
}  // namespace

TEST_CASE("Layers and networks whose gradients are right pass the check", "[nn]") {
  for (const auto& check :
       {sk::check_gradients<own_layers::Scale, sk::Shape<7>>(), sk::check_gradients<own_layers::Squash, sk::Shape<3, 5>>(),
        sk::check_gradients<nn::Linear<9>, sk::Shape<20>>({.batch = 5}),
        sk::check_gradients<Net<nn::BatchNorm<>>, sk::Shape<4>>({.batch = 6}),
        sk::check_gradients<nn::Recompute<nn::Linear<4>>, sk::Shape<7>>(),
        sk::check_gradients<nn::Sequential<nn::Recompute<Net<nn::BatchNorm<>>>, nn::Recompute<Net<nn::Tanh>>>, sk::Shape<4>>(),
        sk::check_gradients<nn::Sequential<nn::Conv2d<3, sk::Kernel<3>>, nn::Flatten, nn::Linear<2>>, sk::Shape<6, 5, 2>>()}) {
    INFO(check.text());
    CHECK(check);
    CHECK(check.tried > 0);
    CHECK(check.worst < 1e-6);
    CHECK(check.text().find("agree with finite differences") != std::string::npos);
  }
}

TEST_CASE("A wrong gradient is named, with both values", "[nn]") {
  // [quote check]
  const auto half = sk::check_gradients<HalfScale, sk::Shape<7>>();
  if (!half) std::fputs(half.text().c_str(), stderr);  // parameter "scale"[4]: backward says -0.56, ...
  // [end]
  REQUIRE(half.disagreements.size() == 1);
  CHECK(!half);
  CHECK(half.disagreements[0].where.substr(0, 17) == "parameter \"scale\"");
  CHECK(half.disagreements[0].gradient == Approx(half.disagreements[0].difference / 2));
  CHECK(half.disagreements[0].wrong == 7);

  const auto input = sk::check_gradients<Net<NoInput>, sk::Shape<4>>();
  REQUIRE(input.disagreements.size() == 3);  // all that is before it: the weight, the bias, the input
  CHECK(input.disagreements[0].where.substr(0, 20) == "parameter \"0.weight\"");
  CHECK(input.disagreements[2].where.substr(0, 6) == "input ");
  CHECK(input.text().find("backward says") != std::string::npos);
}

TEST_CASE("A layer that does not write what it must is named, within a network too", "[nn]") {
  const auto output = sk::check_gradients<Net<NoOutput>, sk::Shape<4>>();
  CHECK(!output);
  CHECK(output.text().find("NoOutput: forward does not write its output (value 0 of sample 0): assign it, f.y() = ...") !=
        std::string::npos);
  const auto input = sk::check_gradients<Net<NoInputGradient>, sk::Shape<4>>();
  CHECK(input.text().find("NoInputGradient: backward does not write the gradient of its input (value 0 of sample 0)") !=
        std::string::npos);
  const auto parameter = sk::check_gradients<Net<NoParameterGradient>, sk::Shape<4>>();
  if (SKEIN_CHECKED) {
    CHECK(parameter.text().find("backward adds nothing to the gradient of its parameter 'scale'") != std::string::npos);
  } else {
    REQUIRE(parameter.disagreements.size() == 1);
    CHECK(parameter.text().find("parameter \"1.scale\"") != std::string::npos);
    CHECK(parameter.text().find("backward says 0 in all of them, as if it added nothing to this gradient") != std::string::npos);
  }
}

TEST_CASE("A check has the tolerance, the step and the seed that it is given", "[nn]") {
  const auto half = [](const sk::GradientCheckOptions& o) { return sk::check_gradients<HalfScale, sk::Shape<7>>(o); };
  CHECK(!half({.tolerance = 0.9 * half({}).worst}));
  CHECK(half({.tolerance = 1.1 * half({}).worst}));
  const auto tanh = [](double step) { return sk::check_gradients<nn::Tanh, sk::Shape<7>>({.step = step}); };
  CHECK(tanh(1e-4).worst < 1e-7);
  CHECK(!tanh(0.5));  // a chord is no tangent
  const auto found = [&](std::uint64_t seed) { return half({.seed = sk::Seed{seed}}).disagreements[0].difference; };
  CHECK(found(1) == half({}).disagreements[0].difference);
  CHECK(found(2) != found(1));
}

TEST_CASE("A check that tries no value finds nothing right", "[nn]") {
  for (const sk::GradientCheckOptions& none :
       {sk::GradientCheckOptions{.batch = 0}, sk::GradientCheckOptions{.most = 0}, sk::GradientCheckOptions{.step = 0}})
    CHECK_THROWS_WITH((sk::check_gradients<HalfScale, sk::Shape<7>>(none)), Catch::Contains(".batch and .most are at least 1"));
}
