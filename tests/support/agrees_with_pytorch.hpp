// SPDX-License-Identifier: Apache-2.0
// A step and an evaluation of a network of tests/fixtures/make_models.py, beside what PyTorch made of it there.
#pragma once
#include <type_traits>

#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

#include "pytorch_network.hpp"

namespace support {

struct Step {
  float rate = 0.01f;
  int threads = 1;
};

/// Three samples make what PyTorch makes of them in logits, loss, every gradient of a step (by its product with a fixed vector,
/// and its norm), and the loss in evaluation phase behind the step, which reads the running statistics. In float a ReLU's input
/// near 0 may change its side: gradients move by 1e-3 then.
template <class Network, class Input, class Scalar = double>
void agrees(const Expected& expected, const std::vector<double>& logits, const Step& with = {}) {
  using Model = sk::Model<Network, Input, sk::Cpu, Scalar>;
  constexpr bool exact = std::is_same_v<Scalar, double>;
  constexpr double values = exact ? 1e-9 : 1e-4, gradients = exact ? 1e-9 : 1e-2, running = exact ? 1e-7 : 1e-3;
  constexpr long count = 3, pitch = sk::sample_pitch(Model::output_extents), classes = Model::output_extents.last();
  INFO((exact ? "double, threads: " : "float, threads: ") << with.threads);
  Model model;
  set_parameters(model);
  const Samples<Model> samples(count);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = with.rate}, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = count, .threads = with.threads});
  CHECK(apart_from(train_step.step(samples.batch(), {.key = 7}).mean(), expected.losses[0]) <= values);
  REQUIRE(logits.size() == static_cast<std::size_t>(count * classes));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const long at = static_cast<long>(i) / classes * pitch + static_cast<long>(i) % classes;
    CHECK(apart_from(static_cast<double>(train_step.executor().outputs()[at]), logits[i], 1) <= values);
  }
  if (with.threads == 1) check_gradients(model, expected, gradients);
  CHECK(apart_from(train_step.evaluate(samples.batch()).mean(), expected.evaluation[0]) <= running);
}

}  // namespace support
