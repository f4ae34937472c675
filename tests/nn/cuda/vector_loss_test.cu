// SPDX-License-Identifier: Apache-2.0
// Losses over elements on the GPU beside the Cpu: the library's and a user's.
#include <skein/ops/cuda/vector_loss.hpp>

#include <skein/nn/loss/binary_cross_entropy.hpp>
#include <skein/nn/loss/huber.hpp>
#include <skein/nn/loss/mse.hpp>

#include "../../support/device_loss.hpp"

namespace nn = skein::nn;
namespace sk = skein;

namespace vector_loss_test {
// [quote own_loss]
/// log cosh(output - target), each column with a factor of its own.
struct LogCosh {
  static constexpr nn::TargetKind target = nn::TargetKind::vector;
  struct Element {
    long width;
    template <class Scalar> constexpr Scalar operator()(Scalar x, Scalar t, long i, Scalar& derivative) const {
      using std::exp, std::log1p, std::tanh, std::abs;
      const Scalar d = x - t, factor = static_cast<Scalar>(i % width + 1);
      derivative = factor * tanh(d);
      return factor * (abs(d) + log1p(exp(-2 * abs(d))) - Scalar(0.6931471805599453));
    }
  };
  template <class Scalar, class Device> double weight(const nn::LossCall<Scalar, Device>& call) const {
    return nn::element_weight(call);
  }
  template <class Scalar, class Device> nn::LossSums operator()(const nn::LossCall<Scalar, Device>& call) const {
    return nn::vector_loss(call, Element{call.width});
  }
};
// [end]
static_assert(nn::Loss<LogCosh>);
}  // namespace vector_loss_test
using namespace vector_loss_test;

TEMPLATE_TEST_CASE("Losses over elements on the GPU agree with the Cpu", "[nn][cuda]", float, double) {
  nn::prepare_loss<sk::Cuda>();
  support::loss_agrees_everywhere<TestType>([](long) { return nn::Mse{}; });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::Huber{.delta = 0.7}; });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::BinaryCrossEntropy{}; });
  support::loss_agrees_everywhere<TestType>([](long) { return nn::BinaryCrossEntropy{.positive_weight = {2.5f}}; });
  support::loss_agrees_everywhere<TestType>([](long width) {
    nn::BinaryCrossEntropy loss;
    for (long c = 0; c < width; ++c) loss.positive_weight.push_back(0.5f + static_cast<float>(c % 5));
    return loss;
  });
  support::loss_agrees_everywhere<TestType>([](long) { return LogCosh{}; });
}

TEST_CASE("A loss on the GPU says what it lacks", "[nn][cuda]") {
  nn::LossCall<float, sk::Cuda> call;
  call.width = call.output_pitch = 1;
  CHECK_THROWS_WITH(nn::Mse{}(call), Catch::Contains("set LossCall::sums"));
  CHECK_THROWS_WITH(nn::BinaryCrossEntropy{.positive_weight = {2}}(call), Catch::Contains("set LossCall::table"));
  CHECK_THROWS_WITH(nn::Huber{.delta = -1}(call), Catch::Contains("delta must be positive"));
}

TEST_CASE("Losses over elements on the GPU with targets of another pitch", "[nn][cuda]") {
  support::LossData<float> d{5, 10, 16, 10};
  d.fill();
  support::loss_agrees(nn::Mse{}, d);
  support::LossData<float> dense{6, 7, 7, 7};
  dense.fill();
  support::loss_agrees(nn::Mse{}, dense);
}
