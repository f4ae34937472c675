// SPDX-License-Identifier: Apache-2.0
// A job that a batch system puts back into its queue: at the signal that comes before the time limit the training stops after its
// step and saves, and the job's next start goes on from there.
// ctest on 2 ranks: --epochs 2
#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

// [quote callback]
volatile std::sig_atomic_t signalled = 0;

struct StopAtSignal {
  void on_step_end(const sk::train::StepRecord&, sk::train::FitControl& control) {
    if (signalled) control.stop("the job's time is almost over");
  }
};
// [end]

struct Options {
  int epochs = 4;
  void flags(sk::Flags& f) { f("epochs", epochs, "epochs of the whole training"); }
};

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    // [quote main]
    std::signal(SIGUSR1, [](int) { signalled = 1; });
    sk::MpiComm world{argc, argv};
    // [end]
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}, sk::parallel::DataParallel{world}};
    // [quote fit]
    const char* file = "requeue.skein";
    if (std::getenv("SLURM_RESTART_COUNT") && std::filesystem::exists(file)) trainer.load(file);  // not the job's first start
    const std::int64_t each = (digits.size() + 49) / 50;  // the last batch of an epoch may be a smaller one
    const std::int64_t begun = trainer.train_step().steps(), steps = o.epochs * each;
    if (begun < steps)  // else the signal came in the last step
      trainer.fit(digits, {.epochs = o.epochs, .batch = 50, .callbacks = {StopAtSignal{}}});
    trainer.save(file);
    // [end]
    if (world.rank() == 0)
      std::printf("%d ranks, from step %ld to %ld\n", world.size(), static_cast<long>(begun),
                  static_cast<long>(trainer.train_step().steps()));
  });
}
