// SPDX-License-Identifier: Apache-2.0
// Compress over threads at 1, 2, 3, 4 and 7 ranks; tests/distributed has the same over processes.
#include <skein/parallel/data/compress.hpp>

#include "../../support/temporary_folder.hpp"
#include "../../support/compress_option_cases.hpp"

#include <skein/comm/hierarchical/hierarchical.hpp>
#include <skein/comm/thread/spawn.hpp>

namespace sk = skein;
namespace cases = compress_option_cases;

TEST_CASE("gradients through every wire and algorithm, with the bytes of the plan", "[parallel]") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { cases::wires(world); }, {.deadline = 60}));
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { cases::algorithms(world); }, {.deadline = 60}));
}

TEST_CASE("gradients over two levels", "[parallel]") {
  CHECK_NOTHROW(sk::spawn(6,
                          [](sk::ThreadComm& world) {
                            sk::Hierarchical levels{world, 3};
                            cases::exchanges<cases::Half>(levels, 0.02);
                          },
                          {.deadline = 60}));
}

TEST_CASE("trainings through a wire", "[parallel]") {
  const support::TemporaryFolder folder;
  const int ranks = GENERATE(1, 3);
  CHECK_NOTHROW(sk::spawn(
      ranks,
      [&](sk::ThreadComm& world) {
        cases::trains<sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::TopK<8>>>>(world, folder / "top");
        cases::trains<sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::PowerSgd<2>>>>(world, folder / "power");
        // What another wire has kept is left alone.
        const auto top = sk::parallel::DataParallel{world, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::TopK<8>>>{}};
        RANK_CHECK(cases::fit(top, 1, {}, folder / "power").losses[0] > 0);
        world.barrier();
      },
      {.deadline = 60}));
}

TEST_CASE("on another number of ranks residuals are shared out", "[parallel]") {
  using Counted = sk::Counted<sk::ThreadComm>;
  using PolicyState = cases::PolicyStateOf<Counted, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::TopK<4>>>>;
  std::vector<std::byte> saved;
  std::string kind;
  std::vector<float> before, after;
  const auto total = [](sk::ThreadComm& world, const PolicyState& policy_state, std::vector<float>& to) {
    std::vector<float> sum = policy_state.exchange().residual();
    world.all_reduce(sum, sk::Sum{});
    if (world.rank() == 0) to = sum;
  };
  CHECK_NOTHROW(sk::spawn(3,
                          [&](sk::ThreadComm& world) {
                            Counted counted{world};
                            cases::AfterAStep<PolicyState> rank(counted);
                            PolicyState& policy_state = rank.policy_state;
                            policy_state.before_save();
                            if (world.rank() == 0) saved = sk::train::to_bytes(policy_state), kind = policy_state.saved_as();
                            total(world, policy_state, before);
                          },
                          {.deadline = 60}));
  CHECK_NOTHROW(sk::spawn(2,
                          [&](sk::ThreadComm& world) {
                            Counted counted{world};
                            cases::Arena arena;
                            PolicyState policy_state(counted, sk::parallel::DataParallelOptions{}, arena.replica());
                            policy_state.start();
                            sk::train::from_bytes(std::span<const std::byte>(saved), policy_state);
                            total(world, policy_state, after);
                          },
                          {.deadline = 60}));
  CHECK(kind.starts_with("Wire<"));  // the word of older files
  REQUIRE(before.size() == after.size());
  CHECK(*std::max_element(before.begin(), before.end()) > 0.1f);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i] == Approx(after[i]).margin(1e-5));
}

TEST_CASE("what a training has kept is forgotten where a file has nothing of it", "[parallel]") {
  using PolicyState = cases::PolicyStateOf<sk::ThreadComm, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::TopK<4>>>>;
  CHECK_NOTHROW(sk::spawn(2,
                          [&](sk::ThreadComm& world) {
                            cases::AfterAStep<PolicyState> rank(world);
                            PolicyState& policy_state = rank.policy_state;
                            const std::vector<float> kept = policy_state.exchange().residual();
                            RANK_CHECK(*std::max_element(kept.begin(), kept.end()) > 0.1f);
                            policy_state.forget();
                            const std::vector<float> now = policy_state.exchange().residual();
                            RANK_CHECK(now == std::vector<float>(kept.size(), 0.0f));
                          },
                          {.deadline = 60}));
}

TEST_CASE("residuals are taken of a file whose compressor has learnt another number of directions", "[parallel]") {
  using Two = cases::PolicyStateOf<sk::ThreadComm, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::PowerSgd<2>>>>;
  using One = cases::PolicyStateOf<sk::ThreadComm, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::PowerSgd<1>>>>;
  CHECK_NOTHROW(sk::spawn(2,
                          [&](sk::ThreadComm& world) {
                            cases::AfterAStep<Two> rank(world);
                            Two& two = rank.policy_state;
                            two.before_save();
                            const std::vector<std::byte> saved = sk::train::to_bytes(two);
                            world.barrier();
                            cases::Arena arena;
                            One one(world, sk::parallel::DataParallelOptions{}, arena.replica());
                            one.start();
                            sk::train::from_bytes(std::span<const std::byte>(saved), one);
                            RANK_CHECK(one.exchange().residual() == two.exchange().residual());
                          },
                          {.deadline = 60}));
}

TEST_CASE("residuals are of one size whatever the batches of a step are", "[parallel]") {
  // 5 batches of 8, four to a step, are one batch of 32 and one of 8: what one step has left out counts as much in the next.
  const auto weights = [](int batch, int accumulate) {
    std::vector<float> all;
    sk::spawn(2, [&](sk::ThreadComm& world) {
      const std::vector<float> x(40, 0.5f), y(40, 2.0f);  // alike, so that it does not matter which rank has which
      sk::Model<sk::nn::Sequential<sk::nn::Linear<20>, sk::nn::Tanh, sk::nn::Linear<1>>, sk::Shape<1>> model{sk::Seed{5}};
      sk::Trainer trainer{
          model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.05f},
          sk::parallel::DataParallel{world, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::TopK<8>>>{}}};
      trainer.fit(sk::data::from_tensors(x, sk::Extents{1, {1}}, y),
                  {.epochs = 6, .batch = batch, .progress = false, .threads = 1, .step = {.accumulate = accumulate}});
      if (world.rank() == 0) all.assign(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
    });
    return all;
  };
  const std::vector<float> whole = weights(32, 1), parts = weights(8, 4);
  REQUIRE(whole.size() == parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(parts[i] == Approx(whole[i]).margin(1e-5));
}

TEST_CASE("a training goes on with buckets of another size", "[parallel]") {
  using PolicyState =
      cases::PolicyStateOf<sk::ThreadComm, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::PowerSgd<2>>>>;
  // Each matrix has a compressor of its own, so that buckets change nothing: the gradients of the second step, in the order of
  // the parameters.
  const auto second_step = [](long saved_with, long goes_on_with) {
    std::vector<std::byte> saved;
    std::vector<float> gradients;
    const auto steps = [&](long bucket_bytes, int number) {
      CHECK_NOTHROW(sk::spawn(2,
                              [&](sk::ThreadComm& world) {
                                cases::Arena arena;
                                PolicyState policy_state(world, {.bucket_bytes = bucket_bytes}, arena.replica());
                                policy_state.start();
                                if (number > 0) sk::train::from_bytes(std::span<const std::byte>(saved), policy_state);
                                arena.fill(world.rank(), number, 0);
                                cases::step(policy_state, arena);
                                policy_state.before_save();
                                world.barrier();
                                if (world.rank() == 0) saved = sk::train::to_bytes(policy_state), gradients = arena.gradients;
                              },
                              {.deadline = 60}));
    };
    steps(saved_with, 0);
    steps(goes_on_with, 1);
    return gradients;
  };
  const long one = 1 << 20, many = 1;
  const std::vector<float> expected = second_step(one, one);
  CHECK(second_step(many, many) == expected);
  CHECK(second_step(one, many) == expected);
  CHECK(second_step(many, one) == expected);
}

TEST_CASE("what all ranks' residuals take is memory of the rank that writes them alone", "[parallel]") {
  using PolicyState = cases::PolicyStateOf<sk::ThreadComm, sk::parallel::Compress<sk::comm::ErrorFeedback<sk::comm::TopK<4>>>>;
  std::vector<std::size_t> kept(3), own(3);
  CHECK_NOTHROW(sk::spawn(3,
                          [&](sk::ThreadComm& world) {
                            cases::AfterAStep<PolicyState> rank(world);
                            PolicyState& policy_state = rank.policy_state;
                            const auto r = static_cast<std::size_t>(world.rank());
                            const std::size_t nothing = sk::train::to_bytes(policy_state).size();
                            policy_state.before_save();
                            kept[r] = sk::train::to_bytes(policy_state).size() - nothing;
                            own[r] = sizeof(float) * policy_state.exchange().residual().size();
                          },
                          {.deadline = 60}));
  CHECK(own[0] > 0);
  CHECK(kept == std::vector<std::size_t>{3 * own[0], 0, 0});
}

TEST_CASE("by size: the communicator's own all-reduce where it is cheaper, else the cheapest table", "[parallel]") {
  using sk::parallel::BySize;
  const sk::plan::Network network{.near = {1e-6, 1e-9}, .far = {1e-5, 1e-8}, .node = 4};
  const BySize slow{{}, {network, {1e-3, 1e-6}}}, quick{{}, {network, {1e-9, 1e-15}}};
  for (const double bytes : {4e2, 4e4, 4e7}) {
    CHECK_FALSE(slow.own(16, bytes));
    CHECK(quick.own(16, bytes));
  }
  CHECK(slow.table(16, 100).choice.algorithm == sk::plan::AllReduceAlgorithm::recursive_doubling);
  CHECK(slow.table(16, 10000000).choice.algorithm == sk::plan::AllReduceAlgorithm::torus);
  CHECK_THROWS_WITH(sk::parallel::Torus<4>{}.check(6),
                    Catch::Contains("Algorithm<Torus<4>>: the columns must divide the ranks; there are 6 ranks"));
  CHECK_NOTHROW(sk::parallel::Torus<3>{}.check(6));
}
