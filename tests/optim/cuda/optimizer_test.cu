// SPDX-License-Identifier: Apache-2.0
// Bound optimizers on the GPU beside the Cpu: twenty steps of each, groups and frozen parameters, parts of the arena, the factor
// and the skip out of device memory, norms, and an optimizer of a user.
#include <skein/ops/cuda/optimizer.hpp>

#include <limits>

#include <catch2/catch.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/ops/cuda/step_scale.hpp>
#include <skein/optim/adagrad.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/adamw.hpp>
#include <skein/optim/lion.hpp>
#include <skein/optim/rms_prop.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/state.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/clip_value.hpp>

#include "../../support/close.hpp"
#include "../../support/device_array.hpp"
#include "../../support/own_optimizers.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace ops = skein::ops;
namespace optim = skein::optim;
using support::DeviceArray, support::Roundings;

namespace device_optimizer_test {
/// Rows with gaps, and a last layer whose rows are not whole vectors.
using Net = nn::Sequential<nn::Linear<21>, nn::Linear<3>, nn::Linear<1>>;
constexpr auto& program = nn::program<Net, sk::Shape<5>>;
constexpr long stored = program.stored_parameters;

template <class Scalar> std::vector<Scalar> wave(double step, double amplitude = 1) {
  std::vector<Scalar> v(static_cast<std::size_t>(stored));
  for (const sk::plan::Entry& e : program.parameters()) {
    const long columns = e.extents.last(), pitch = sk::row_pitch(columns);
    for (long r = 0; r < e.extents.count() / columns; ++r)
      for (long c = 0; c < columns; ++c)
        v[static_cast<std::size_t>(e.offset + r * pitch + c)] =
            static_cast<Scalar>(amplitude * std::sin(step * static_cast<double>(e.offset + r * pitch + c + 1)));
  }
  return v;
}
template <class Scalar> long apart(const std::vector<Scalar>& a, const std::vector<Scalar>& b, double scale = 1) {
  long wrong = a.size() != b.size();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    wrong += !support::close<Scalar>(a[i], b[i], Roundings::product, scale);
  return wrong;
}
template <class Scalar> long gaps_that_are_not_zero(const std::vector<Scalar>& v) {
  const std::vector<Scalar> where = wave<Scalar>(0.3);
  long wrong = 0;
  for (std::size_t i = 0; i < v.size(); ++i) wrong += where[i] == Scalar(0) && v[i] != Scalar(0);
  return wrong;
}
template <class Scalar> std::vector<Scalar> on_host(sk::DeviceSpan<Scalar, sk::Cuda> s) {
  std::vector<Scalar> v(s.size);
  sk::Copy<sk::Cpu, sk::Cuda>::run(v.data(), s.data, s.size * sizeof(Scalar));
  return v;
}

/// Twenty steps on both; the device's arena in one part or in three. `before`: steps that were made before, in which every other
/// parameter was frozen.
template <class Scalar, class O> void agrees(const O& optimizer, bool cut = false, std::int64_t before = 0) {
  optim::BoundOptimizer<O, Scalar, sk::Cpu> here(optimizer, program);
  optim::BoundOptimizer<O, Scalar, sk::Cuda> there(optimizer, program);
  optim::StateUpdates updates{.steps = before};
  for (std::size_t i = 0; i < program.parameters().size(); ++i) updates.of_rows.push_back(i % 2 ? before : 0);
  CHECK(here.begin_at(updates, program.parameters()) == (before > 0));
  CHECK(there.begin_at(updates, program.parameters()) == (before > 0));
  std::vector<Scalar> p = wave<Scalar>(0.37);
  DeviceArray<Scalar> device_p(p);
  for (int t = 1; t <= 20; ++t) {
    const std::vector<Scalar> g = wave<Scalar>(0.1 * t, 3);
    const DeviceArray<Scalar> device_g(g);
    const Scalar *gradients[] = {g.data()}, *device_gradients[] = {device_g.data()};
    optim::StepCall<Scalar> call{.step = before + t, .lr = optimizer.lr * (1 + 0.1 * t), .gradient_scale = 0.5};
    call.gradients = gradients;
    here.update(p.data(), call, 0, stored);
    sk::Arena<ops::StepScale, sk::Cuda> scale(1);
    const ops::StepScale half{0.5, 0, 0};
    sk::Copy<sk::Cuda, sk::Cpu>::run(scale.data(), &half, sizeof half);
    call.gradient_scale = 1;
    call.scale = scale.data();
    call.gradients = device_gradients;
    const std::vector<long> cuts = cut ? std::vector<long>{0, 3, 50, 51, stored - 1, stored} : std::vector<long>{0, stored};
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) there.update(device_p.data(), call, cuts[c], cuts[c + 1]);
  }
  const std::vector<Scalar> got = device_p.host();
  CHECK(apart(got, p) == 0);
  CHECK(gaps_that_are_not_zero(got) == 0);
  for (int k = 0; k < here.arrays(); ++k) {
    const std::vector<Scalar> state = on_host(there.array(k));
    CHECK(apart(state, std::vector<Scalar>(here.array(k).begin(), here.array(k).end()), 10) == 0);
    CHECK(gaps_that_are_not_zero(state) == 0);
  }
}
template <class Scalar, class O> void agrees_with_groups(O optimizer) {
  agrees<Scalar>(optimizer);
  agrees<Scalar>(optimizer, true);
  optimizer.weight_decay = 0.1f;
  // Powers of two: the Cpu multiplies rate and decay in float, the kernel in the scalar type.
  optimizer.groups = {optim::no_decay_on_biases_and_norms(), optim::learning_rate("1.*", 0.25f), optim::frozen("0.bias"),
                      optim::weight_decay("2.weight", 4)};
  agrees<Scalar>(optimizer);
  agrees<Scalar>(optimizer, true);
  agrees<Scalar>(optimizer, true, 1000);
}

/// The sign of the gradient.
struct SignDescent {
  float lr = 0.01f, weight_decay = 0;
  optim::Groups groups = {};
  static constexpr bool takes_ranges = true;
  template <class Scalar> struct Arguments : ops::UpdateArguments<Scalar> {
    Scalar lr = 0;
    static constexpr int arrays = 1;
    constexpr Scalar* array(int) const { return nullptr; }
    constexpr void element(Scalar g, Scalar& value, Scalar*) const { value -= lr * static_cast<Scalar>((g > 0) - (g < 0)); }
    constexpr void rescale(Scalar lr_factor, Scalar) { lr *= lr_factor; }
  };
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const optim::UpdateCall<Scalar, Device>& call) const {
    auto arguments = optim::arguments_of<Arguments<Scalar>>(call);
    arguments.lr = static_cast<Scalar>(call.lr);
    ops::update<Device>(arguments);
  }
};
/// A running mean of the gradient in its place.
struct Smooth {
  static constexpr auto needs = optim::Needs::element;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr S element(const optim::UpdateRates<S>& at, S gradient, S value, S* state) const {
    return state[0] = S(0.5) * state[0] + gradient + at.weight_decay * value;
  }
};
/// SignDescent, called range by range.
struct SignByRange : SignDescent {
  static constexpr bool takes_ranges = false;
};
}  // namespace device_optimizer_test
using namespace device_optimizer_test;

TEMPLATE_TEST_CASE("Optimizers on the GPU agree with the Cpu over twenty steps, whatever the groups", "[optim][cuda]", float,
                   double) {
  agrees_with_groups<TestType>(optim::Sgd{.lr = 0.05f});
  agrees_with_groups<TestType>(optim::Sgd{.lr = 0.05f, .momentum = 0.9, .dampening = 0.3});
  agrees_with_groups<TestType>(optim::Sgd{.lr = 0.05f, .momentum = 0.9, .nesterov = true});
  agrees_with_groups<TestType>(optim::Adam{.lr = 0.01f});
  agrees_with_groups<TestType>(optim::Adam{.lr = 0.01f, .amsgrad = true});
  agrees_with_groups<TestType>(optim::AdamW{.lr = 0.01f});
  agrees_with_groups<TestType>(optim::AdamW{.lr = 0.01f, .amsgrad = true});
  agrees_with_groups<TestType>(optim::RmsProp{.lr = 0.01f});
  agrees_with_groups<TestType>(optim::RmsProp{.lr = 0.01f, .centered = true});
  agrees_with_groups<TestType>(optim::RmsProp{.lr = 0.01f, .momentum = 0.9, .centered = true});
  agrees_with_groups<TestType>(optim::RmsProp{.lr = 0.01f, .momentum = 0.9});
  agrees_with_groups<TestType>(optim::Adagrad{.lr = 0.05f});
  agrees_with_groups<TestType>(optim::Adagrad{.lr = 0.05f, .lr_decay = 0.1, .initial_accumulator = 0.2});
  agrees_with_groups<TestType>(optim::Lion{.lr = 0.01f, .beta1 = 0.8});
  agrees_with_groups<TestType>(SignDescent{});
  agrees_with_groups<TestType>(SignByRange{});
  agrees_with_groups<TestType>(optim::chain(own::Signum{.lr = 0.01f}));
  agrees_with_groups<TestType>(optim::chain(optim::ClipNorm{1}, optim::ClipValue{0.5f}, optim::Adam{.lr = 0.01f}));
  agrees_with_groups<TestType>(
      optim::chain(Smooth{}, optim::ClipValue{0.5f}, Smooth{}, optim::Sgd{.lr = 0.05f, .momentum = 0.9}));
}

TEST_CASE("A step that is skipped on the GPU changes nothing", "[optim][cuda]") {
  optim::BoundOptimizer<optim::Adam, float, sk::Cuda> adam(optim::Adam{}, program);
  const std::vector<float> p = wave<float>(0.37);
  DeviceArray<float> device_p(p), g(wave<float>(0.1));
  sk::Arena<ops::StepScale, sk::Cuda> scale(1);
  const ops::StepScale skip{std::numeric_limits<double>::quiet_NaN(), 1, 0};
  sk::Copy<sk::Cuda, sk::Cpu>::run(scale.data(), &skip, sizeof skip);
  const float* gradients[] = {g.data()};
  optim::StepCall<float> call{.lr = 0.1};
  call.scale = scale.data();
  call.gradients = gradients;
  adam.update(device_p.data(), call, 0, stored);
  CHECK(device_p.host() == p);
  CHECK(on_host(adam.array(1)) == std::vector<float>(static_cast<std::size_t>(stored)));
}

TEMPLATE_TEST_CASE("Sums of squares on the GPU leave frozen parameters out and show an overflow", "[optim][cuda]", float,
                   double) {
  for (const optim::Groups& groups : {optim::Groups{}, optim::Groups{optim::frozen("1.*")}}) {
    const optim::Sgd sgd{.groups = groups};
    optim::BoundOptimizer<optim::Sgd, TestType, sk::Cpu> here(sgd, program);
    optim::BoundOptimizer<optim::Sgd, TestType, sk::Cuda> there(sgd, program);
    std::vector<TestType> g = wave<TestType>(0.7);
    const TestType* gradients[] = {g.data()};
    optim::StepCall<TestType> call;
    call.gradients = gradients;
    const double expected = here.sum_of_squares(call, 0, stored), part = here.sum_of_squares(call, 5, 60);
    DeviceArray<double> sums(2, 0.0);
    const auto run = [&] {
      const DeviceArray<TestType> device_g(g);
      const TestType* device_gradients[] = {device_g.data()};
      call.gradients = device_gradients;
      there.sum_of_squares(call, 0, stored, sums.data());
      there.sum_of_squares(call, 5, 60, sums.data() + 1);
      return sums.host();
    };
    const std::vector<double> got = run();
    CHECK(got[0] == Approx(expected).epsilon(1e-6));
    CHECK(got[1] == Approx(part).epsilon(1e-6));
    g[7] = std::numeric_limits<TestType>::infinity();
    CHECK(std::isinf(run()[0]));
    g[7] = std::numeric_limits<TestType>::quiet_NaN();
    CHECK(std::isnan(run()[0]));
  }
}

TEST_CASE("The factor of a step is made on the GPU", "[optim][cuda]") {
  const auto factor = [](double weight, double expected_weight, double loss_scale, double squares, double clip,
                         bool may_skip = true) {
    DeviceArray<float> tail(std::vector<float>{5, static_cast<float>(weight), 1});
    DeviceArray<double> sum(1, squares);
    sk::Arena<ops::StepValues, sk::Cuda> values(1);
    const ops::StepValues now{0, 0, loss_scale};
    sk::Copy<sk::Cuda, sk::Cpu>::run(values.data(), &now, sizeof now);
    sk::Arena<ops::StepScale, sk::Cuda> scale(1);
    ops::step_scale<sk::Cuda>(ops::StepScaleCall<float>{tail.data(), expected_weight, values.data(),
                                                        squares >= 0 || squares != squares ? sum.data() : nullptr, may_skip, clip,
                                                        scale.data()});
    ops::StepScale s;
    sk::Copy<sk::Cpu, sk::Cuda>::run(&s, scale.data(), sizeof s);
    return s;
  };
  CHECK(factor(8, 16, 1, -1, 0).factor == 2);
  CHECK(factor(0, 16, 1, -1, 0).factor == 0);
  CHECK(factor(8, 16, 4, -1, 0).factor == 0.5);
  const ops::StepScale small = factor(8, 8, 1, 9, 5);
  CHECK(small.factor == 1);
  CHECK(small.norm == 3);
  const ops::StepScale large = factor(8, 8, 2, 400, 5);
  CHECK(large.norm == 10);
  CHECK(large.factor == Approx(0.25).epsilon(1e-6));
  CHECK(large.skip == 0);
  CHECK(large.factor == Approx(0.5 * optim::ClipNorm{5}(10)).epsilon(1e-12));
  CHECK(factor(8, 8, 2, std::numeric_limits<double>::infinity(), 0).skip == 1);
  CHECK(factor(8, 8, 2, std::numeric_limits<double>::quiet_NaN(), 5).skip == 1);
  const ops::StepScale shown = factor(8, 8, 2, std::numeric_limits<double>::infinity(), 5, false);  // nobody skips: it is seen
  CHECK((shown.skip == 0 && shown.factor == 0.5));
}

TEST_CASE("Sums of a step go to the gradient's tail and into totals, on both devices", "[optim][cuda]") {
  const std::vector<double> sums{1.5, 2, 3};
  const DeviceArray<double> device_sums(sums);
  DeviceArray<float> tail(3, 0.0f);
  DeviceArray<double> totals(3, 10.0);
  ops::write_sums<sk::Cuda>(device_sums.data(), tail.data());
  ops::add_tail<sk::Cuda>(static_cast<const float*>(tail.data()), totals.data());
  CHECK(tail.host() == std::vector<float>{1.5f, 2, 3});
  CHECK(totals.host() == std::vector<double>{11.5, 12, 13});
  float here[3] = {};
  double all[3] = {1, 1, 1};
  ops::write_sums<sk::Cpu>(sums.data(), here);
  ops::add_tail<sk::Cpu>(static_cast<const float*>(here), all);
  CHECK(all[2] == 4);
}

TEST_CASE("An optimizer's pass on the GPU takes one array of gradients", "[optim][cuda]") {
  ops::SgdArguments<float> arguments;
  arguments.gradient_count = 2;
  CHECK_THROWS_WITH(ops::sgd<sk::Cuda>(arguments), Catch::Contains("one array of gradients, not 2"));
}
