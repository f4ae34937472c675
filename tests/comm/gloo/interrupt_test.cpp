// SPDX-License-Identifier: Apache-2.0
// A signal to one rank of a GlooComm: all leave together, and none says that another has failed.
#include <catch2/catch.hpp>

#include <csignal>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <skein/comm/gloo/gloo_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

#include "../../support/processes.hpp"
#include "../../support/temporary_folder.hpp"

namespace sk = skein;

namespace {
struct Raise {
  bool raises;
  void on_update(std::int64_t step) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (raises && step == 5) ::raise(SIGTERM);
  }
};
}  // namespace

TEST_CASE("a signal to one rank of a GlooComm ends the fit of all after the same step") {
  sk::CommOptions options;
  options.shared_memory = GENERATE(true, false);
  const support::TemporaryFolder folder;
  const std::vector<std::string> said = support::run_processes(2, [&](int rank) -> std::string {
    ::signal(SIGTERM, SIG_DFL);  // Catch2 has a handler
    try {
      sk::GlooComm world = sk::GlooComm::from_file(folder / "meeting", rank, 2, options);
      const std::vector<float> x(500, 0.5f);
      const std::vector<std::int32_t> labels(100, 1);
      sk::Model<sk::nn::Sequential<sk::nn::Linear<3>>, sk::Shape<5>> model{sk::Seed{1}};
      sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
      sk::FitOptions o{.epochs = 200, .batch = 10, .progress = false, .threads = 1};
      o.callbacks.add(Raise{rank == 1});
      trainer.fit(sk::data::from_tensors(x, sk::Extents{1, {5}}, labels), o);
    } catch (const sk::Interrupted& e) { return e.what(); }
    return "not interrupted";
  });
  CHECK_THAT(said[0], Catch::Contains("fit: SIGTERM ended it after step"));
  CHECK(said[0] == said[1]);
}
