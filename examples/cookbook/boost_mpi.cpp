// SPDX-License-Identifier: Apache-2.0
// A program that has Boost.MPI already: skein trains on its communicator, and objects with a serialize() travel beside the
// training.
// ctest on 2 ranks:
#include <skein/comm/mpi/boost.hpp>
#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include <boost/mpi/collectives.hpp>
#include <boost/mpi/environment.hpp>

#include <cstdio>
#include <string>
#include <vector>
namespace sk = skein;
namespace mpi = boost::mpi;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

/// What each rank tells rank 0: a class of this program, with Boost.Serialization's function.
struct Report {
  std::string machine;
  int rank = 0;
  std::vector<double> losses;
  template <class Archive> void serialize(Archive& archive, unsigned) { archive& machine& rank& losses; }
};

int main(int argc, char** argv) {
  mpi::environment environment{argc, argv};  // starts and ends MPI
  mpi::communicator ranks;                   // all processes; or a part of them, by ranks.split()
  sk::MpiComm world{ranks};                  // the same ranks, for the training

  const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
  sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}, sk::parallel::DataParallel{world}};
  const sk::History history = trainer.fit(digits, {.epochs = 3, .batch = 50, .progress = false});

  Report own{mpi::environment::processor_name(), ranks.rank(), {}};
  for (const auto& epoch : history) own.losses.push_back(epoch.training.loss);
  std::vector<Report> reports;
  mpi::gather(ranks, own, reports, 0);  // Boost.MPI's own call, between skein's
  for (const Report& r : reports)
    std::printf("rank %d: losses %.3f, %.3f, %.3f\n", r.rank, r.losses[0], r.losses[1], r.losses[2]);
}
