// SPDX-License-Identifier: Apache-2.0
// MNIST over ranks by the three networks that a paper on MNIST over MPI names: a DNN, a CNN, and an RNN, here an LSTM that reads
// an image row by row (28 steps of 28 pixels). Each trains with the same epochs, rate and batch; rank 0 prints one table.
//     mpirun -n 2 18_lstm_rows --epochs 4
// ctest: --samples 3000 --epochs 1 --accuracy 0.2
// ctest expects: 3000 of its images to train and 500 to test
// ctest on 2 ranks: --network lstm --samples 3000 --epochs 1 --accuracy 0.2
// ctest expects: test accuracy
#include <cstdio>
#include <string>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include "support/flag_checks.hpp"
#include "support/table.hpp"
namespace sk = skein;
namespace nn = skein::nn;
namespace ex = experiments;

namespace {

// [quote networks]
struct Rows : nn::Sequential<nn::Reshape<28, 28>, nn::Lstm<128>, nn::Lstm<128, sk::LastState>, nn::Linear<10>> {};
struct BothWays
    : nn::Sequential<nn::Reshape<28, 28>, nn::Concat<nn::Gru<64, sk::LastState>, nn::Gru<64, sk::LastState, sk::Reversed>>,
                     nn::Linear<10>> {};
// [end]
struct Dnn : nn::Sequential<nn::Flatten, nn::Linear<256>, nn::Relu, nn::Linear<128>, nn::Relu, nn::Linear<10>> {};
// clang-format off
struct Cnn : nn::Sequential<
    nn::Conv2d<16, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<32, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<2>,
    nn::Flatten, nn::Linear<10>> {};
// clang-format on

struct Options {
  std::string network = "all", data;
  int epochs = 4, threads = 0;
  long batch = 128, samples = 0;
  double lr = 2e-3, accuracy = 0;

  void flags(sk::Flags& f) {
    f.about("MNIST over ranks by a DNN, a CNN, an LSTM and GRUs in both directions");
    f("network", network, "dnn, cnn, lstm, gru, or all").one_of({"dnn", "cnn", "lstm", "gru", "all"});
    f("epochs", epochs, "how many").within(1, 100'000);
    f("batch", batch, "samples of a step, over all ranks").within(1, 1'000'000);
    f("lr", lr, "rate of Adam").within(1e-12, 10);
    f("samples", samples, "take only so many; 0: all").within(0, 1'000'000);
    f("threads", threads, "workers of a rank; 0: its cores").within(0, 1024);
    f("accuracy", accuracy, "fail below this test accuracy").within(0, 1);
    f("data", data, "folder of MNIST");
  }
};

template <class Network> void train(sk::MpiComm& world, const Options& o, const std::string& name,
                                    const sk::data::SourcedTrainTest& digits, ex::Table& table) {
  const std::string flag = name.substr(0, name.find_first_of(" ,"));
  if (o.network != "all" && o.network != flag) return;
  sk::Model<Network, sk::Shape<28, 28, 1>> model{sk::Seed{42}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = static_cast<float>(o.lr)},
                      sk::parallel::DataParallel{world}};
  const auto history = trainer.fit(digits.train, {.epochs = o.epochs,
                                                  .batch = o.batch,
                                                  .validate = digits.test,
                                                  .schedule = sk::optim::cosine(),
                                                  .clip_norm = 1,
                                                  .progress = false,
                                                  .threads = o.threads});
  const double reached = history.back().validation.accuracy;
  table.row({name, std::to_string(model.parameter_count), ex::cell(history.seconds()), ex::cell(100 * reached)});
  if (reached < o.accuracy) throw sk::Error("18_lstm_rows: " + name + " reaches " + ex::cell(reached) + " alone");
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    sk::MpiComm world{argc, argv};
    auto digits = sk::data::mnist_or_synthetic(o.data);
    ex::take_samples(digits, o.samples);
    ex::Table table{{"network", "parameters", "seconds", "test accuracy %"}};
    train<Dnn>(world, o, "dnn 784-256-128-10", digits, table);
    train<Cnn>(world, o, "cnn", digits, table);
    train<Rows>(world, o, "lstm, two layers of 128", digits, table);
    train<BothWays>(world, o, "gru, 64 in each direction", digits, table);
    if (world.rank() != 0) return;
    std::printf("%s, %ld of its images to train and %ld to test, %d ranks, %d epochs\n", digits.source.c_str(),
                static_cast<long>(digits.train.size()), static_cast<long>(digits.test.size()), world.size(), o.epochs);
    table.print();
  });
}
