// SPDX-License-Identifier: Apache-2.0
// The training loop by hand, as every course writes it: a train and a test function, gradients summed over ranks with one
// all-reduce, the optimizer's step. The parts are those that Trainer::fit is made of, so this is as fast.
#include <cstdio>

#include <skein/skein.hpp>
namespace sk = skein;

struct Mlp : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<128>, sk::nn::Relu, sk::nn::Linear<10>> {};
using Model = sk::Model<Mlp, sk::Shape<28, 28, 1>, sk::Cpu>;
using Executor = sk::Executor<Model, sk::nn::CrossEntropy>;
using Optimizer = sk::optim::BoundOptimizer<sk::optim::Sgd, float, sk::Cpu>;

// [quote train]
void train(sk::ThreadComm& world, Executor& executor, Optimizer& optimizer, sk::data::Loader<>& loader, int epoch,
           std::int64_t& step) {
  Model& model = executor.model();
  for (const sk::data::Batch<>& batch : loader.epoch(epoch)) {
    const auto sums = executor.forward_backward(
        batch, {.scale = 1.0 / static_cast<double>(batch.global_count)});  // this rank's part of the mean
    world.all_reduce(model.gradients(), sk::Sum{});
    const float* gradients[] = {model.gradients().data};
    optimizer.update(model.modify().begin(), {.step = ++step, .lr = optimizer.optimizer().lr, .gradients = gradients}, 0,
                     Model::sizes.stored);
    if (world.rank() == 0 && batch.step % 100 == 0)
      std::printf("epoch %d [%5ld/%ld]  loss %.4f\n", epoch, static_cast<long>(batch.first),
                  static_cast<long>(loader.dataset().size()), sums.mean());
  }
}
// [end]

double test(sk::ThreadComm& world, Executor& executor, sk::data::Loader<>& loader) {
  sk::nn::LossSums sums;
  double samples = 0;
  for (const sk::data::Batch<>& batch : loader.epoch(0))
    sums += executor.evaluate(batch), samples += static_cast<double>(batch.count);
  const double loss = world.all_reduce(sums.loss), correct = world.all_reduce(sums.correct), all = world.all_reduce(samples);
  if (world.rank() == 0) std::printf("test: accuracy %.2f %%, average loss %.4f\n", 100 * correct / all, loss / all);
  return correct / all;
}

int main() {
  double accuracy = 0;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const auto digits = sk::data::mnist_or_synthetic();
    Model model{sk::Seed{1}};  // the same on every rank
    Executor executor{model, sk::nn::CrossEntropy{}, {.capacity = 64, .threads = 1}};
    Optimizer optimizer{sk::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}, Model::program, model.where()};
    sk::data::Loader<> training{digits.train, {.batch = 128, .ranks = world.size(), .rank = world.rank()}};
    sk::data::Loader<> testing{digits.test, {.batch = 128, .shuffle = false, .ranks = world.size(), .rank = world.rank()}};
    std::int64_t step = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      train(world, executor, optimizer, training, epoch, step);
      const double a = test(world, executor, testing);
      if (world.rank() == 0) accuracy = a;
    }
  });
  return accuracy > 0.9 ? 0 : 1;
}
