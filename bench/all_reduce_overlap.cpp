// SPDX-License-Identifier: Apache-2.0
// How much of the communication is hidden behind the backward pass where every bucket of gradients takes a millisecond longer: a
// network of twelve equal layers on two ranks (threads), a bucket a layer? The last bucket is ready when backward ends, so 11/12
// is the most. What the simulator says of the same step stands beside it.
#include <skein/comm/sim/delayed.hpp>
#include <skein/parallel/simulate/simulated.hpp>

#include "support/training.hpp"

namespace {
using namespace bench;
using Loss = nn::CrossEntropy;
constexpr double injected = 1e-3;  // seconds a bucket
constexpr long batch = 256;        // of both ranks

struct Deep : nn::Sequential<nn::Repeat<11, nn::Sequential<nn::Linear<512>, nn::Relu>>, nn::Linear<512>> {
  using input = sk::Shape<512>;
};
using Model = ModelOf<Deep>;

/// One rank's steps over a communicator, layer by layer.
template <class Comm> struct Steps {
  using Policy = sk::parallel::DataParallel<Comm>;
  Model model{sk::Seed{7}};
  sk::train::TrainStep<Model, Loss, sk::optim::Sgd, Policy> train_step;
  sk::data::Batch<float> samples;

  Steps(Comm& comm, const Samples<Deep, Loss>& all)
      : train_step(model, Loss{}, sk::optim::Sgd{.lr = 1e-5f}, Policy{comm, {.bucket_bytes = 512 * 512 * 4}}),
        samples(all.batch(batch / 2 * comm.rank(), batch / 2 * (comm.rank() + 1), batch)) {
    train_step.reserve({.capacity = batch / 2, .execution = sk::Execution::layer_wise, .threads = 1});
    train_step.executor().prepare(batch / 2);
  }
  void run(int n) {
    for (int i = 0; i < n; ++i) train_step.step(samples);
  }
};
}  // namespace

int main(int argc, char** argv) {
  Report report("all_reduce_overlap", options(argc, argv));
  const Samples<Deep, Loss> samples(batch);
  sk::SlowNetwork slow({{1e-9, 1e-15}, {1e-9, 1e-15}, 0, 0}, injected);
  std::vector<double> hidden, base, delayed;
  std::size_t buckets = 0;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    if (sk::available_cores() > 1) bind_to(world.rank());
    sk::Delayed<sk::ThreadComm> far(world, slow);
    Steps<sk::ThreadComm> without(world, samples);
    Steps<sk::Delayed<sk::ThreadComm>> with(far, samples);
    const auto seconds = [&](auto& steps) {
      world.barrier();
      const double begin = clock_seconds(CLOCK_MONOTONIC);
      steps.run(1);
      world.barrier();
      return clock_seconds(CLOCK_MONOTONIC) - begin;
    };
    seconds(without), seconds(with);
    for (int round = 0; round < (report.quick() ? 80 : 300); ++round) {
      const double a = seconds(with), b = seconds(without), c = seconds(without), d = seconds(with);
      if (world.rank() != 0) continue;
      buckets = with.train_step.policy_state().trace().size();
      hidden.push_back(1 - ((a + d) - (b + c)) / 2 / (static_cast<double>(buckets) * injected));
      base.push_back((b + c) / 2);
      delayed.push_back((a + d) / 2);
    }
  });
  bind_to(-1);
  const Interval share = bootstrap(hidden);
  const sk::plan::StepWork work{Model::program.layers(), Model::sizes.stored + sk::gradient_tail, 4,
                                sk::plan::compute_times(minimum(base)), 512 * 512 * 4};
  const sk::plan::StepCost cost = sk::plan::step_cost(work, {{injected, 0}, {injected, 0}, 0, 0}, 2, 1);
  Line l{.metric = "hidden of 1 ms a bucket, 12 layers of 512, 2 x 128",
         .ours = 1e3 * median(delayed),
         .peer = 1e3 * median(base),
         .peer_name = "not delayed",
         .ratio = share,
         .must = {0.70, {}, true},
         .hope = {0.90, {}, true}};
  l.add("the ratio is the hidden share; " + std::to_string(buckets) + " buckets; least " + number(1e3 * minimum(delayed)) +
        " against " + number(1e3 * minimum(base)) + "; simulated: " + number(1 - cost.exposed / cost.sync) + " hidden");
  report.add(l);
  return report.finish(buckets == 12);
}
