// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/optim/optimizer.hpp>

using namespace skein;

namespace {
// An optimizer of a user, without decay, groups and checks: the sign of the gradient.
struct SignDescent {
  float lr = 0.5f;
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const optim::UpdateCall<Scalar, Device>& call) const {
    for (long i = call.begin; i < call.end; ++i) {
      const Scalar g = call.gradients[0][i];
      call.parameters[i] -= static_cast<Scalar>(call.lr) * static_cast<Scalar>((g > 0) - (g < 0));
    }
  }
};
struct Stateless {
  float lr = 0.1f;
  template <class Scalar, class Device> void apply(const optim::UpdateCall<Scalar, Device>&) const {}
};
}  // namespace

TEST_CASE("The optimizer concept takes a user's own type and no less", "[optim]") {
  optim::assert_optimizer<SignDescent>();
  STATIC_REQUIRE(optim::Optimizer<SignDescent>);
  STATIC_REQUIRE_FALSE(optim::Optimizer<Stateless>);
  STATIC_REQUIRE_FALSE(optim::Optimizer<float>);
}

TEST_CASE("What a user's optimizer leaves out has a default", "[optim]") {
  CHECK(optim::weight_decay_of(SignDescent{}) == 0);
  CHECK(optim::groups_of(SignDescent{}).empty());
  CHECK_NOTHROW(optim::check(SignDescent{}));
}

TEST_CASE("A user's optimizer runs over ranges", "[optim]") {
  float p[4] = {1, 1, 1, 1};
  const float g[4] = {3, -3, 0, 3};
  const float* gradients[] = {g};
  optim::UpdateCall<float, Cpu> call;
  call.parameters = p;
  call.gradients = gradients;
  call.end = 4;
  call.lr = 0.5f;
  const optim::ParameterGroupRange ranges[] = {{0, 3}, {3, 4, 1, 1, true}};
  optim::update(SignDescent{}, std::span<const optim::ParameterGroupRange>(ranges), call);
  CHECK(p[0] == 0.5f);
  CHECK(p[1] == 1.5f);
  CHECK(p[2] == 1.0f);
  CHECK(p[3] == 1.0f);
}
