// SPDX-License-Identifier: Apache-2.0
// The real policy code over a simulated network: the bits of real ranks, and times that can be computed by hand.
#include <skein/parallel/simulate/simulated.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using namespace sk::parallel;

namespace {
using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<32>,
                                           sk::nn::Relu, sk::nn::Linear<1>>,
                        sk::Shape<1>>;
constexpr int steps = 6;

auto wave() {
  std::vector<float> x(96), y(96);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 24 - 2, y[i] = std::sin(x[i]);
  return sk::data::from_tensors(x, y);
}
/// Two epochs of three steps; losses of all steps.
template <class Policy> std::vector<double> train(const Policy& policy) {
  auto data = wave();
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, policy};
  return trainer
      .fit(data, {.epochs = 2,
                  .batch = 32,
                  .record_steps = true,
                  .progress = false,
                  .threads = 1,
                  .compute = {.execution = sk::Execution::layer_wise}})
      .losses();
}
}  // namespace

TEST_CASE("a simulated training has the losses of a real one, bit for bit", "[simulated]") {
  for (const int ranks : {1, 3}) {
    std::vector<double> real, simulated;
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      const auto losses = train(DataParallel{world, {.bucket_bytes = 256}});
      if (world.rank() == 0) real = losses;
    });
    const sk::SimReport report = sk::simulate(ranks, {}, [&](sk::SimComm& world) {
      const auto losses = train(sk::parallel::Simulated{DataParallel{world, {.bucket_bytes = 256}}, world, {1e-3, 2e-3, 1e-4}});
      if (world.rank() == 0) simulated = losses;
    });
    REQUIRE(real.size() == steps);
    CHECK(simulated == real);
    CHECK(report.ranks[0].compute == Approx(steps * 3.1e-3));
    CHECK((report.seconds() > steps * 3.1e-3 + 1e-6) == (ranks > 1));
    CHECK(report.seconds() < steps * 3.1e-3 + 1e-3);  // messages of microseconds
  }
}

TEST_CASE("a policy that exchanges no gradients goes by the clock too", "[simulated]") {
  std::vector<double> real, simulated;
  sk::spawn(3, [&](sk::ThreadComm& world) {
    const auto losses = train(ModelAverage{world, Period<2>{}});
    if (world.rank() == 0) real = losses;
  });
  const sk::SimReport report = sk::simulate(3, {}, [&](sk::SimComm& world) {
    const auto losses = train(sk::parallel::Simulated{ModelAverage{world, Period<2>{}}, world, {1e-3, 2e-3, 1e-4}});
    if (world.rank() == 0) simulated = losses;
  });
  REQUIRE(real.size() == steps);
  CHECK(simulated == real);
  CHECK(report.ranks[0].compute == Approx(steps * 3.1e-3));
}

TEST_CASE("a step on the clock: compute, the ring, and what of it is hidden behind the backward pass", "[simulated]") {
  const ComputeTimes times{0.5, 1, 0.25};
  const double beta = 1e-4;
  const auto seconds = [&](long bucket_bytes, double slow) {
    return sk::simulate(
               2, {.network = {{0, beta}, {0, beta}, 0, 0}, .algorithm = sk::plan::AllReduceAlgorithm::ring, .slow = {1, slow}},
               [&](sk::SimComm& world) {
                 train(sk::parallel::Simulated{DataParallel{world, {.bucket_bytes = bucket_bytes}}, world, times});
               })
        .seconds();
  };
  const double bytes = 4.0 * static_cast<double>(Model::sizes.stored + sk::gradient_tail),
               sync = beta * bytes;  // 2 messages of half
  // Before the first step ranks compare what they are and share the weights, of about the bytes of a step's gradients.
  const double whole = seconds(1 << 20, 1) / steps, cut = seconds(256, 1) / steps;
  CHECK(whole == Approx(times.step() + sync).epsilon(0.15));
  CHECK(whole > times.step() + sync);
  CHECK(whole - cut > 0.3 * sync);  // the last layers' buckets travel while the first layers compute
  CHECK(cut > times.step());
  // One rank that is three times as slow makes all wait.
  CHECK(seconds(1 << 20, 3) / steps == Approx(3 * times.step() + sync).epsilon(0.15));
}

TEST_CASE("the cost of a step is that of the policy on the clock", "[simulated]") {
  for (const long bucket_bytes : {256L, 5000L, 1L << 20})
    for (const int ranks : {2, 4}) {
      const sk::plan::Network network{{1e-2, 1e-5}, {1e-2, 1e-5}, 0, 1e-6};
      const auto run = [&](int epochs) {
        return sk::simulate(
                   ranks, {.network = network},
                   [&](sk::SimComm& world) {
                     auto data = wave();
                     Model model{sk::Seed{3}};
                     sk::Trainer trainer{
                         model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.05f},
                         sk::parallel::Simulated{DataParallel{world, {.bucket_bytes = bucket_bytes}}, world, {0.5, 1, 0.25}}};
                     trainer.fit(data, {.epochs = epochs,
                                        .batch = 32,
                                        .progress = false,
                                        .threads = 1,
                                        .compute = {.execution = sk::Execution::layer_wise}});
                   })
            .seconds();
      };
      const sk::plan::StepWork work{
          Model::program.layers(), Model::sizes.stored + sk::gradient_tail, 4, {0.5, 1, 0.25}, bucket_bytes};
      const sk::plan::StepCost cost = sk::plan::step_cost(work, network, ranks);
      INFO(ranks << " ranks, " << cost.buckets << " buckets");
      const double epoch = run(3) - run(2);  // three steps, and the sum of a stop's votes
      CHECK(epoch / 3 == Approx(cost.seconds()).epsilon(0.02));
    }
}

TEST_CASE("virtual workers: 16 ranks of this process, each with a model and gradients of its own", "[simulated]") {
  auto data = wave();
  double seconds = 0, waited = 0;
  // [quote virtual_workers]
  const sk::plan::Network network{.near = {2e-6, 5e-11}, .far = {1e-5, 1e-10}, .node = 8};  // seconds a message, and a byte
  const sk::SimReport report = sk::simulate(16, {.network = network, .slow = {1.5}, .jitter = 0.05}, [&](sk::SimComm& world) {
    Model model{sk::Seed{3}};  // rank 0 takes half as long again to compute
    const auto policy = sk::parallel::Simulated{DataParallel{world}, world, sk::parallel::compute_times(1e-3)};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, policy};
    trainer.fit(data, {.epochs = 2, .batch = 32, .progress = false, .threads = 1});
    if (world.rank() == 0) seconds = world.now();
  });
  waited = report.ranks[1].waited;  // and text(): "simulated: 16 ranks, 0.0102 s; of a rank ..."
  // [end]
  CHECK(seconds > 6 * 1.5e-3 * 0.9);
  CHECK(waited > 6 * 0.5e-3 * 0.8);
  CHECK_THAT(report.text(), Catch::Contains("simulated: 16 ranks"));
}

TEST_CASE("the backward pass goes by the flops of its layers, from the back", "[simulated]") {
  const auto share = [](long front) { return sk::plan::backward_share(Model::program.layers(), front); };
  const double all = 32 + 2 * 32 * 32 + 32;
  const long second = Model::parameter("2.weight").offset, last = Model::parameter("6.weight").offset;
  CHECK(share(Model::sizes.stored) == 0);
  CHECK(share(last) == Approx(32 / all).epsilon(0.1));
  CHECK(share(second) == Approx(1 - 32 / all).epsilon(0.1));
  CHECK(share(0) == 1);
  CHECK(compute_times(3).step() == Approx(3));
  CHECK_THROWS_WITH(sk::simulate(1, {},
                                 [](sk::SimComm& world) {
                                   (void)sk::parallel::Simulated{SingleProcess{}, world, {-1, 0, 0}};
                                 }),
                    Catch::Contains("times to compute are 0 or more"));
}

namespace {
/// A server that has nothing to do but to ask for a signal.
struct AskingServer : PolicyState {
  static constexpr Capabilities capabilities{Capability::serves_updates};
  int* heard;
  explicit AskingServer(int& where) : heard(&where) {}
  Replica<float, sk::Cpu> replica() const { return {}; }
  bool serves() const { return true; }
  void serve(const UpdateCallback& update) { *heard = update.signal(); }
};
}  // namespace

TEST_CASE("a server on the clock hears of its rank's signal", "[simulated]") {
  sk::simulate(1, {}, [](sk::SimComm& world) {
    int sent = 15, got = 0;
    SimulatedPolicyState<sk::SimComm, AskingServer> server(AskingServer(got), world, {}, {});
    server.serve({&sent, [](void*, const ShardUpdate&) {}, 0, nullptr, [](void* object) { return *static_cast<int*>(object); }});
    CHECK(got == 15);
  });
}
