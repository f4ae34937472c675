// SPDX-License-Identifier: Apache-2.0
// Losses of rows and labels on the GPU beside the Cpu: the library's and a user's, with several lanes a row too.
#include <skein/ops/cuda/label_loss.hpp>
#include <skein/ops/cuda/softmax.hpp>

#include <limits>

#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/nll.hpp>
#include <skein/ops/cuda/vector_loss.hpp>

#include "../../support/device_loss.hpp"
#include "../../support/host_lanes.hpp"

namespace nn = skein::nn;
namespace sk = skein;
namespace ops = skein::ops;

namespace label_loss_test {
/// A user's: the multi-class hinge.
struct Hinge {
  static constexpr nn::TargetKind target = nn::TargetKind::label;
  struct Row {
    template <class R> constexpr typename R::Scalar operator()(const R& row) const {
      using Scalar = typename R::Scalar;
      Scalar loss = 0, count = 0;
      for (long c = row.begin(); c < row.width; c += row.step()) {
        const Scalar margin = 1 + row.x[c] - row.x[row.label];
        const bool counts = c != row.label && margin > 0;
        if (counts) loss += margin, count += 1;
        row.derivative(c, counts ? Scalar(1) : Scalar(0));
      }
      count = row.sum(count);
      row.derivative_at_label(-count);
      return row.sum(loss);
    }
  };
  template <class Scalar> double weight(const nn::LossCall<Scalar, sk::Cpu>& call) const {
    return static_cast<double>(call.count);
  }
  template <class Scalar, class Device> nn::LossSums operator()(const nn::LossCall<Scalar, Device>& call) const {
    return nn::label_loss(call, Row{});
  }
};
static_assert(nn::Loss<Hinge> && nn::HasLossTable<nn::CrossEntropy> && !nn::HasLossTable<Hinge>);

std::vector<float> weights(long n) {
  std::vector<float> w;
  for (long c = 0; c < n; ++c) w.push_back(0.25f + static_cast<float>(c % 4));
  return w;
}

/// The same rows by one lane and by eight: totals and gradients.
template <class Row> void lanes_agree(Row row, support::LossData<double> d) {
  std::vector<double> one(d.outputs.size(), 9), many(d.outputs.size(), 9);
  std::vector<ops::LossTotals> totals(static_cast<std::size_t>(d.count)), of_lanes(totals.size());
  row.p.logits = d.outputs.data();
  row.p.pitch = d.pitch;
  row.p.classes = d.width;
  row.p.labels = d.labels.data();
  row.p.count = d.count;
  row.p.gradient = one.data();
  for (long r = 0; r < d.count; ++r) totals[static_cast<std::size_t>(r)] = row(r, sk::cuda::Lanes<1>{});
  row.p.gradient = many.data();
  support::by_lanes<8>(d.count, [&](long r, const auto& lanes) {
    const ops::LossTotals t = row(r, lanes);
    if (lanes.index == 3) of_lanes[static_cast<std::size_t>(r)] = t;  // any lane has them
  });
  long wrong = 0;
  for (std::size_t r = 0; r < totals.size(); ++r)
    wrong += !support::close<double>(totals[r].loss, of_lanes[r].loss, support::Roundings::sum, 1) ||
             totals[r].weight != of_lanes[r].weight || totals[r].correct != of_lanes[r].correct;
  for (std::size_t i = 0; i < one.size(); ++i) wrong += !support::close<double>(one[i], many[i], support::Roundings::sum, 1);
  CHECK(wrong == 0);
}
}  // namespace label_loss_test
using namespace label_loss_test;

TEMPLATE_TEST_CASE("Losses of labels on the GPU agree with the Cpu", "[nn][cuda]", float, double) {
  support::loss_agrees_everywhere<TestType>([](long) { return nn::CrossEntropy{}; });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::CrossEntropy{.label_smoothing = 0.1}; });
  support::loss_agrees_everywhere<TestType>([](long width) { return nn::CrossEntropy{.class_weights = weights(width)}; });
  support::loss_agrees_everywhere<TestType>(
      [](long width) { return nn::CrossEntropy{.label_smoothing = 0.3, .class_weights = weights(width), .ignore_label = 0}; });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::Nll{}; });
  support::loss_agrees_everywhere<TestType>(
      [](long width) { return nn::Nll{.class_weights = weights(width), .ignore_label = 1}; });
  support::loss_agrees_everywhere<TestType>([](long) { return Hinge{}; });
}

TEST_CASE("Huge logits, equal logits and logits of minus infinity on the GPU", "[nn][cuda]") {
  support::LossData<float> d{4, 20};
  d.fill();
  for (std::size_t i = 0; i < 20; ++i) d.outputs[i] *= 1e30f;
  for (std::size_t i = 0; i < 20; ++i) d.outputs[32 + i] = 4;
  d.labels = {3, 0, 5, 19};
  d.outputs[64] = -std::numeric_limits<float>::infinity();
  support::LossData<float> finite = d;
  for (std::size_t i = 0; i < 20; ++i) finite.outputs[i] = 1;
  support::loss_agrees(nn::CrossEntropy{}, finite);
  support::LossData<float> huge{1, 20};
  huge.fill();
  for (float& x : huge.outputs) x *= 1e4f;
  support::loss_agrees(nn::CrossEntropy{}, huge);
}

TEST_CASE("A class of weight 0 whose logit is minus infinity takes nothing from cross-entropy on the GPU either", "[nn][cuda]") {
  support::LossData<float> d{3, 5};
  d.fill();
  d.labels = {0, 2, 4};
  for (std::size_t r = 0; r < 3; ++r)
    d.outputs[r * static_cast<std::size_t>(d.pitch) + 2] = -std::numeric_limits<float>::infinity();
  for (const double smoothing : {0.0, 0.1})
    support::loss_agrees(nn::CrossEntropy{.label_smoothing = smoothing, .class_weights = {1, 2, 0, 1, 1}}, d);
}

TEST_CASE("A label that is no class neither reads nor writes beside the row on the GPU: the loss is no number", "[nn][cuda]") {
  for (const std::int32_t label : {-1, 10, 2000000000}) {
    support::DeviceArray<float> outputs(3 * 16, 1.0f), gradient(3 * 16, 9.0f);
    const support::DeviceArray<std::int32_t> labels(std::vector<std::int32_t>{1, label, 2});
    support::DeviceArray<double> sums(3, 0.0);
    nn::LossCall<float, sk::Cuda> call;
    call.outputs = outputs.data();
    call.output_pitch = 16;
    call.width = 10;
    call.count = 3;
    call.labels = labels.data();
    call.gradient = gradient.data();
    call.sums = sums.data();
    (void)nn::CrossEntropy{}(call);
    std::vector<double> got = sums.host();
    CHECK(std::isnan(got[0]));
    CHECK(got[1] == 2);
    const std::vector<float> g = gradient.host();
    for (std::size_t i = 16; i < 32; ++i) CHECK(g[i] == 0);
    (void)nn::Nll{}(call);
    CHECK(std::isnan(sums.host()[0]));
  }
}

TEST_CASE("The lanes of a warp share a row of a loss", "[nn][cuda]") {
  struct Size {
    long count, width;
  };
  for (const Size& s : {Size{4, 1}, Size{6, 5}, Size{9, 8}, Size{7, 37}}) {
    support::LossData<double> d{s.count, s.width};
    d.fill();
    d.outputs[0] = d.outputs[static_cast<std::size_t>(s.width - 1)];  // equal maxima, perhaps: the first counts
    const std::vector<float> w = weights(s.width);
    ops::CrossEntropyArguments<double> plain, smooth;
    smooth.smoothing = 0.2;
    smooth.class_weights = w.data();
    smooth.ignores = true;
    smooth.ignored = d.labels[1];
    lanes_agree(ops::cuda::CrossEntropyRow<double>{plain}, d);
    lanes_agree(ops::cuda::CrossEntropyRow<double>{smooth}, d);
    lanes_agree(ops::cuda::LabelLossRow<double, nn::NegativeAtLabel>{smooth, {}}, d);
    lanes_agree(ops::cuda::LabelLossRow<double, Hinge::Row>{plain, {}}, d);
  }
}

TEST_CASE("among outputs that are no numbers there is no right answer, by however many lanes", "[nn][cuda]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t at : {0u, 3u, 8u, 18u, 19u, 20u}) {  // 20: all of them
    support::LossData<double> d{20, 20};
    d.fill();
    for (std::size_t r = 0; r < 20; ++r) {
      double* const x = d.outputs.data() + r * static_cast<std::size_t>(d.pitch);
      d.labels[r] = static_cast<std::int32_t>(r);
      x[r] = 9;  // the right answer, but for the NaN
      if (at < 20) x[at] = nan;
      else std::fill_n(x, 20, nan);
    }
    ops::CrossEntropyArguments<double> p;
    p.logits = d.outputs.data();
    p.pitch = d.pitch;
    p.classes = d.width;
    p.labels = d.labels.data();
    p.count = d.count;
    CAPTURE(at);
    CHECK(ops::reference::cross_entropy(p).correct == 0);
    CHECK(ops::cross_entropy<sk::Cpu>(p).correct == 0);
    CHECK(ops::label_loss<sk::Cpu>(p, Hinge::Row{}).correct == 0);
    double correct[2] = {0, 0};
    support::by_lanes<8>(d.count, [&](long r, const auto& lanes) {
      const auto one = ops::cuda::CrossEntropyRow<double>{p}(r, lanes);
      const auto two = ops::cuda::LabelLossRow<double, Hinge::Row>{p, {}}(r, lanes);
      if (lanes.index == 3) correct[0] += one.correct, correct[1] += two.correct;
    });
    CHECK(correct[0] == 0);
    CHECK(correct[1] == 0);
  }
}
