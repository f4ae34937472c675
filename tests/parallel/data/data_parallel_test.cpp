// SPDX-License-Identifier: Apache-2.0
// DataParallel over threads at 1, 2, 3, 4 and 7 ranks; tests/distributed has the same over processes.
#include "../../support/at_every_size.hpp"
#include "../../support/data_parallel_cases.hpp"

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/gradient_workers.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/parallel/data/sync_every.hpp>

namespace cases = data_parallel_cases;
namespace sk = skein;

using support::at_every_size;

namespace {
/// Two ranks in name: writes down what is exchanged.
struct Noted {
  struct Request {
    void wait() {}
    bool poll() { return true; }
  };
  std::vector<std::size_t> sizes;
  int size() const { return 2; }
  Request start_all_reduce(sk::DeviceSpan<float> values, sk::Sum) {
    sizes.push_back(values.size);
    return {};
  }
};
/// Has memory for what is shared, and says how much was wanted.
struct Sharing : sk::SelfComm {
  static constexpr sk::comm::Capabilities capabilities{sk::comm::Capability::nodes, sk::comm::Capability::shares};
  sk::comm::SharedPages share(std::size_t bytes) {
    wanted = bytes;
    if (bytes == 0) return {};
    const auto memory = std::make_shared<sk::Arena<double>>((bytes + 7) / 8);
    weak = memory;
    return {std::shared_ptr<void>(memory, memory->data()), bytes};
  }
  std::size_t wanted = 1;
  std::weak_ptr<sk::Arena<double>> weak{};
};
}  // namespace

TEST_CASE("gradients lie where the communicator shares memory, as long as the model has them", "[parallel]") {
  Sharing world;
  using sk::parallel::DataParallel;
  const auto bound = [&](auto& model, const auto& policy) {
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, policy};
    return world.weak.lock() && static_cast<void*>(model.gradient_arena().data) == world.weak.lock()->data();
  };
  {
    cases::Model model, other;
    CHECK(bound(model, DataParallel{world}));
    CHECK(world.wanted == model.gradient_arena().size * sizeof(double));
    CHECK_FALSE(world.weak.expired());
    CHECK(static_cast<const cases::Model&>(model).gradients().size == model.gradients().size);
    cases::Model moved = std::move(model);
    CHECK(static_cast<void*>(moved.gradient_arena().data) == world.weak.lock()->data());
    (void)other.gradients();
    CHECK_FALSE(bound(other, DataParallel{world}));  // they were there
    CHECK(world.wanted == 0);
  }
  CHECK(world.weak.expired());
  world.wanted = 1;
  cases::Model whole;
  CHECK_FALSE(bound(whole, DataParallel{world, sk::parallel::Sharded<2>{}}));  // its gradients are scattered
  CHECK(world.wanted == 0);
  cases::Model composed;
  CHECK(bound(composed, sk::parallel::Compose{DataParallel{world}}));
}

TEST_CASE("data-parallel training agrees with the serial run", "[parallel]") {
  at_every_size([](auto& w) { cases::agrees_with_serial(w); });
}
TEST_CASE("accumulation agrees with larger batches", "[parallel]") {
  at_every_size([](auto& w) { cases::accumulates(w); });
}
TEST_CASE("Reduce::Sum multiplies the step by the ranks", "[parallel]") {
  at_every_size([](auto& w) { cases::sums(w); });
}
TEST_CASE("weights start as those of rank 0", "[parallel]") {
  at_every_size([](auto& w) { cases::broadcasts(w); });
}
TEST_CASE("shards of other sizes on each rank", "[parallel]") {
  at_every_size([](auto& w) { cases::local_shards(w); });
}
TEST_CASE("buffers are the same on all ranks", "[parallel]") {
  at_every_size([](auto& w) { cases::keeps_buffers_together(w); });
}
TEST_CASE("ranks whose models differ refuse to start", "[parallel]") {
  at_every_size([](auto& w) { cases::refuses_other_models(w); });
}

TEST_CASE("ranks whose options that are types differ refuse to start, and are named", "[parallel]") {
  const auto start = [](const auto& policy) { policy.bind(sk::parallel::Replica<float, sk::Cpu>{}).start(); };
  const auto of_two = [&](const auto& usual, const auto& other) {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      using sk::parallel::DataParallel;
      if (world.rank() == 0) start(DataParallel{world, usual});
      else start(DataParallel{world, other});
    });
  };
  using sk::parallel::SyncEvery;
  CHECK_THROWS_WITH(of_two(SyncEvery<4>{}, SyncEvery<3>{}),
                    Catch::Contains("the options of DataParallel is SyncEvery<4> on rank 0, SyncEvery<3> on rank 1"));
  CHECK_THROWS_WITH(of_two(sk::parallel::SyncBatchNorm{}, sk::parallel::DataParallelOptions{}),
                    Catch::Contains("the options of DataParallel is SyncBatchNorm on rank 0, none on rank 1"));
  using sk::parallel::GradientWorkers, sk::parallel::Reproducible;
  CHECK_THROWS_WITH(of_two(GradientWorkers<sk::parallel::OneRank>{}, GradientWorkers<sk::parallel::Fraction<1, 2>>{}),
                    Catch::Contains("the options of DataParallel is GradientWorkers<OneRank> on rank 0, "
                                    "GradientWorkers<Fraction<1, 2>> on rank 1"));
  CHECK_THROWS_WITH(of_two(Reproducible<8>{}, Reproducible<4>{}),
                    Catch::Contains("the options of DataParallel is Reproducible<8> on rank 0, Reproducible<4> on rank 1"));
}

TEST_CASE("the first bucket is complete before backward ends, but not without polling", "[parallel]") {
  const auto overlap = [](sk::ThreadComm& world) {
    RANK_CHECK(cases::first_bucket_overlaps(world, true));
    RANK_CHECK(!cases::first_bucket_overlaps(world, false));
  };
  CHECK_NOTHROW(sk::spawn(2, overlap, {.deadline = 120}));
}

TEST_CASE("a world of one needs no communicator's help", "[parallel]") {
  sk::SelfComm self;
  cases::agrees_with_serial(self);
}

namespace {
struct NamesBuckets {
  static constexpr sk::comm::Capabilities capabilities{sk::comm::Capability::bucket_sizes};
  static constexpr long bucket_bytes = 400, first_bucket_bytes = 40;
};
}  // namespace
TEST_CASE("buckets are as large as the communicator likes, unless the program says a size", "[parallel]") {
  using sk::parallel::bucket_size;
  CHECK((bucket_size<Noted, float>({}).at_least == 32768 && bucket_size<Noted, float>({}).first == 32768));
  CHECK((bucket_size<NamesBuckets, float>({}).at_least == 100 && bucket_size<NamesBuckets, float>({}).first == 10));
  CHECK((bucket_size<NamesBuckets, double>({.bucket_bytes = 64}).at_least == 8));
  CHECK((bucket_size<NamesBuckets, double>({.bucket_bytes = 1}).first == 1));
}

TEST_CASE("a step that was broken off and begins anew exchanges all its gradients", "[parallel]") {
  Noted world;
  std::vector<float> gradients(16 + 32 + 4);
  std::vector<sk::plan::LayerNode> layers(2);
  layers[0].parameters = 16;
  layers[1].parameter = 16;
  layers[1].parameters = 32;
  sk::parallel::Replica<float, sk::Cpu> replica;
  replica.gradients = {gradients.data(), gradients.size()};
  replica.layers = layers;
  sk::parallel::DataParallelPolicyState<Noted, float, sk::Cpu> policy_state(world, {.bucket_bytes = 64, .poll = false}, replica);
  policy_state.gradient_ready(16, 52);  // then something is thrown
  policy_state.gradient_ready(16, 52);
  policy_state.gradient_ready(0, 16);
  policy_state.finish_gradients();
  policy_state.gradient_ready(0, 52);
  policy_state.finish_gradients();
  CHECK(world.sizes == std::vector<std::size_t>{36, 36, 16, 36, 16});
}
