// SPDX-License-Identifier: Apache-2.0
// What a sink hears of a pass, and in which order.
#include <skein/nn/exec/ready_gradients.hpp>

#include <vector>

#include <catch2/catch.hpp>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
struct Net : nn::Sequential<nn::Linear<5>, nn::BatchNorm<>, nn::Linear<3>> {};
using Model = sk::Model<Net, sk::Shape<4>, sk::Cpu, double>;

/// A second rank with the same data, that notes how far the gradients were when statistics were asked for.
struct Twin final : nn::GradientSink {
  void gradient_ready(long begin, long end) override {
    if (begin == end) return;
    REQUIRE(end == next);
    next = begin;
  }
  void reduce_statistics(double* values, long n) override {
    statistics.push_back(next);
    for (long i = 0; i < n; ++i) values[i] *= 2;
  }
  long next = Model::sizes.stored + sk::gradient_tail;
  std::vector<long> statistics;
};
long offset_of_last_layer() {
  long offset = 0;
  for (const sk::plan::Entry& e : Model::program.parameters())
    if (e.extents.last() == 3 && e.extents.rank == 2) offset = e.offset;
  return offset;
}
}  // namespace

TEST_CASE("a sink hears of the gradients behind a layer before it sums the layer's statistics", "[nn]") {
  constexpr long all = Model::sizes.stored + sk::gradient_tail;
  Model model{sk::Seed{3}};
  std::vector<double> x(6 * sk::row_pitch(4), 0.5), targets(6 * sk::row_pitch(3), 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 11);
  const sk::BatchView<double> batch{x.data(), sk::row_pitch(4), nullptr, targets.data(), sk::row_pitch(3), 6, 6};
  for (int threads : {1, 2, 3}) {
    INFO(threads << " threads");
    sk::Executor executor{model, nn::Mse{}, {.capacity = 6, .threads = threads}};
    const auto step = [&](const nn::ExecutorSinks& sinks) {
      executor.run([&](sk::Worker& w) {
        executor.forward_backward(w, batch, {}, sinks);
        w.barrier();
        if (w.index == 0) executor.finish();
        w.barrier();
      });
    };
    Twin both, gradients_alone, statistics_alone;
    step({.gradients = &both, .statistics = &both});
    CHECK(both.statistics == std::vector<long>{all, all, offset_of_last_layer()});  // forward, in double two, and backward
    CHECK(both.next == 0);

    step({.gradients = &gradients_alone});
    CHECK((gradients_alone.next == 0 && gradients_alone.statistics.empty()));
    step({.statistics = &statistics_alone});
    CHECK((statistics_alone.next == all && statistics_alone.statistics == std::vector<long>{all, all, all}));

    (void)executor.evaluate(batch);  // nobody is told of an evaluation
    CHECK(statistics_alone.statistics.size() == 3);
  }
}
