// SPDX-License-Identifier: Apache-2.0
// LeNet-5 on MNIST, data-parallel: the same program alone, under `mpirun -n N` as N processes, and with --threads-as-ranks N as
// N threads of one process. The global batch is the same, and so is the loss curve (to rounding).
// ctest: --epochs 1
// ctest on 2 ranks: --epochs 1
// ctest: --epochs 1 --threads-as-ranks 2
// ctest expects: test accuracy 9[5-9]
// ctest: --epochs 1 --samples 5
// ctest expects: accuracy .* after 1 epochs .* global batch 5,
// ctest: --save no/such/folder/training.skein
// ctest expects: rank 0: no/such/folder/training.skein.partial: cannot be created
#include <algorithm>
#include <cstdio>
#include <string>

#include <skein/mpi.hpp>
#include <skein/skein.hpp>
namespace sk = skein;

// clang-format off
struct LeNet : sk::nn::Sequential<
    sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,      // (14, 14, 6)
    sk::nn::Conv2d<16, sk::Kernel<5>>,                sk::nn::Relu, sk::nn::MaxPool2d<2>,      // (5, 5, 16)
    sk::nn::Flatten, sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>> {};
// clang-format on

struct Options {
  std::string data, save, history;
  int epochs = 5, threads_as_ranks = 0;
  long batch = 128, samples = 0;
  float lr = 0.05f;

  void flags(sk::Flags& f) {
    f("data", data, "folder of MNIST; without it, where mnist() looks");
    f("epochs", epochs, "passes over the training data").at_least(1);
    f("batch", batch, "samples of a step, over all ranks").at_least(1);
    f("lr", lr, "learning rate").at_least(0);
    f("threads-as-ranks", threads_as_ranks, "so many threads of this process; 0: the processes of mpirun").at_least(0);
    f("samples", samples, "train with so many; 0: all").at_least(0);
    f("save", save, "file of the training");
    f("history", history, "writes NAME.svg and NAME.csv");
  }
};

/// A file that cannot be written is refused before the training, which would be lost. Throws FileError; leaves nothing behind.
void try_to_write(const std::string& file) { const sk::AtomicFile tried(file); }

template <class Comm> void run(Comm& world, const Options& o) {
  if (world.rank() == 0 && !o.save.empty()) try_to_write(o.save);
  if (world.rank() == 0 && !o.history.empty()) try_to_write(o.history + ".svg"), try_to_write(o.history + ".csv");
  auto digits = sk::data::mnist_or_synthetic(o.data);
  if (o.samples > 0) digits.train = digits.train.take(o.samples), digits.test = digits.test.take(std::max(o.samples / 6, 1L));
  sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cpu> model{sk::Seed{42}};
  static_assert(decltype(model)::parameter_count == 61'706);
  if (world.rank() == 0)
    std::printf("%d ranks (%s), data: %s, %ld samples\n%s", world.size(), std::string(Comm::name).c_str(), digits.source.c_str(),
                static_cast<long>(digits.train.size()), sk::summary(model).c_str());

  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = o.lr, .momentum = 0.9f},
                      sk::parallel::DataParallel{world}};
  const sk::History history = trainer.fit(digits.train, {.epochs = o.epochs, .batch = o.batch, .validate = digits.test});
  if (!o.save.empty()) trainer.save(o.save);
  if (world.rank() != 0) return;
  if (!o.history.empty()) history.write_svg(o.history + ".svg"), history.write_csv(o.history + ".csv");
  std::printf("test accuracy %.2f %% after %d epochs of %s on %d ranks, global batch %ld, in %.1f s\n",
              100 * history.back().validation.accuracy, o.epochs, digits.source.c_str(), world.size(),
              std::min<long>(o.batch, digits.train.size()), history.seconds());
}

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    if (o.threads_as_ranks > 0) return sk::spawn(o.threads_as_ranks, [&](sk::ThreadComm& world) { run(world, o); });
    sk::MpiComm world{argc, argv};
    run(world, o);
  });
}
