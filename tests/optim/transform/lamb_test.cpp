// SPDX-License-Identifier: Apache-2.0
// Lamb and Muon, transforms of tensors that keep state: beside their twins, a matrix and a vector at a time.
// tests/train/step/transform_test.cpp and tests/parallel/transforms_test.cpp train with them.
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lamb.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/optim/transform/muon.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

namespace sk = skein;
using skein::optim::Lamb, skein::optim::Muon, skein::optim::MuonScale;

namespace {
constexpr long inputs = 7, outputs = 5;

/// A parameter (rows, 5) with its arrays of state, whose rows are padded.
template <class Scalar> struct Parameter {
  long rows, pitch = sk::row_pitch(outputs);
  std::vector<Scalar> value = array(), gradient = array(), first = array(), second = array();

  std::vector<Scalar> array() const { return std::vector<Scalar>(static_cast<std::size_t>(rows * pitch)); }
  Scalar& at(std::vector<Scalar>& a, long i) const { return a[static_cast<std::size_t>(i / outputs * pitch + i % outputs)]; }
  Parameter(long rows_, const std::vector<double>& start) : rows(rows_) {
    for (long i = 0; i < rows * outputs; ++i) at(value, i) = static_cast<Scalar>(start[static_cast<std::size_t>(i)]);
  }
  template <class T> void step(const T& transform, int t) {
    for (long i = 0; i < rows * outputs; ++i)
      at(gradient, i) = static_cast<Scalar>(std::sin(0.1 * t * static_cast<double>((i + 1) * (i + 1)) + 0.2));
    Scalar* state[] = {first.data(), second.data()};
    sk::optim::TensorUpdate<Scalar, sk::Cpu> update;
    update.step = t;
    update.value = {value.data(), {rows, outputs}, {pitch, 1}};
    update.gradient = {gradient.data(), {rows, outputs}, {pitch, 1}};
    update.state_arrays = state;
    transform.tensor(update);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] -= Scalar(0.05) * gradient[i];
  }
};

template <class Scalar, class T>
void follows(const T& transform, const std::vector<double>& one, const std::vector<double>& twelve, double tolerance) {
  transform.check();
  Parameter<Scalar> weight(inputs, test::wave(inputs * outputs, 0.37)), bias(1, test::wave(outputs, 0.6));
  for (int t = 1; t <= 12; ++t) {
    weight.step(transform, t);
    bias.step(transform, t);
    if (t != 1 && t != 12) continue;
    const std::vector<double>& expected = t == 1 ? one : twelve;
    for (long i = 0; i < inputs * outputs; ++i)
      CHECK(static_cast<double>(weight.at(weight.value, i)) ==
            Approx(expected[static_cast<std::size_t>(i)]).margin(tolerance).epsilon(tolerance));
    for (long i = 0; i < outputs; ++i)
      CHECK(static_cast<double>(bias.at(bias.value, i)) ==
            Approx(expected[static_cast<std::size_t>(inputs * outputs + i)]).margin(tolerance).epsilon(tolerance));
  }
}
}  // namespace

TEST_CASE("LAMB is the paper's", "[optim]") {
  follows<double>(Lamb{}, fixtures::lamb_1, fixtures::lamb_12, 1e-12);
  const Lamb all{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1f};
  follows<double>(all, fixtures::lamb_all_1, fixtures::lamb_all_12, 1e-8);  // a decay of float(0.1)
  follows<float>(all, fixtures::lamb_all_1, fixtures::lamb_all_12, 1e-5);
}

TEST_CASE("Muon's matrices are PyTorch's in exact arithmetic, its vectors Adam's", "[optim]") {
  const Muon original{.momentum = 0.8, .nesterov = false, .scale = MuonScale::original};
  follows<double>(Muon{}, fixtures::muon_1, fixtures::muon_12, 1e-10);
  follows<double>(original, fixtures::muon_original_1, fixtures::muon_original_12, 1e-10);
  follows<float>(original, fixtures::muon_original_1, fixtures::muon_original_12, 1e-4);
}

TEST_CASE("A matrix and its transpose are orthogonalised alike, and weights of zero move under LAMB", "[optim]") {
  const std::vector<double> zeros(inputs * outputs);
  Parameter<double> tall(inputs, zeros), wide(3, zeros);
  const Muon one{.momentum = 0, .scale = MuonScale::original};
  tall.step(one, 1);
  wide.step(one, 1);
  const auto squares = [](Parameter<double>& p) {
    double sum = 0;
    for (double v : p.gradient) sum += v * v;
    return sum;
  };
  // Five steps bring singular values to 0.68 ... 1.13: as many as the shorter side has; (3, 5) is scaled by sqrt(5 / 3) on top.
  for (const double mean : {squares(tall) / outputs, squares(wide) / outputs}) CHECK((mean > 0.46 && mean < 1.28));
  Parameter<double> still(1, zeros);
  still.step(Lamb{}, 1);
  CHECK(still.value[0] != 0);
}

TEST_CASE("Lamb, Lars and Muon refuse what makes no sense", "[optim]") {
  const auto refuses = [](const auto& transform, const char* what) {
    CHECK_THROWS_WITH(transform.check(), Catch::Contains(what));
  };
  refuses(Lamb{.beta1 = 1}, "Lamb{.beta1 = 1}");
  refuses(Lamb{.epsilon = 0}, "epsilon must be positive");
  refuses(sk::optim::Lars{.trust = 0}, "the trust coefficient must be positive");
  refuses(sk::optim::Lars{.weight_decay = -0.1f}, "weight decay must not be negative");
  refuses(sk::optim::Lars{.weight_decay = NAN}, "that is no number");
  refuses(sk::optim::Lars{.trust = INFINITY}, "Lars{.trust = inf}: it must be finite");
  refuses(Muon{.momentum = 1}, "Muon{.momentum = 1}");
  refuses(Muon{.steps = 0}, "from 1 to 99 steps");
  refuses(Muon{.scale = static_cast<MuonScale>(7)}, "Muon: .scale is 7, and no value of its enumeration has that number");
}
