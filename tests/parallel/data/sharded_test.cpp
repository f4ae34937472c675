// SPDX-License-Identifier: Apache-2.0
// Sharded over threads; tests/distributed/shards.cpp trains so over processes.
#include "../../support/at_every_size.hpp"
#include "../../support/sharded_cases.hpp"

namespace cases = sharded_cases;
namespace sk = skein;

using support::at_every_size;

TEST_CASE("sharded training has the weights of DataParallel", "[parallel]") {
  at_every_size([](auto& w) { cases::agrees_with_data_parallel(w); });
}
TEST_CASE("each rank keeps its part of the optimizer's state", "[parallel]") {
  at_every_size([](auto& w) { cases::state_is_a_part(w); });
}
TEST_CASE("slices end at parameters where a transform wants those whole", "[parallel]") {
  at_every_size([](auto& w) { cases::slices_end_at_parameters(w); });
}
TEST_CASE("the checkpoint of a sharded training is whole", "[parallel]") {
  const support::TemporaryFolder folder;
  at_every_size([&](auto& w) {
    cases::checkpoints_are_whole(w, folder / "training");
    cases::a_slice_may_be_all(w, folder / std::to_string(w.size()));
  });
}

TEST_CASE("ranks of which one shards its state are told so, and not that their models differ", "[parallel]") {
  using sk::parallel::DataParallel, sk::parallel::Sharded;
  namespace optim = sk::optim;
  const auto of_two = [](const auto& usual, const auto& other, const auto& optimizer, const auto& others) {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      cases::Model model{sk::Seed{1}};
      const auto start = [&](const auto& by, const auto& policy) { sk::Trainer(model, sk::nn::CrossEntropy{}, by, policy); };
      if (world.rank() == 0) start(optimizer, DataParallel{world, usual});
      else start(others, DataParallel{world, other});
    });
  };
  const sk::parallel::DataParallelOptions none{};
  const optim::Sgd sgd{};
  CHECK_THROWS_WITH(of_two(Sharded<1>{}, none, sgd, sgd),
                    Catch::Contains("the options of DataParallel is Sharded<1> on rank 0, none on rank 1") &&
                        !Catch::Contains("the model (network"));
  CHECK_THROWS_WITH(of_two(none, Sharded<2>{}, sgd, sgd),
                    Catch::Contains("the exchange of DataParallel is all-reduce on rank 0, reduce-scatter on rank 1") &&
                        !Catch::Contains("the model (network"));
  CHECK_THROWS_WITH(of_two(Sharded<1>{}, Sharded<1>{}, optim::chain(optim::Lars{}, sgd), sgd),
                    Catch::Contains("the slices that ranks update") && !Catch::Contains("the model (network"));
}
