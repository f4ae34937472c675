// SPDX-License-Identifier: Apache-2.0
// A loss on a device beside the same loss on the Cpu: outputs, targets, labels and weights are copied there; sums, gradient and
// gaps must agree. For .cu tests.
#pragma once
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include <skein/core/shape.hpp>
#include <skein/nn/loss/loss.hpp>

#include "close.hpp"
#include "device_array.hpp"

namespace support {

namespace sk = skein;

template <class Scalar> struct LossData {
  long count, width, pitch = sk::row_pitch(width), target_pitch = pitch;
  std::vector<Scalar> outputs = std::vector<Scalar>(static_cast<std::size_t>(count * pitch));
  std::vector<Scalar> targets = std::vector<Scalar>(static_cast<std::size_t>(count * target_pitch));
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(static_cast<std::size_t>(count));

  /// Waves: targets in (0, 1), labels all over the classes.
  void fill() {
    for (long r = 0; r < count; ++r) {
      for (long c = 0; c < width; ++c) {
        outputs[static_cast<std::size_t>(r * pitch + c)] =
            static_cast<Scalar>(3 * std::sin(0.7 * static_cast<double>(r * 31 + c + 1)));
        targets[static_cast<std::size_t>(r * target_pitch + c)] =
            static_cast<Scalar>(0.5 + 0.5 * std::sin(1.1 * static_cast<double>(r * 17 + c)));
      }
      labels[static_cast<std::size_t>(r)] = static_cast<std::int32_t>((r * 7 + 3) % width);
    }
  }
};

/// One call on each device. `loss_scale` counts on the device alone, where it is in memory.
template <class Loss, class Scalar>
void loss_agrees(const Loss& loss, const LossData<Scalar>& d, bool wants_gradient = true, double loss_scale = 1) {
  std::vector<Scalar> gradient(d.outputs.size(), Scalar(9));
  sk::nn::LossCall<Scalar, sk::Cpu> here;
  here.outputs = d.outputs.data();
  here.output_pitch = d.pitch;
  here.width = d.width;
  here.labels = d.labels.data();
  here.targets = d.targets.data();
  here.target_pitch = d.target_pitch;
  here.count = d.count;
  here.scale = Scalar(1) / static_cast<Scalar>(d.count);
  here.gradient = wants_gradient ? gradient.data() : nullptr;
  const sk::nn::LossSums expected = loss(here);

  const DeviceArray<Scalar> outputs(d.outputs), targets(d.targets);
  const DeviceArray<std::int32_t> labels(d.labels);
  DeviceArray<Scalar> to(d.outputs.size(), Scalar(9));
  DeviceArray<double> sums(std::vector<double>{100, 200, 300});  // there may be sums already
  sk::Arena<sk::ops::StepValues, sk::Cuda> values(1);
  const sk::ops::StepValues now{0, 0, loss_scale};
  sk::Copy<sk::Cuda, sk::Cpu>::run(values.data(), &now, sizeof now);
  const sk::nn::LossTable<Loss, sk::Cuda> table(loss);
  sk::nn::LossCall<Scalar, sk::Cuda> there;
  there.outputs = outputs.data();
  there.output_pitch = d.pitch;
  there.width = d.width;
  there.labels = labels.data();
  there.targets = targets.data();
  there.target_pitch = d.target_pitch;
  there.count = d.count;
  there.scale = here.scale;
  there.gradient = wants_gradient ? to.data() : nullptr;
  there.table = table.data();
  there.sums = sums.data();
  there.values = values.data();
  const sk::nn::LossSums nothing = loss(there);
  CHECK(nothing.loss == 0);
  CHECK(nothing.weight == 0);
  const std::vector<double> got = sums.host();
  const double size = std::abs(expected.loss) + static_cast<double>(d.count);
  CHECK(close<Scalar>(static_cast<Scalar>(got[0] - 100), static_cast<Scalar>(expected.loss), Roundings::sum, size));
  CHECK(got[1] - 200 == Approx(expected.weight).epsilon(1e-12));
  CHECK(got[2] - 300 == expected.correct);
  const std::vector<Scalar> g = to.host();
  long wrong = 0;
  for (std::size_t i = 0; i < g.size(); ++i)
    wrong += wants_gradient ? !close<Scalar>(g[i], static_cast<Scalar>(gradient[i] * static_cast<Scalar>(loss_scale)),
                                             Roundings::sum, loss_scale / static_cast<double>(d.count))
                            : g[i] != Scalar(9);
  CHECK(wrong == 0);
}

/// Several shapes, with and without a gradient.
template <class Scalar, class Make> void loss_agrees_everywhere(Make&& loss_of_width) {
  struct Size {
    long count, width;
  };
  for (const Size& s : {Size{1, 1}, Size{3, 2}, Size{5, 10}, Size{17, 16}, Size{40, 33}, Size{3000, 3}, Size{2, 700}}) {
    LossData<Scalar> d{s.count, s.width};
    d.fill();
    INFO(s.count << " rows of " << s.width);
    loss_agrees(loss_of_width(s.width), d);
    loss_agrees(loss_of_width(s.width), d, false);
    loss_agrees(loss_of_width(s.width), d, true, 1024);
  }
}

}  // namespace support
