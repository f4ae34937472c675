// SPDX-License-Identifier: Apache-2.0
// MNIST over ranks, as two texts did it: a logistic regression with Adam (one Linear(784, 10)), and LeNet with SGD (rate 1e-3, momentum
// 0.85) whose gradients are summed, not averaged, over R equal shards, so that the step grows with R. Each rank sees its shard alone and says
// a line; rank 0 prints the time of the epochs, and with --record FILE the speed-up and efficiency against the run of one rank in that file.
//     for n in 1 2 4; do mpirun -n $n 11_mnist_over_mpi --network lenet --record times.csv; done
// ctest: --threads-as-ranks 1 --samples 6000 --record times.csv
// ctest: --threads-as-ranks 2 --samples 6000 --network lenet
// ctest on 2 ranks: --samples 6000
// ctest on 2 ranks: --samples 6000 --network lenet
// ctest expects: all ranks have the same weights
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>
#include <skein/mpi.hpp>
#include <skein/skein.hpp>
namespace sk = skein;

namespace {

struct Logistic : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<10>> {};
struct LeNet : sk::nn::Sequential<
    sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Conv2d<16, sk::Kernel<5>>,                sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Flatten, sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>> {};

struct Options {
  std::string network = "logistic", data, record;
  int epochs = 1, threads = 1, threads_as_ranks = 0;
  long batch = 128, samples = 0;                       // a rank's batch; 0: all samples
};

/// Seconds of a run of one rank with the same settings in the file, or 0. Lines are "settings,ranks,seconds"; others are passed over.
double seconds_of_one(const std::string& file, const std::string& settings) {
  std::ifstream in(file);
  double found = 0;
  for (std::string line; std::getline(in, line);)
    if (double s = 0; line.starts_with(settings + ",1,") && std::sscanf(line.c_str() + settings.size() + 3, "%lf", &s) == 1 && s > 0) found = s;
  return found;
}

template <class Comm> void report(Comm& world, const Options& o, const std::string& source, double seconds) {
  const int ranks = world.size();
  std::printf("%s on %s: %d ranks (%s), %d epochs, batch %ld a rank, %.2f s\n", o.network.c_str(), source.c_str(), ranks, std::string(Comm::name).c_str(), o.epochs, o.batch, seconds);
  if (!o.record.empty()) {
    const std::string settings = o.network + " " + std::string(Comm::name) + " x" + std::to_string(o.threads) + " " + std::to_string(o.epochs) + " epochs of " + std::to_string(o.samples) +
                                 " by " + std::to_string(o.batch);
    std::ofstream out(o.record, std::ios::app);
    if (!(out << settings << ',' << ranks << ',' << seconds << std::endl)) throw sk::FileError(o.record, -1, "cannot be written");
    if (const double one = seconds_of_one(o.record, settings); one > 0)
      std::printf("speed-up %.2f, efficiency %.2f\n", one / seconds, one / seconds / ranks);
    else
      std::printf("no run of one rank with these settings in %s: no speed-up\n", o.record.c_str());
  }
  if (o.network == "logistic") std::printf("the paper's seconds on 1, 2, 4 cores: 240.6, 130.6, 81.5 (efficiency 0.92, 0.74); test accuracy 91.4 %% after an epoch\n");
}

template <class Network, class Comm, class Optimizer> void train(Comm& world, const Options& o, const Optimizer& optimizer, sk::parallel::DataParallelOptions how) {
  auto digits = sk::data::mnist_or_synthetic(o.data);
  if (o.samples > 0) digits.train = digits.train.take(o.samples), digits.test = digits.test.take(o.samples / 6);
  const auto shard = digits.train.slice(sk::data::even_part(digits.train.size(), world.size(), world.rank()),
                                        sk::data::even_part(digits.train.size(), world.size(), world.rank() + 1));
  sk::Model<Network, sk::Shape<28, 28, 1>, sk::Cpu> model{sk::Seed{42}};
  double seconds = 0;
  {
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, optimizer, sk::parallel::DataParallel{world, how}};
    seconds = trainer.fit(shard, {.epochs = o.epochs, .batch_per_rank = o.batch, .partition = sk::data::Partition::local, .progress = false, .threads = o.threads}).seconds();
  }
  // Each rank for itself: its shard, and the whole test set.
  sk::Trainer alone{model, sk::nn::CrossEntropy{}, optimizer};
  const auto own = alone.evaluate(shard), test = alone.evaluate(digits.test);
  char line[160];
  std::snprintf(line, sizeof line, "rank %d: train loss %.4f, train accuracy %.2f %%, test loss %.4f, test accuracy %.2f %%", world.rank(), own.loss, 100 * own.accuracy, test.loss,
                100 * test.accuracy);
  for (const std::string& text : world.all_gather(std::string(line)))
    if (world.rank() == 0) std::printf("%s\n", text.c_str());
  if (world.rank() == 0) report(world, o, digits.source, seconds);
  const double least = world.all_reduce(test.loss, sk::Min{}), greatest = world.all_reduce(test.loss, sk::Max{});
  if (!(least == greatest)) throw sk::Error("11_mnist_over_mpi: test losses from " + std::to_string(least) + " to " + std::to_string(greatest) + ": the ranks' weights differ");
  if (world.rank() == 0) std::printf("all ranks have the same weights\n");
}

template <class Comm> void run(Comm& world, const Options& o) {
  if (o.network == "lenet") train<LeNet>(world, o, sk::optim::Sgd{.lr = 1e-3f, .momentum = 0.85f}, {.reduce = sk::parallel::Reduce::Sum});
  else train<Logistic>(world, o, sk::optim::Adam{.lr = 1e-3f}, {});
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"MNIST over ranks: logistic regression with Adam, or LeNet with summed gradients"};
  app.add_option("--network", o.network, "logistic or lenet")->check(CLI::IsMember({"logistic", "lenet"}))->capture_default_str();
  app.add_option("--epochs", o.epochs, "how many")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--batch", o.batch, "samples of a rank in a step")->check(CLI::Range(1L, 1'000'000L))->capture_default_str();
  app.add_option("--samples", o.samples, "take only so many; 0: all")->check(CLI::Range(0L, 1'000'000'000L))->capture_default_str();
  app.add_option("--threads", o.threads, "workers of a rank")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--threads-as-ranks", o.threads_as_ranks, "so many threads of this process; 0: the processes of mpirun")->check(CLI::Range(0, 256))->capture_default_str();
  app.add_option("--data", o.data, "folder of MNIST");
  app.add_option("--record", o.record, "adds the time to this file, reads the time of one rank there");
  CLI11_PARSE(app, argc, argv);
  try {
    if (o.threads_as_ranks > 0) {
      sk::spawn(o.threads_as_ranks, [&](sk::ThreadComm& world) { run(world, o); });
    } else {
      sk::MpiComm world{argc, argv};
      run(world, o);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "11_mnist_over_mpi: %s\n", e.what());
    return 2;
  }
}
