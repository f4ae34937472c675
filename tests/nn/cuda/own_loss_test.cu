// SPDX-License-Identifier: Apache-2.0
// Losses out of their forward formula on the GPU beside the Cpu, with several lanes a row too, and in a training.
#include "train/cuda/step_twins.hpp"

#include <skein/nn/loss/weighted_losses.hpp>

#include "../../support/device_loss.hpp"
#include "../../support/host_lanes.hpp"
#include "../../support/own_losses.hpp"

namespace nn = skein::nn;
namespace sk = skein;

namespace own_loss_test {
/// One row's loss and gradient by one lane and by eight.
template <class Formula> void lanes_agree(const Formula& formula, support::LossData<double> d) {
  using Row = nn::detail::FormulaOfRow<Formula>;
  const auto row_of = [&](std::vector<double>& gradient, long r, const auto& lanes) {
    return sk::ops::LossRow<double, std::remove_cvref_t<decltype(lanes)>>{
        d.outputs.data() + r * d.pitch, d.width, d.labels[static_cast<std::size_t>(r)],
        gradient.data() + r * d.pitch,  0.5,     lanes};
  };
  std::vector<double> one(d.outputs.size()), many(d.outputs.size()), losses(static_cast<std::size_t>(d.count));
  for (long r = 0; r < d.count; ++r) losses[static_cast<std::size_t>(r)] = Row{formula}(row_of(one, r, sk::ops::SingleLane{}));
  long wrong = 0;
  support::by_lanes<8>(d.count, [&](long r, const auto& lanes) {
    const double loss = Row{formula}(row_of(many, r, lanes));
    if (lanes.index == 5)
      wrong += !support::close<double>(loss, losses[static_cast<std::size_t>(r)], support::Roundings::sum, 1 + std::abs(loss));
  });
  double size = 1;
  for (const double g : one) size = std::max(size, std::abs(g));
  for (std::size_t i = 0; i < one.size(); ++i) wrong += !support::close<double>(one[i], many[i], support::Roundings::sum, size);
  CHECK(wrong == 0);
}
}  // namespace own_loss_test
using namespace own_loss_test;

TEMPLATE_TEST_CASE("Losses out of their formula on the GPU agree with the Cpu", "[nn][cuda]", float, double) {
  support::loss_agrees_everywhere<TestType>([](long) { return nn::OwnLoss{own_losses::Focal{}}; });
  support::loss_agrees_everywhere<TestType>([](long width) {
    std::vector<float> weights;
    for (long c = 0; c < width; ++c) weights.push_back(0.25f + static_cast<float>(c % 4));
    return nn::OwnLoss{own_losses::Focal{.gamma = 1.5f}, {.class_weights = weights, .ignore_label = 1}};
  });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::OwnLoss{own_losses::Hinge{}}; });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::OwnLoss{own_losses::LogCosh{}}; });
}

TEST_CASE("The lanes of a warp share a row of a formula", "[nn][cuda]") {
  struct Size {
    long count, width;
  };
  for (const Size& s : {Size{6, 5}, Size{9, 8}, Size{7, 37}}) {
    support::LossData<double> d{s.count, s.width};
    d.fill();
    lanes_agree(own_losses::Focal{}, d);
    lanes_agree(own_losses::Hinge{}, d);
    lanes_agree(own_losses::Nested{}, d);
  }
}

namespace own_loss_test {
struct Net : nn::Sequential<nn::Linear<12>, nn::Tanh, nn::Linear<5>> {};
}  // namespace own_loss_test

TEST_CASE("A network with a loss out of a formula trains on both devices, launched and replayed", "[nn][cuda]") {
  twins::agree<own_loss_test::Net, sk::Shape<6>, double>(nn::OwnLoss{own_losses::Focal{}}, sk::optim::Adam{.lr = 0.01f});
  twins::agree<own_loss_test::Net, sk::Shape<6>, double>(nn::OwnLoss{own_losses::LogCosh{}}, sk::optim::Adam{.lr = 0.01f});
}

TEST_CASE("Weighted losses of one output train on both devices", "[nn][cuda]") {
  const std::vector<float> weights{1, 2, 0.5f, 3, 1};
  const auto loss = nn::weighted_losses<sk::Model<own_loss_test::Net, sk::Shape<6>>>(
      nn::on(nn::CrossEntropy{.class_weights = weights}, 0.5),
      nn::on(nn::OwnLoss{own_losses::Focal{}, {.class_weights = weights}}, 0.1));
  twins::agree<own_loss_test::Net, sk::Shape<6>, double>(loss, sk::optim::Adam{.lr = 0.01f});
}
