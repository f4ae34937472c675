// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/copy_weights.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
struct Critic : nn::Sequential<nn::Linear<5>, nn::BatchNorm<>, nn::Relu, nn::Linear<1>> {};
struct Judged : nn::Sequential<nn::Linear<3>, Critic> {};  // a generator in front
using CriticModel = sk::Model<Critic, sk::Shape<3>>;
using JudgedModel = sk::Model<Judged, sk::Shape<2>>;

template <class Model> std::vector<float> all(const Model& m) {
  std::vector<float> values(m.parameters().begin(), m.parameters().end());
  values.insert(values.end(), m.buffers().begin(), m.buffers().end());
  return values;
}
void change_statistics(CriticModel& model) {
  for (const sk::plan::Entry& e : CriticModel::program.buffers())
    for (long i = 0; i < e.extents.count(); ++i) model.buffers().data[e.offset + i] = 0.5f + static_cast<float>(e.offset + i);
}
}  // namespace

TEST_CASE("Weights and statistics go to a model of the same network, and to a part of another one and back", "[nn]") {
  CriticModel critic{sk::Seed{1}}, target{sk::Seed{2}};
  change_statistics(critic);
  const auto version = target.version();
  sk::copy_weights(critic, target);
  CHECK(all(target) == all(critic));
  CHECK(target.version() > version);  // copies that kernels read are made anew

  JudgedModel judged{sk::Seed{3}}, untouched{sk::Seed{3}};
  sk::copy_weights(critic, judged, {.to = "1."});
  constexpr auto front = JudgedModel::parameter("0.weight"), own = JudgedModel::parameter("1.3.bias"),
                 its = CriticModel::parameter("3.bias");
  CHECK(judged.parameters()[front.offset + 1] == untouched.parameters()[front.offset + 1]);
  CHECK(judged.parameters()[own.offset] == critic.parameters()[its.offset]);
  CriticModel back{sk::Seed{4}};
  sk::copy_weights(judged, back, {.from = "1."});
  CHECK(all(back) == all(critic));

  auto same = critic.with_input<sk::Shape<3>>();  // the same weights
  CHECK_NOTHROW(sk::copy_weights(critic, same));
}

TEST_CASE("copy_weights copies one part of a model to another part of it", "[nn]") {
  sk::Model<nn::Sequential<nn::Linear<3>, nn::Relu, nn::Linear<3>, nn::Relu>, sk::Shape<3>> twins{sk::Seed{1}},
      before{sk::Seed{1}};
  const auto half = twins.parameters().size / 2;
  const auto version = twins.version();
  sk::copy_weights(twins, twins, {.from = "0.", .to = "2."});
  CHECK(twins.version() > version);
  for (std::size_t i = 0; i < half; ++i) {
    CHECK(twins.parameters()[i] == before.parameters()[i]);
    CHECK(twins.parameters()[half + i] == before.parameters()[i]);
  }
}

TEST_CASE("copy_weights refuses names and sizes without a partner, and changes nothing then", "[nn]") {
  CriticModel critic{sk::Seed{1}};
  JudgedModel judged{sk::Seed{3}};
  const auto before = all(judged);
  CHECK_THROWS_WITH(sk::copy_weights(critic, judged), Catch::Contains("'0.weight' and '0.weight' differ in size"));
  CHECK_THROWS_WITH(sk::copy_weights(critic, judged, {.to = "0."}), Catch::Contains("'0.weight' is on one side alone"));
  CHECK_THROWS_WITH(sk::copy_weights(judged, critic, {.from = "1.*"}),
                    Catch::Contains("no parameter's name begins with .from = \"1.*\""));
  CHECK_THROWS_WITH(sk::copy_weights(critic, judged, {.to = "7."}),
                    Catch::Contains("no parameter's name begins with .to = \"7.\""));
  CHECK_THROWS_WITH(sk::copy_weights(critic, judged, {.from = "7.", .to = "7."}),
                    Catch::Contains("no parameter's name begins with .from = \"7.\""));
  CHECK(all(judged) == before);
}
