// expect: the communicator moves memory of another device than the model's: MpiComm, GlooComm and ThreadComm go with Cpu; for Cuda take NcclComm, or HostBounce<MpiComm>, which copies through the host
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct OnGpu : sk::SelfComm {
  using device = sk::Cuda;
};
#ifdef SKEIN_TWIN
using World = sk::SelfComm;
#else
using World = OnGpu;
#endif

int main() {
  World world;
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>, sk::Cpu> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
}
