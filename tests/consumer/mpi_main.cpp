// SPDX-License-Identifier: Apache-2.0
// The same on ranks that are processes: alone it is a world of one, under mpirun -n N it is N ranks with one loss curve.
#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include <cstdio>
#include <vector>
namespace sk = skein;

using Network = sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<1>>;

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  std::vector<float> x, y;
  for (int i = 0; i < 1024; ++i) {
    x.push_back(static_cast<float>(i) / 512.0f - 1.0f);
    y.push_back(x.back() * x.back());
  }
  sk::Model<Network, sk::Shape<1>, sk::Cpu> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}, sk::parallel::DataParallel{world}};
  const sk::History history = trainer.fit(sk::data::from_tensors(x, y), {.epochs = 20, .batch = 32});

  const double first = history.epochs().front().training.loss, last = history.back().training.loss;
  if (world.rank() == 0) std::printf("%d rank(s): loss %.5f in the first epoch, %.5f in the last\n", world.size(), first, last);
  return last < 0.1 * first ? 0 : 1;
}
