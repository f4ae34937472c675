// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of communication between GPUs. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <vector>

#include <skein/nccl.hpp>

namespace sk = skein;

namespace {
using Net = sk::nn::Sequential<sk::nn::Linear<16>, sk::nn::Relu, sk::nn::Linear<3>>;

auto some_points() {
  std::vector<float> x(64 * 4), y(64 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 3);
  return sk::data::from_tensors(x, sk::Extents{1, {4}}, y);
}
}  // namespace

TEST_CASE("several GPUs in one process", "[guide]") {
  if (sk::cuda::device_count() < 2) return;
  std::vector<double> losses(2);
  // [quote spawn]
  sk::spawn(sk::LocalDevices{0, 1}, [&](sk::NcclComm& world) {  // LocalDevices{}: all that are visible
    auto data = some_points();
    sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{1}, world.where()};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}, sk::parallel::DataParallel{world}};
    const sk::History history = trainer.fit(data, {.epochs = 2, .batch = 16, .progress = false});
    losses[static_cast<std::size_t>(world.rank())] = history.back().training.loss;
  });
  // [end]
  CHECK(losses[0] > 0);
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("collectives of GPU memory", "[guide]") {
  if (sk::cuda::device_count() < 2) return;
  std::vector<int> sums(2);
  // [quote nccl]
  sk::spawn(sk::LocalDevices{0, 1}, [&](sk::NcclComm& world) {
    sk::Arena<float, sk::Cuda> values(1000, world.where()), came(1000, world.where());
    auto request = world.start_all_reduce(values.span(), sk::Mean{});  // behind what this thread's stream was given
    request.wait();                                                    // what the stream is given from here on comes behind it
    {
      auto group = world.group();  // messages that cross are one launch
      auto sent = world.isend(values.span(), 1 - world.rank());
      auto got = world.irecv(came.span(), 1 - world.rank());
      group.end();
      sent.wait();
      got.wait();
    }
    const int sum = world.all_reduce(world.rank() + 1);  // values of the host, over the coordinator
    sums[static_cast<std::size_t>(world.rank())] = sum;  // not quoted
  });
  // [end]
  CHECK(sums == std::vector<int>{3, 3});
}
