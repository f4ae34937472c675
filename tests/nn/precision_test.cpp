// SPDX-License-Identifier: Apache-2.0
// Activations stored in another type than the weights: every layer and container against the same model in float, exactness where
// the values are representable, workers and executors, memory.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <skein/nn/avg_pool2d.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/log_softmax.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/repeat.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/nn/softmax.hpp>
#include <skein/nn/summary.hpp>
#include <skein/nn/tanh.hpp>

#include "../support/larger.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {

template <class T> using Batch = sk::BatchView<T>;

/// `steps` > 0: multiples of 1 / steps, which every type holds.
template <class Model> struct Data {
  using T = typename Model::Scalar;
  static constexpr long in = sk::sample_pitch(Model::input::extents), out = sk::sample_pitch(Model::output_extents);
  std::vector<T> x, y;
  Batch<T> batch;
  explicit Data(long n, int steps = 0) : x(static_cast<std::size_t>(n * in)), y(static_cast<std::size_t>(n * out)) {
    auto value = [&](std::uint64_t stream, std::size_t i) {
      const double u = static_cast<double>(sk::random_uniform(1, stream, i)) * 2 - 1;
      return static_cast<T>(steps > 0 ? std::round(u * steps) / steps : u);
    };
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(0, i);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = value(1, i);
    batch = {x.data(), in, nullptr, y.data(), out, n};
  }
};

struct Result {
  std::vector<double> outputs, gradients;
  std::size_t bytes = 0;
};

template <class Model>
Result run(Model& model, const Data<Model>& data, sk::ExecutorOptions options, sk::ExecutorCall call = {}) {
  options.capacity = data.batch.count;
  sk::Executor executor{model, nn::Mse{}, options};
  executor.prepare(data.batch.count);
  call.key = 77;
  if (!call.scale) call.scale = 1;  // the sum, which is a whole number where the samples are
  executor.forward_backward(data.batch, call);
  Result r;
  for (long i = 0; i < data.batch.count; ++i)
    for (long c = 0; c < Model::output_extents.count(); ++c)
      r.outputs.push_back(static_cast<double>(executor.outputs()[i * Data<Model>::out + c]));
  for (auto g : model.gradients()) r.gradients.push_back(static_cast<double>(g));
  r.bytes = executor.activation_bytes();
  return r;
}

/// Distance in the two-norm, relative to b.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double d = 0, n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    d += (a[i] - b[i]) * (a[i] - b[i]);
    n += b[i] * b[i];
  }
  return std::sqrt(d / (n > 0 ? n : 1));
}

template <class P> constexpr double unit = std::numeric_limits<typename P::activation>::epsilon();

constexpr double smooth = 1, kinks = 5;  // a value that falls on the other side of a kink moves a gradient by more

/// Outputs within one unit of the activations' type of those in the master type, gradients within `c` units, in the two-norm;
/// and the same for any workers and executor.
template <class Net, class Input, class P = sk::precision::bf16>
void agrees(double c = smooth, long samples = 21, bool couples = false) {
  using Wide = sk::Model<Net, Input, sk::Cpu, typename P::master>;
  using Narrow = sk::Model<Net, Input, sk::Cpu, P>;
  STATIC_REQUIRE(std::same_as<typename Wide::Scalar, typename Narrow::Scalar>);
  Wide wide{sk::Seed{5}};
  Narrow narrow{sk::Seed{5}};
  const Data<Wide> data(samples);
  const Data<Narrow> same(samples);
  const Result a = run(wide, data, {.execution = sk::Execution::layer_wise, .threads = 1});
  const Result b = run(narrow, same, {.execution = sk::Execution::layer_wise, .threads = 1});
  INFO(sk::detail::scalar_name<typename P::compute>() << ": " << std::string(__PRETTY_FUNCTION__).substr(0, 300));
  CHECK(apart(b.outputs, a.outputs) / unit<P> < 1);
  CHECK(apart(b.gradients, a.gradients) / unit<P> < c);
  CHECK(apart(b.outputs, a.outputs) > 0);  // it was rounded
  for (int threads : {1, 2, 3})
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      if (couples && execution == sk::Execution::depth_first) continue;
      const Result other = run(narrow, same, {.execution = execution, .block = 4, .threads = threads});
      INFO(threads << " threads, " << (execution == sk::Execution::depth_first ? "depth-first" : "layer by layer"));
      CHECK(apart(other.outputs, b.outputs) / unit<P> < 0.5);  // sums in another order round otherwise now and then
      CHECK(apart(other.gradients, b.gradients) / unit<P> < 0.5);
    }
}

template <class... Ls> using Net = nn::Sequential<Ls...>;

}  // namespace

TEST_CASE("a precision names the types of a model", "[nn]") {
  using Lenient = sk::Model<Net<nn::Linear<3>>, sk::Shape<4>>;
  using Half = sk::Model<Net<nn::Linear<3>>, sk::Shape<4>, sk::Cpu, sk::precision::bf16>;
  STATIC_REQUIRE(std::same_as<Lenient::Scalar, float> && std::same_as<Lenient::Activation, float> && !Lenient::precision::mixed);
  STATIC_REQUIRE(std::same_as<Half::Scalar, float> && std::same_as<Half::Activation, sk::bf16> && Half::precision::mixed);
  STATIC_REQUIRE(std::same_as<sk::Model<Net<nn::Linear<3>>, sk::Shape<4>, sk::Cpu, double>::Activation, double>);
  STATIC_REQUIRE(std::same_as<sk::precision::tf32::activation, float> && sk::precision::tf32::math == nn::FloatMath::tf32);
  STATIC_REQUIRE(!sk::precision::fp32::mixed && sk::precision::fp32::math == nn::FloatMath::full);
  STATIC_REQUIRE(sk::Precision<float, double, double>::mixed);
  // One scalar: the frames, runs and layers are those without a precision.
  STATIC_REQUIRE(std::same_as<nn::Run<float, sk::Cpu>, nn::Run<float, sk::Cpu, float>>);
  STATIC_REQUIRE(std::same_as<nn::LeafFrame<nn::Relu, nn::Run<float, sk::Cpu, sk::bf16>>, nn::Frame<float, sk::Cpu>>);
  CHECK(Half::sizes.kept_activations == Lenient::sizes.kept_activations);
}

TEST_CASE("flat layers store their samples in bf16", "[nn]") {
  using In = sk::Shape<20>;
  agrees<Net<nn::Linear<7>>, In>();
  agrees<Net<nn::Linear<33>, nn::Relu, nn::Linear<5>>, In>(kinks);
  agrees<Net<nn::Linear<33>, nn::Tanh, nn::Linear<17>, nn::Sigmoid, nn::Linear<5>>, In>();
  agrees<Net<nn::Linear<33>, nn::Gelu, nn::Linear<17>, nn::LeakyRelu<>, nn::Linear<5>>, In>(kinks);
  agrees<Net<nn::Linear<16>, nn::LayerNorm<>, nn::Linear<5>, nn::Softmax>, In>();
  agrees<Net<nn::Linear<16>, nn::Dropout<>, nn::Linear<5>, nn::LogSoftmax>, In>();
  agrees<Net<nn::Linear<13>, nn::BatchNorm<>, nn::Tanh, nn::Linear<5>>, In>(smooth, 40, true);
}

TEST_CASE("image layers store their samples in bf16", "[nn]") {
  using In = sk::Shape<12, 12, 3>;
  agrees<Net<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<5>>, In>(kinks);
  agrees<Net<nn::Conv2d<8, sk::Kernel<3>>, nn::Tanh, nn::AvgPool2d<2>, nn::Flatten, nn::Linear<5>>, In>();
  agrees<Net<nn::Conv2d<8, sk::Kernel<3>, sk::Stride<2>>, nn::BatchNorm<>, nn::Relu, nn::GlobalAvgPool, nn::Linear<5>>, In>(
      kinks, 21, true);
  agrees<Net<nn::Conv2d<6, sk::Kernel<3>, sk::Groups<3>, sk::NoBias>, nn::Gelu, nn::MaxPool2d<3>, nn::Flatten, nn::Linear<5>>,
         In>(kinks);
}

TEST_CASE("layers store their samples in fp16", "[nn]") {
  using P = sk::precision::fp16;
  agrees<Net<nn::Linear<33>, nn::Tanh, nn::Linear<17>, nn::LayerNorm<>, nn::Linear<5>>, sk::Shape<20>, P>();
  agrees<Net<nn::Conv2d<6, sk::Kernel<3>>, nn::BatchNorm<>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<5>>,
         sk::Shape<12, 12, 3>, P>(kinks, 21, true);
}

TEST_CASE("containers keep their edges in 16 bits", "[nn]") {
  using In = sk::Shape<6>;
  agrees<Net<nn::Linear<16>, nn::Residual<Net<nn::Linear<16>, nn::Tanh>>, nn::Linear<3>>, In>();
  agrees<Net<nn::Residual<Net<nn::Tanh, nn::Linear<16>>, nn::Linear<16>>, nn::Tanh, nn::Linear<3>>, In>();
  agrees<Net<nn::Linear<6>, nn::Concat<nn::Linear<3>, Net<nn::Linear<9>, nn::Tanh>, nn::Tanh, nn::Identity>, nn::Linear<3>>,
         In>();
  agrees<Net<nn::Linear<16>, nn::Repeat<3, nn::Residual<Net<nn::Linear<7>, nn::Tanh, nn::Linear<16>>>>, nn::Linear<3>>, In>();
  agrees<Net<nn::Flatten, nn::Identity, nn::Linear<6>, nn::Identity, nn::Tanh, nn::Linear<2>, nn::Identity>,
         sk::Shape<5, 1, 1>>();
}

TEST_CASE("float storage under double weights is another mixture", "[nn]") {
  using P = sk::Precision<float, double, double>;
  agrees<Net<nn::Linear<33>, nn::Tanh, nn::Linear<17>, nn::Sigmoid, nn::Linear<5>>, sk::Shape<20>, P>();
  agrees<Net<nn::Conv2d<6, sk::Kernel<3>>, nn::Tanh, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<5>>, sk::Shape<8, 8, 2>, P>();
}

TEST_CASE("values that 16 bits hold go through unrounded", "[nn]") {
  // Whole numbers: outputs, gradients of the inputs and of the weights are exact in every type.
  using Nodes = Net<nn::Linear<9>, nn::Relu, nn::Linear<4>>;
  auto whole = [](auto& model) {
    std::size_t i = 0;
    for (auto& p : model.modify()) p = p == 0 ? 0.0f : static_cast<float>(static_cast<int>(i++ % 5) - 2);  // gaps stay zero
  };
  sk::Model<Nodes, sk::Shape<6>> wide;
  sk::Model<Nodes, sk::Shape<6>, sk::Cpu, sk::precision::bf16> bf16;
  sk::Model<Nodes, sk::Shape<6>, sk::Cpu, sk::precision::fp16> fp16;
  whole(wide), whole(bf16), whole(fp16);
  const Data<decltype(wide)> a(3, 2);
  const Data<decltype(bf16)> b(3, 2);
  const Data<decltype(fp16)> c(3, 2);
  const Result right = run(wide, a, {.threads = 1}), in_bf16 = run(bf16, b, {.threads = 1}),
               in_fp16 = run(fp16, c, {.threads = 1});
  CHECK(in_bf16.outputs == right.outputs);
  CHECK(in_fp16.outputs == right.outputs);
  CHECK(in_bf16.gradients == right.gradients);
  CHECK(in_fp16.gradients == right.gradients);
}

TEST_CASE("a batch of many blocks and a worker without samples", "[nn]") {
  // 4096 -> 48: a block is 8 samples, so 27 make three whole ones and a rest; dropout must not repeat its mask from block to
  // block.
  using Nodes = Net<nn::Linear<48>, nn::Dropout<sk::Rate<1, 4>>, nn::Relu, nn::Linear<3>>;
  using In = sk::Shape<4096>;
  using Converted = nn::ConvertedLayer<nn::Linear<48>, In>;
  STATIC_REQUIRE(Converted::block<sk::Cpu>() < 27);
  agrees<Nodes, In>(kinks, 27);
  agrees<Net<nn::Linear<5>, nn::Tanh, nn::Linear<3>>, sk::Shape<4>>(smooth, 2);  // two samples, three workers
  // Accumulating calls add to the gradients, blocks or not.
  using Narrow = sk::Model<Nodes, In, sk::Cpu, sk::precision::bf16>;
  Narrow model{sk::Seed{3}};
  const Data<Narrow> data(27);
  sk::Executor executor{model, nn::Mse{}, {.capacity = 27, .execution = sk::Execution::layer_wise, .threads = 2}};
  executor.forward_backward(data.batch, {.key = 5});
  const std::vector<float> once(model.gradients().begin(), model.gradients().end());
  executor.forward_backward(data.batch, {.accumulate = true, .key = 5});
  double worst = 0;
  for (std::size_t i = 0; i < once.size(); ++i)
    worst = support::larger(worst, static_cast<double>(model.gradients()[i]) - 2 * static_cast<double>(once[i]));
  CHECK(worst < 1e-5);
}

TEST_CASE("a worker without samples in front of a batch normalisation", "[nn]") {  // divides by nothing: under the sanitizers
  sk::Model<nn::Sequential<nn::Conv2d<8, sk::Kernel<3>>, nn::BatchNorm<>, nn::Flatten, nn::Linear<2>>, sk::Shape<4, 4, 3>,
            sk::Cpu, sk::precision::bf16>
      model{sk::Seed{1}};
  const Data<decltype(model)> data(1);
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 2}};
  executor.prepare(1);
  CHECK_NOTHROW(executor.evaluate(data.batch));
}

TEST_CASE("16-bit activations take half the memory", "[nn]") {
  using Nodes = Net<nn::Linear<256>, nn::Tanh, nn::Linear<256>, nn::Tanh, nn::Linear<256>, nn::Tanh, nn::Linear<16>>;
  using In = sk::Shape<256>;
  using Wide = sk::Model<Nodes, In>;
  using Narrow = sk::Model<Nodes, In, sk::Cpu, sk::precision::bf16>;
  STATIC_REQUIRE(sk::saved_bytes_per_sample<Narrow> * 2 == sk::saved_bytes_per_sample<Wide>);
  Wide wide;
  Narrow narrow;
  const Data<Wide> a(256);
  const Data<Narrow> b(256);
  const sk::ExecutorOptions options{.execution = sk::Execution::layer_wise, .threads = 1};
  const double full = static_cast<double>(run(wide, a, options).bytes), half = static_cast<double>(run(narrow, b, options).bytes);
  INFO(full << " bytes in float, " << half << " in bf16");
  CHECK(half / full < 0.5);  // though the loss reads float outputs: the fused layers' own block is staged too
  // A layer's own block is of the master type: LayerNorm's, of a network that has it, is not halved.
  using Normal = Net<nn::Linear<32>, nn::LayerNorm<>, nn::Linear<16>>;
  STATIC_REQUIRE(sk::Model<Normal, In>::sizes.saved_for_backward ==
                 sk::Model<Normal, In, sk::Cpu, sk::precision::bf16>::sizes.saved_for_backward);
  // What is staged is bounded, whatever the batch.
  using Root = nn::Node<Narrow::fused, In>;
  constexpr nn::ConversionMemory conversion = Root::conversion<nn::Run<float, sk::Cpu, sk::bf16>>();
  STATIC_REQUIRE(conversion.total(1) == conversion.total(100000) && !conversion.reads_weights);
  STATIC_REQUIRE(conversion.total(1) <= nn::conversion_block<sk::Cpu>);
}

TEST_CASE("the summary says what a model computes in", "[nn]") {
  using Nodes = Net<nn::Linear<8>, nn::Relu, nn::Linear<3>>;
  const std::string half = sk::summary<sk::Model<Nodes, sk::Shape<4>, sk::Cpu, sk::precision::bf16>>();
  CHECK(half.find("computes in bf16 with weights and sums in fp32") != half.npos);
  CHECK(sk::summary<sk::Model<Nodes, sk::Shape<4>>>().find("computes in") == std::string::npos);
}
