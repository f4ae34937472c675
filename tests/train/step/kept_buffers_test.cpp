// SPDX-License-Identifier: Apache-2.0
#include <skein/train/step/kept_buffers.hpp>

#include <vector>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

#include <catch2/catch.hpp>

namespace sk = skein;
namespace nn = skein::nn;

TEST_CASE("buffers are given back as they were kept; a model without any has nothing to keep", "[train]") {
  sk::Model<nn::Sequential<nn::Linear<6>, nn::BatchNorm<>>, sk::Shape<3>> model;
  sk::train::KeptBuffers<decltype(model)> kept;
  const std::vector<float> before(model.buffers().begin(), model.buffers().end());
  kept.reserve(model);
  kept.keep(model);
  for (float& b : model.buffers()) b = 7;
  kept.give_back(model);
  CHECK(std::vector<float>(model.buffers().begin(), model.buffers().end()) == before);

  sk::Model<nn::Sequential<nn::Linear<6>>, sk::Shape<3>> plain;
  sk::train::KeptBuffers<decltype(plain)> none;
  none.reserve(plain), none.keep(plain), none.give_back(plain);
  CHECK(plain.buffers().size == 0);
}
