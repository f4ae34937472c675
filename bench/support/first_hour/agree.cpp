// SPDX-License-Identifier: Apache-2.0
// What the ranks of a fit compare before its first step, with its data sets of 60,000 and 10,000 samples: prints the median of
// the seconds that rank 0 of two takes for it, and the collectives of one comparison.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <skein/comm/counted.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/synthetic_digits.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/adamw.hpp>
#include <skein/parallel/comm_policy_state.hpp>
#include <skein/train/agreement.hpp>

namespace sk = skein;

int main() {
  constexpr int times = 200;
  std::vector<double> seconds;
  long collectives = 0;
  const auto train = sk::data::synthetic_digits(60000, sk::Seed{1}), test = sk::data::synthetic_digits(10000, sk::Seed{2});
  sk::spawn(2, [&](sk::ThreadComm& world) {
    sk::Counted<sk::ThreadComm> counted{world};
    sk::parallel::CommPolicyState<sk::Counted<sk::ThreadComm>, float, sk::Cpu> ranks{counted, {}};
    const sk::FitOptions options{.epochs = 90, .batch = 256, .schedule = sk::optim::cosine(100000), .clip_norm = 1};
    for (int i = 0; i < times; ++i) {
      world.barrier();
      const auto begin = std::chrono::steady_clock::now();
      sk::train::Agreement own;  // as Trainer::fit makes it
      sk::train::describe(options, own.all);
      sk::optim::describe(sk::optim::AdamW{}, own.all);
      sk::train::describe(sk::optim::Groups{sk::optim::no_decay_on_biases_and_norms()}, own.all);
      sk::nn::describe(sk::nn::CrossEntropy{}, own.all);
      sk::train::describe(train, "training", true, own.training);
      sk::train::describe(test, "validation", true, own.training);
      sk::train::describe(sk::train::TrainingPosition{}, 0, own.training);
      sk::train::agree("fit", ranks, own);
      if (world.rank() == 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    if (world.rank() == 0) collectives = counted.counts().collectives / times;
  });
  std::nth_element(seconds.begin(), seconds.begin() + times / 2, seconds.end());
  std::printf("%.9f %ld\n", seconds[times / 2], collectives);
}
