// SPDX-License-Identifier: Apache-2.0
// What a debug build finds, one case a start of the program: a program whose Network is the trap and whose library is not.
// Compiled without optimisation and without NDEBUG; with SKEIN_CHECKED=0 "stale" and the indices pass in silence. Usage: checked
// CASE
#include <cstdio>
#include <string>
#include <vector>

#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/core/run.hpp>
#include <skein/tensor/tensor.hpp>

static_assert(SKEIN_CHECKED == 1, "this program shows what a debug build looks at");
namespace sk = skein;
namespace nn = skein::nn;
using namespace sk::literals;

namespace {

using Model = sk::Model<nn::Sequential<nn::Linear<64>, nn::Relu, nn::Linear<40>>, sk::Shape<64>>;
constexpr long samples = 8;

/// A span of the weights outlives its lease and is written in the middle of a loop: the copies that kernels read stay as they
/// were.
void stale(int threads) {
  Model model{sk::Seed{1}};
  const std::vector<float> x(samples * 64, 0.25f);
  const sk::BatchView<float> batch{.x = x.data(), .pitch = 64, .count = samples};
  sk::Executor<Model, nn::Mse> executor(model, {}, {.capacity = samples, .threads = threads, .training = false});
  sk::DeviceSpan<float> kept;
  {
    const auto weights = model.modify();
    kept = weights.span();
  }
  for (int step = 0; step < 3; ++step) {
    executor.evaluate(batch);
    std::printf("step %d\n", step);
    if (step == 1) kept[7] += 1;
  }
}

void too_large() {
  Model model{sk::Seed{1}};
  const std::vector<float> x(samples * 64, 0.25f);
  sk::Executor<Model, nn::Mse> executor(model, {}, {.capacity = samples - 1, .threads = 1, .training = false});
  executor.evaluate(sk::BatchView<float>{.x = x.data(), .pitch = 64, .count = samples});
}

/// Layers that forget what they must write: an output, the gradient of the input, that of a parameter.
struct Scale {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = in, .parameters = {{"scale", {in.last()}, sk::Init::ones}}, .backward_reads = sk::Reads::x};
  }
  static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"_p); }
  static void backward(auto& f) {
    f.gradient("scale"_p) += sum_leading(f.dy() * f.x());
    f.dx() = f.dy() * f.parameter("scale"_p);
  }
};
struct OnlyAdds : Scale {
  static void forward(auto& f) { f.y() += f.x(); }
};
struct NoInputGradient : Scale {
  static void backward(auto& f) { f.gradient("scale"_p) += sum_leading(f.dy() * f.x()); }
};
struct NoParameterGradient : Scale {
  static void backward(auto& f) { f.dx() = f.dy() * f.parameter("scale"_p); }
};
struct ByPointers {  // writes the first half of its outputs
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  template <class In, class Frame> static void forward(Frame& f) {
    for (long s = 0; s < f.batch; ++s)
      for (long i = 0; i < In::count / 2; ++i) f.y[s * sk::sample_pitch(In::extents) + i] = 1;
  }
  template <class In, class Frame> static void backward(Frame&) {}
};
template <class L> void step() {
  sk::Model<nn::Sequential<nn::Linear<6>, L, nn::Linear<40>>, sk::Shape<64>> model{sk::Seed{1}};
  const std::vector<float> x(samples * 64, 0.25f), target(samples * 40, 1.f);
  sk::Executor executor(model, nn::Mse{}, {.capacity = samples, .threads = 2});
  executor.forward_backward(
      sk::BatchView<float>{.x = x.data(), .pitch = 64, .targets = target.data(), .target_pitch = 40, .count = samples});
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const std::string name = argc > 1 ? argv[1] : "";
    if (name == "stale") stale(1);
    if (name == "stale_of_two") stale(2);
    if (name == "too_large") too_large();
    if (name == "all_written") step<Scale>();
    if (name == "output") step<OnlyAdds>();
    if (name == "half_of_the_output") step<ByPointers>();
    if (name == "input_gradient") step<NoInputGradient>();
    if (name == "parameter_gradient") step<NoParameterGradient>();
    const sk::Tensor<float, 2> t{{1, 2, 3}, {4, 5, 6}};
    if (name == "index") std::printf("%f\n", static_cast<double>(t(1, 3)));
    if (name == "span") std::printf("%f\n", static_cast<double>(Model{}.parameters()[99'999]));
    std::printf("nothing was found\n");
  });
}
