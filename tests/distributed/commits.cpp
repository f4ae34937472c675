// SPDX-License-Identifier: Apache-2.0
// Commits that threads of several processes write while these train on: the bits of a training that waits, and what all are told
// where one process cannot write.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/manifest.hpp>
#include <skein/train/trainer.hpp>

#include <catch2/catch.hpp>

#include "../support/points.hpp"
#include "../support/seed_of_start.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace st = skein::train;

namespace {
using Net = nn::Sequential<nn::Linear<13>, nn::Tanh, nn::Linear<3>>;
/// Of all ranks, at a step: as if the program had been killed there; or a folder stands where the last rank's shard of step 6
/// will.
struct Broken {};
struct Breaks {
  std::int64_t at = 0;
  std::string in_the_way{};
  void on_step_end(const st::StepRecord& r, st::FitControl&) {
    if (!in_the_way.empty() && r.step == 5) std::filesystem::create_directories(in_the_way);
    if (r.step == at) throw Broken{};
  }
};
template <class Precision = float>
std::vector<float> fit(sk::MpiComm& world, const std::string& folder, bool async, Breaks breaks = {}, int accumulate = 1) {
  const support::Points points(112, {1, {5}});
  sk::Model<Net, sk::Shape<5>, sk::Cpu, Precision> model{support::seed_of_start(folder)};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f},
                      sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}}};
  sk::FitOptions o{.epochs = 2, .batch = 14, .progress = false, .threads = 1, .step = {.accumulate = accumulate}};
  o.callbacks = {breaks};
  o.checkpoint = {.folder = folder, .every = 3, .keep = 2, .async = async};
  trainer.fit(points.set(), o);
  return {model.parameters().begin(), model.parameters().end()};
}
}  // namespace

TEST_CASE("commits that are written while processes train have the bits of those that are waited for", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() > 4) return;
  const support::TemporaryFolder own;
  const std::string folder = world.broadcast(own / "run", 0);
  const std::vector<float> whole = fit(world, folder + "_whole", false);
  for (const std::int64_t step : {2, 8, 15}) CHECK_THROWS_AS(fit(world, folder, true, {.at = step}), Broken);
  CHECK(fit(world, folder, true) == whole);
  CHECK(st::CommitFolder(folder).steps() == st::CommitFolder(folder + "_whole").steps());
  world.barrier();
}

TEST_CASE("processes that train in 16 bits, and add up gradients of several batches, go on with the same bits", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() > 4) return;
  const support::TemporaryFolder own;
  const std::string folder = world.broadcast(own / "run", 0);
  const auto training = [&](auto precision, const std::string& name) {  // six steps, of three batches and of two
    using Precision = decltype(precision);
    const std::vector<float> whole = fit<Precision>(world, folder + name + "_whole", false, {}, 3);
    for (const std::int64_t step : {2, 5}) CHECK_THROWS_AS(fit<Precision>(world, folder + name, false, {.at = step}, 3), Broken);
    CHECK(fit<Precision>(world, folder + name, false, {}, 3) == whole);
  };
  training(sk::precision::bf16{}, "_bf16");
  training(sk::precision::fp16{}, "_fp16");
}

TEST_CASE("where one process cannot write its shard, all are told why, and the next start goes on", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() > 4) return;
  const support::TemporaryFolder own;
  const std::string folder = world.broadcast(own / "run", 0);
  for (const bool async : {false, true}) {
    const std::string run = folder + (async ? "_async" : ""), last = st::shard_name(world.size() - 1);
    const std::string in_the_way = world.rank() == 0 ? run + "/step_00000006.partial/" + last + ".partial" : "";
    const std::string error =
        support::thrown<sk::Error>([&] { (void)fit(world, run, async, {.at = 0, .in_the_way = in_the_way}); });
    CHECK_THAT(error, Catch::Contains("step_00000006.partial") && Catch::Contains("could not be written: ") &&
                          Catch::Contains(last + ".partial: cannot be created: Is a directory"));
    CHECK(st::CommitFolder(run).steps() == std::vector<std::int64_t>{3});
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove_all(run + "/step_00000006.partial");
    world.barrier();
    CHECK(fit(world, run, async) == fit(world, folder + "_whole" + (async ? "_async" : ""), async));
  }
  world.barrier();
}
