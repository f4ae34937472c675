// SPDX-License-Identifier: Apache-2.0
// 02_own_training_loop.cpp on the GPUs of this machine: device, communicator and who runs (all GPUs, not two threads) are
// other words. A batch of the host is brought to the model's GPU by the executor. Each step waits for its sums here: trainings
// are faster by Trainer::fit, or by train::TrainStep, which do not.
// ctest: --samples 12000
#include <cstdio>

#include <skein/nccl.hpp>
namespace sk = skein;

struct Mlp : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<128>, sk::nn::Relu, sk::nn::Linear<10>> {};
using Model = sk::Model<Mlp, sk::Shape<28, 28, 1>, sk::Cuda>;
using Executor = sk::Executor<Model, sk::nn::CrossEntropy>;
using Optimizer = sk::optim::BoundOptimizer<sk::optim::Sgd, float, sk::Cuda>;

// [quote train]
void train(sk::NcclComm& world, Executor& executor, Optimizer& optimizer, sk::data::Loader<>& loader, int epoch) {
  Model& model = executor.model();
  for (const sk::data::Batch<>& batch : loader.epoch(epoch)) {
    const auto sums = executor.forward_backward(batch, {.of_samples = batch.global_count});  // this rank's part of the mean
    world.all_reduce(model.gradients(), sk::Sum{});
    optimizer.step(model);
    if (world.rank() == 0 && batch.step % 100 == 0)
      std::printf("epoch %d [%5ld/%ld]  loss %.4f\n", epoch, static_cast<long>(batch.first),
                  static_cast<long>(loader.dataset().size()), sums.mean());
  }
}
// [end]

double test(sk::NcclComm& world, Executor& executor, sk::data::Loader<>& loader) {
  sk::nn::LossSums sums;
  double samples = 0;
  for (const sk::data::Batch<>& batch : loader.epoch(0))
    sums += executor.evaluate(batch), samples += static_cast<double>(batch.count);
  const double loss = world.all_reduce(sums.loss), correct = world.all_reduce(sums.correct), all = world.all_reduce(samples);
  if (world.rank() == 0) std::printf("test: accuracy %.2f %%, average loss %.4f\n", 100 * correct / all, loss / all);
  return correct / all;
}

struct Options {
  float lr = 0.1f;
  int epochs = 2;
  long samples = 60'000;  // fewer where no GPU runs it

  void flags(sk::Flags& f) {
    f("lr", lr, "learning rate");
    f("epochs", epochs, "passes over the training data").at_least(1);
    f("samples", samples, "of the training data").within(6, 60'000);
  }
};

int run(const Options& o) {
  double accuracy = 0;
  sk::spawn(sk::LocalDevices{}, [&](sk::NcclComm& world) {
    auto digits = sk::data::mnist_or_synthetic();
    digits.train = digits.train.slice(0, o.samples), digits.test = digits.test.slice(0, o.samples / 6);
    Model model{sk::Seed{1}};  // the same on every rank
    sk::data::Loader<> training{digits.train, {.batch = 128, .ranks = world.size(), .rank = world.rank()}};
    sk::data::Loader<> testing{digits.test, {.batch = 128, .shuffle = false, .ranks = world.size(), .rank = world.rank()}};
    Executor executor{model, sk::nn::CrossEntropy{}, {.capacity = training.capacity(), .threads = 1}};
    Optimizer optimizer{sk::optim::Sgd{.lr = o.lr, .momentum = 0.9f}, model};
    for (int epoch = 0; epoch < o.epochs; ++epoch) {
      train(world, executor, optimizer, training, epoch);
      const double a = test(world, executor, testing);
      if (world.rank() == 0) accuracy = a;
    }
  });
  return accuracy > 0.9 ? 0 : 1;
}

int main(int argc, char** argv) { return sk::run<Options>(argc, argv, run); }
