// SPDX-License-Identifier: Apache-2.0
// LeNet-5 on MNIST, data-parallel: the same program alone, under `mpirun -n N` as N processes, and with --threads-as-ranks N as
// N threads of one process. The global batch is the same, and so is the loss curve (to rounding).
// ctest: --epochs 1
// ctest on 2 ranks: --epochs 1
// ctest: --epochs 1 --threads-as-ranks 2
// ctest expects: test accuracy 9[5-9]
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
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
  long batch = 128, samples = 0;  // 0: all
  float lr = 0.05f;
};

template <class Comm> void run(Comm& world, const Options& o) {
  auto digits = sk::data::mnist_or_synthetic(o.data);
  if (o.samples > 0) digits.train = digits.train.slice(0, o.samples), digits.test = digits.test.slice(0, o.samples / 6);
  sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cpu> model{sk::Seed{42}};
  static_assert(decltype(model)::parameter_count == 61'706);
  if (world.rank() == 0)
    std::printf("%d ranks (%s), data: %s\n%s", world.size(), std::string(Comm::name).c_str(), digits.source.c_str(),
                sk::summary(model).c_str());

  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = o.lr, .momentum = 0.9f},
                      sk::parallel::DataParallel{world}};
  const sk::History history = trainer.fit(digits.train, {.epochs = o.epochs, .batch = o.batch, .validate = digits.test});
  if (!o.save.empty()) trainer.save(o.save);
  if (world.rank() != 0) return;
  if (!o.history.empty()) history.write_svg(o.history + ".svg"), history.write_csv(o.history + ".csv");
  std::printf("test accuracy %.2f %% after %d epochs of %s on %d ranks, global batch %ld, in %.1f s\n",
              100 * history.back().validation.accuracy, o.epochs, digits.source.c_str(), world.size(), o.batch,
              history.seconds());
}

// By hand, since a parser of options costs more to compile than the training.
Options parse(int argc, char** argv) {
  const option names[] = {{"data", 1, nullptr, 'd'}, {"epochs", 1, nullptr, 'e'},           {"batch", 1, nullptr, 'b'},
                          {"lr", 1, nullptr, 'l'},   {"threads-as-ranks", 1, nullptr, 't'}, {"samples", 1, nullptr, 'n'},
                          {"save", 1, nullptr, 's'}, {"history", 1, nullptr, 'h'},          {}};
  Options o;
  for (int c; (c = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    if (c == 'd') o.data = optarg;
    else if (c == 'e') o.epochs = std::atoi(optarg);
    else if (c == 'b') o.batch = std::atol(optarg);
    else if (c == 'l') o.lr = static_cast<float>(std::atof(optarg));
    else if (c == 't') o.threads_as_ranks = std::atoi(optarg);
    else if (c == 'n') o.samples = std::atol(optarg);
    else if (c == 's') o.save = optarg;
    else if (c == 'h') o.history = optarg;
    else std::exit(2);
  }
  if (o.epochs < 1 || o.batch < 1 || optind < argc) {
    std::fprintf(stderr,
                 "usage: %s [--data FOLDER] [--epochs N] [--batch SAMPLES] [--lr RATE] [--threads-as-ranks N] [--samples N] "
                 "[--save FILE] [--history NAME]\n",
                 argv[0]);
    std::exit(2);
  }
  return o;
}

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (o.threads_as_ranks > 0) {
    sk::spawn(o.threads_as_ranks, [&](sk::ThreadComm& world) { run(world, o); });
  } else {
    sk::MpiComm world{argc, argv};
    run(world, o);
  }
}
