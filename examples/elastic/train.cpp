// SPDX-License-Identifier: Apache-2.0
// A training that goes on after a failure, started by whatever starts it again: mpirun, torchrun or Slurm (the scripts beside
// this). Each start goes on from the newest commit, with as many ranks as there are then. It ends with 0 when it is done, with
// 128 + the signal where one has ended it after a commit (SIGTERM; SIGUSR1, which Slurm sends before the time limit), and with 1
// or 2 after an error.
// ctest: not run
#include <skein/gloo.hpp>
#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include <csignal>
#include <cstdio>
#include <thread>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

struct Options {
  std::string folder = "run";
  int epochs = 4, every = 10, pause = 0;
  void flags(sk::Flags& f) {
    f("folder", folder, "of the commits, which all ranks see; empty: none, and a killed training begins anew");
    f("epochs", epochs, "epochs of the whole training");
    f("every", every, "steps between two commits");
    f("pause", pause, "milliseconds to wait after each step, for who wants to watch");
  }
};

struct Watcher {
  int pause;
  bool says, said = false;
  void on_step_end(const sk::train::StepRecord& r, sk::train::FitControl&) {
    if (says && !said) std::printf("first step: %ld\n", static_cast<long>(r.step)), std::fflush(stdout);
    said = true;
    if (pause > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
};

template <class Comm> void train(Comm& world, const Options& o) {
  const auto digits = sk::data::synthetic_digits(1000, sk::Seed{1});
  sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}, sk::parallel::DataParallel{world}};
  trainer.fit(digits, {.epochs = o.epochs,
                       .batch = 40,
                       .callbacks = {Watcher{o.pause, world.rank() == 0}},
                       .checkpoint = {.folder = o.folder, .every = o.folder.empty() ? 0 : o.every, .keep = 3},
                       .interrupt = {.also = SIGUSR1}});
  const auto weights = model.parameters();
  if (world.rank() == 0)
    std::printf("%d ranks of %s, %ld steps, weights %016llx\n", world.size(), Comm::name.data(),
                static_cast<long>(trainer.train_step().steps()),
                static_cast<unsigned long long>(sk::hash_bytes(weights.data, weights.size * sizeof(float))));
}

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    if (sk::comm::launch::launch_environment().launcher == "Open MPI") {
      sk::MpiComm world{argc, argv};
      train(world, o);
    } else {
      sk::GlooComm world{argc, argv};
      train(world, o);
    }
  });
}
