// SPDX-License-Identifier: Apache-2.0
// The policy concept: hooks are no-ops by default, and a policy of one's own needs only those that it has.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/check_policy.hpp>
#include <skein/train/trainer.hpp>

#include "../support/naive_layers.hpp"

namespace sk = skein;
using Replica = sk::parallel::Replica<float, sk::Cpu>;

static_assert(sk::parallel::Policy<sk::parallel::SingleProcess, Replica>);
static_assert(!sk::parallel::Policy<int, Replica>);

namespace {
struct Calls {
  int start = 0, after = 0, before = 0, epochs = 0, finish = 0;
  long samples = 0;
};
struct Counting : sk::parallel::PolicyBase {
  explicit Counting(Calls* where) : calls(where) {}
  Calls* calls;
  struct PolicyState : sk::parallel::PolicyState {
    Calls* calls = nullptr;
    float* first = nullptr;
    void start() { ++calls->start; }
    void epoch_begins(std::int64_t epoch) { CHECK(epoch == calls->epochs++); }
    bool before_step(std::int64_t step) {
      CHECK(step == ++calls->before);
      return false;
    }
    bool finish() {
      ++calls->finish;
      return false;
    }
    bool after_step(const sk::parallel::StepDone& done) {
      ++calls->after;
      calls->samples += done.samples;
      if (done.step % 2 == 0) *first = 0;  // a policy may change weights: it says so
      return done.step % 2 == 0;
    }
  };
  template <class R> PolicyState bind(const R& replica) const {
    PolicyState s;
    s.calls = calls;
    s.first = replica.parameters.data;
    return s;
  }
};
}  // namespace

TEST_CASE("hooks of a policy are called around each step", "[parallel]") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6}, y{2, 4, 6, 8, 10, 12};
  auto data = sk::data::from_tensors(x, y);
  sk::Model<sk::nn::Sequential<naive::Linear<1>>, sk::Shape<1>> model{sk::Seed{1}};
  Calls calls;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}, Counting{&calls}};
  trainer.fit(data, {.epochs = 2, .batch = 2, .progress = false});
  CHECK(calls.start == 1);
  CHECK(calls.before == 6);
  CHECK(calls.after == 6);
  CHECK(calls.samples == 12);
  CHECK(calls.epochs == 2);
  CHECK(calls.finish == 1);
  CHECK(model.parameters()[0] == 0);
}
