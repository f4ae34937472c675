// SPDX-License-Identifier: Apache-2.0
// L-BFGS on two ranks: each has a part of the samples, and every evaluation of the loss is of all of them.
#include <skein/optim/lbfgs/lbfgs.hpp>
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Linear<20>, sk::nn::Tanh, sk::nn::Linear<1>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [] {
    sk::spawn(2, [](sk::ThreadComm& world) {
      const sk::Tensor<float, 1> x = sk::linspace<float>(-1, 1, 200), y = sin(5 * x);
      sk::data::Loader<> loader{sk::data::from_tensors(x, y), {.batch = 200, .ranks = world.size(), .rank = world.rank()}};
      sk::Model<Net, sk::Shape<1>> model{sk::Seed{1}};  // the same seed: equal weights
      sk::Executor executor{model, sk::nn::Mse{}, {.capacity = loader.capacity(), .threads = 1}};
      sk::optim::BoundLbfgs lbfgs{sk::optim::Lbfgs{.history = 10, .line_search = sk::optim::LineSearch::strong_wolfe}, model};
      for (const sk::data::Batch<>& batch : loader.epoch(0)) {  // one batch: all samples of this rank
        // [quote closure]
        const auto closure = [&] {
          const auto sums = executor.forward_backward(batch, {.of_samples = batch.global_count});
          const double weight = world.all_reduce(sums.weight);  // of all samples
          executor.divide_by_weight(weight);
          world.all_reduce(model.gradients(), sk::Sum{});
          return world.all_reduce(sums.loss) / weight;
        };
        // [end]
        const double before = lbfgs.step(model, closure);  // up to 20 iterations; the loss before them
        for (int step = 2; step <= 6; ++step) lbfgs.step(model, closure);
        const double after = closure();
        if (world.rank() == 0) std::printf("loss %.2f, after six steps %s 0.01\n", before, after < 0.01 ? "below" : "above");
      }
    });
  });
}
