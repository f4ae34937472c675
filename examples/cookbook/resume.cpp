// SPDX-License-Identifier: Apache-2.0
// A job of a cluster with a time limit: it stops in time and saves; the next job of the same script goes on where it stopped.
// ctest: --seconds 1e-6
// ctest: --seconds 60
#include <skein/skein.hpp>

#include <cstdio>
#include <filesystem>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

struct Options {
  double seconds = 3500;
  void flags(sk::Flags& f) { f("seconds", seconds, "time to train, less than the job's limit"); }
};

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
    // [quote resume]
    const char* file = "training.skein";
    if (std::filesystem::exists(file)) trainer.load(file);  // weights, optimizer, place in the data, history
    const sk::History history = trainer.fit(
        digits, {.epochs = 4, .batch = 50, .callbacks = {sk::train::TimeLimit{.seconds = o.seconds}}, .progress = false});
    const bool done = history.size() == 4;
    if (done) std::filesystem::remove(file);
    else trainer.save(file);
    // [end]
    std::printf("%s\n", done ? "all 4 epochs are done" : "out of time: submit the job again");
  });
}
