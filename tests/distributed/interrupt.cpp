// SPDX-License-Identifier: Apache-2.0
// A signal to one process of several that train: all end after the same step, and the next start goes on with the same bits.
#include <csignal>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/trainer.hpp>

#include <catch2/catch.hpp>

#include "../support/points.hpp"
#include "../support/seed_of_start.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Linear<13>, nn::Dropout<sk::Rate<1, 4>>, nn::Linear<3>>;

struct Result {
  std::vector<float> weights;
  std::int64_t steps = 0;
  std::string interrupted;
};
/// `raises`: the step after which the last rank gets SIGUSR1; 0: none does.
Result fit(sk::MpiComm& world, const std::string& folder, std::int64_t raises) {
  const support::Points points(280, {1, {5}});
  sk::Model<Net, sk::Shape<5>> model{support::seed_of_start(folder)};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, sk::parallel::DataParallel{world}};
  sk::FitOptions o{.epochs = 3, .batch = 14, .progress = false, .threads = 1, .interrupt = {.also = SIGUSR1}};
  if (!folder.empty()) o.checkpoint = {.folder = folder};
  struct Raise {
    std::int64_t at;
    void on_update(std::int64_t step) const {
      if (at > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (step == at) ::raise(SIGUSR1);
    }
  };
  o.callbacks.add(Raise{world.rank() == world.size() - 1 ? raises : raises > 0 ? 1000 : 0});
  Result r;
  try {
    trainer.fit(points.set(), o);
  } catch (const sk::Interrupted& e) { r.interrupted = e.what(); }
  r.steps = trainer.train_step().steps();
  r.weights.assign(model.parameters().begin(), model.parameters().end());
  return r;
}
}  // namespace

TEST_CASE("a signal to one process ends the fit on all after one step, and the next start goes on with the same bits",
          "[distributed]") {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 4) return;
  sk::CommOptions options;
  options.shared_memory = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, options};
  const support::TemporaryFolder own;
  const std::string folder = world.broadcast(own / "run", 0);
  const Result whole = fit(world, "", 0), cut = fit(world, folder, 7);
  CHECK_THAT(cut.interrupted, Catch::Contains("fit: SIGUSR1 ended it after step " + std::to_string(cut.steps) +
                                              "; the training is saved in " + folder));
  CHECK(cut.steps >= 7);
  CHECK(cut.steps < whole.steps);
  world.assert_same("the step of the end", static_cast<std::uint64_t>(cut.steps));
  const Result end = fit(world, folder, 0);
  CHECK(end.interrupted.empty());
  CHECK(end.steps == whole.steps);
  CHECK(end.weights == whole.weights);
  world.barrier();
}

TEST_CASE("a signal to a server alone, or to one process that trains, ends all", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() < 2 || world.size() > 4) return;
  for (const int to : {0, world.size() - 1}) {  // the last one serves
    const std::vector<float> x(200 * 5, 1.0f);
    const std::vector<std::int32_t> labels(200);
    sk::Model<Net, sk::Shape<5>> model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}, sk::parallel::ParameterServer{world}};
    sk::FitOptions o{.epochs = 30, .batch = 4, .progress = false, .threads = 1, .interrupt = {.also = SIGUSR1}};
    struct Sleeps {
      int tells;  // the rank that gets a signal once the server has answered, and so listens; -1: none
      void on_update(std::int64_t step) const {
        if (step == 3 && tells >= 0) MPI_Send("x", 1, MPI_CHAR, tells, 0, MPI_COMM_WORLD);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    };
    o.callbacks.add(Sleeps{world.rank() == 0 ? to : -1});
    const auto begin = std::chrono::steady_clock::now();
    std::thread sends([&] {
      if (world.rank() != to) return;
      char begun = 0;
      MPI_Recv(&begun, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ::raise(SIGUSR1);
    });
    int signal = 0;
    try {
      trainer.fit(sk::data::from_tensors(x, sk::Extents{1, {5}}, labels), o);
    } catch (const sk::Interrupted& e) { signal = e.signal(); }
    sends.join();
    CHECK(signal == SIGUSR1);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(12));  // an epoch takes 1 s, all of them 30
    world.barrier();
  }
}
