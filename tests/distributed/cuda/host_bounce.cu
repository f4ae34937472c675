// SPDX-License-Identifier: Apache-2.0
// HostBounce over processes: GPU memory (here of the pretend runtime, each process has its own devices) over an MPI that knows
// nothing of it; and a training that way, against the serial run on the Cpu.
#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <skein/cuda.hpp>
#include <skein/mpi.hpp>

#include "support/host_bounce_cases.hpp"
#include "support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Linear<17>, nn::Relu, nn::Linear<3>>;

template <class Device, class Policy> std::vector<double> losses(Device where, const Policy& policy) {
  std::vector<float> x(53 * 4), y(53 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(sk::random_uniform(7, 0, i)) - 0.5f;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(3 * x[i]);
  auto data = sk::data::from_tensors(x, sk::Extents{1, {4}}, y);
  sk::Model<Net, sk::Shape<4>, Device> model{sk::Seed{3}, where};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}, policy};
  sk::FitOptions options{.epochs = 3, .batch = 10, .threads = 1};
  options.record_steps = true;
  options.progress = false;
  options.validate = data;
  const sk::History history = trainer.fit(data, options);
  std::vector<double> all = history.losses();
  all.push_back(history.back().validation.loss);
  return all;
}
}  // namespace

TEST_CASE("staged collectives over processes have the bits of MPI's") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  sk::HostBounce world{mpi};
  CHECK(world.where().ordinal == mpi.node_rank() % sk::cuda::device_count());
  CHECK_NOTHROW(host_bounce_cases::staged_everything(world));
}

TEST_CASE("a call of a part that has failed is not over: its rank waited in the whole, which goes on") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  if (mpi.size() == 1) return;
  sk::MpiComm part = mpi.split(0);
  sk::HostBounce world{part};
  if (mpi.rank() == mpi.size() - 1) {
    mpi.barrier();
    (void)support::thrown([&] { part.fail("the last rank ends its part"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return mpi.barrier();
  }
  host_bounce_cases::OnDevice<float> data(std::vector<float>(100, 1.0f), world.where());
  auto started = world.start_all_reduce(data.span());
  mpi.barrier();
  mpi.barrier();  // it looks at what was started meanwhile
  CHECK_THAT(support::thrown([&] { started.wait(); }), Catch::Matchers::Contains("the last rank ends its part"));
}

TEST_CASE("data-parallel training over staged processes agrees with the serial run") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  sk::HostBounce world{mpi};
  const std::vector<double> serial = losses(sk::Cpu{}, sk::parallel::SingleProcess{}),
                            here = losses(world.where(), sk::parallel::DataParallel{world});
  REQUIRE(serial.size() == here.size());
  for (std::size_t i = 0; i < serial.size(); ++i) CHECK(here[i] == Approx(serial[i]).margin(2e-5));
}
