// SPDX-License-Identifier: Apache-2.0
// Recompute: gradients, running statistics and random masks are those of the block alone, bit by bit, with less memory.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/summary.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
template <class Block> using Itself = Block;

/// Dense layers with all that has a state: running statistics, masks; blocks in a loop, within a block, and with a shortcut.
template <template <class> class Again> using Dense = nn::Sequential<
    nn::Linear<24>, Again<nn::Sequential<nn::Linear<40>, nn::BatchNorm<>, nn::Relu, nn::Dropout<sk::Rate<1, 4>>, nn::Linear<24>>>,
    nn::Repeat<3, Again<nn::Residual<nn::Sequential<nn::BatchNorm<>, nn::Tanh, nn::Linear<24>>>>>,
    Again<nn::Sequential<nn::Linear<24>, Again<nn::Sequential<nn::Dropout<>, nn::Linear<17>, nn::Tanh>>>>, nn::Linear<3>>;
template <template <class> class Again> using Plain =
    nn::Sequential<Again<nn::Sequential<nn::Linear<300>, nn::Tanh, nn::Dropout<>, nn::Linear<300>, nn::Relu>>, nn::Linear<3>>;
template <template <class> class Again> using Images =
    nn::Sequential<Again<nn::Sequential<nn::Conv2d<8, sk::Kernel<3>>, nn::Relu, nn::MaxPool2d<2>>>,
                   Again<nn::Sequential<nn::Conv2d<8, sk::Kernel<3>>, nn::Tanh, nn::MaxPool2d<2>>>, nn::Flatten, nn::Linear<3>>;
template <template <class> class Again> using Sequences =
    nn::Sequential<nn::Reshape<16, 16>, Again<nn::Lstm<9>>, Again<nn::Sequential<nn::Dropout<>, nn::Gru<7, sk::LastState>>>,
                   nn::Linear<3>>;

// [quote recompute]
using Block = nn::Sequential<nn::Residual<nn::Sequential<nn::Conv2d<16, sk::Kernel<3>, sk::Padding<1>>, nn::BatchNorm<>, nn::Relu,
                                                         nn::Conv2d<16, sk::Kernel<3>, sk::Padding<1>>, nn::BatchNorm<>>>,
                             nn::Relu>;
using Deep = nn::Sequential<nn::Conv2d<16, sk::Kernel<3>, sk::Padding<1>>, nn::Repeat<18, nn::Recompute<Block>>,
                            nn::GlobalAvgPool, nn::Linear<10>>;
// [end]

struct Samples {
  std::vector<float> x = std::vector<float>(24 * 256), y = std::vector<float>(24 * 3);
  Samples() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5f;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = sk::random_uniform(1, 1, i) - 0.5f;
  }
  sk::BatchView<float> batch(long pitch, long lo, long hi) const {
    sk::BatchView<float> b{x.data(), pitch, nullptr, y.data(), 3, 24};
    b.global_count = 24;
    return b.part(lo, hi);
  }
};

struct Result {
  std::vector<float> weights, buffers, losses;
  std::size_t bytes = 0;
  friend bool operator==(const Result& a, const Result& b) {
    return a.weights == b.weights && a.buffers == b.buffers && a.losses == b.losses;
  }
};

template <class Net, class Input, class Policy = sk::parallel::SingleProcess>
Result train(int threads, sk::Execution execution, const Policy& policy = {}, int rank = 0, int ranks = 1) {
  using Model = sk::Model<Net, Input>;
  const Samples samples;
  const auto batch = samples.batch(sk::sample_pitch(Input::extents), 24 * rank / ranks, 24 * (rank + 1) / ranks);
  Model model{sk::Seed{3}};
  sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Adam{.lr = 0.01f}, policy};
  step.reserve({.capacity = batch.count, .execution = execution, .block = 8, .threads = threads});
  Result r;
  for (std::uint64_t i = 0; i < 4; ++i) r.losses.push_back(static_cast<float>(step.step(batch, {.key = i + 1}).mean()));
  r.losses.push_back(static_cast<float>(step.evaluate(batch).mean()));
  r.weights.assign(model.parameters().begin(), model.parameters().end());
  r.buffers.assign(model.buffers().begin(), model.buffers().end());
  r.bytes = step.executor().activation_bytes();
  return r;
}

template <template <template <class> class> class Net, class Input> void same(bool couples = false) {
  for (const int threads : {1, 2, 4})
    for (const auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      if (couples && execution == sk::Execution::depth_first) continue;
      const Result itself = train<Net<Itself>, Input>(threads, execution);
      const Result again = train<Net<nn::Recompute>, Input>(threads, execution);
      INFO(threads << " threads");
      CHECK(again == itself);
      if (couples) CHECK(again.bytes < itself.bytes);
    }
}
}  // namespace

TEST_CASE("Recompute: the same bits as without it, in less memory", "[nn]") {
  same<Dense, sk::Shape<16>>(true);
  same<Images, sk::Shape<16, 16, 1>>();
  same<Sequences, sk::Shape<256>>();
  for (const int threads : {1, 2, 4})  // wide: the workers divide a gradient among them
    CHECK(train<Plain<nn::Recompute>, sk::Shape<256>>(threads, sk::Execution::layer_wise) ==
          train<Plain<Itself>, sk::Shape<256>>(threads, sk::Execution::layer_wise));
}

TEST_CASE("Recompute: ranks with statistics over all of them", "[nn]") {
  std::vector<Result> itself(3), again(3);
  sk::spawn(3, [&](sk::ThreadComm& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const sk::parallel::DataParallel policy{world, sk::parallel::SyncBatchNorm{}};
    itself[rank] = train<Dense<Itself>, sk::Shape<16>>(2, sk::Execution::layer_wise, policy, world.rank(), 3);
    again[rank] = train<Dense<nn::Recompute>, sk::Shape<16>>(2, sk::Execution::layer_wise, policy, world.rank(), 3);
  });
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK(again[rank] == itself[rank]);
}

TEST_CASE("Recompute: the table of the network is that without it; the summary says what it costs", "[nn]") {
  using Again = sk::Model<Dense<nn::Recompute>, sk::Shape<16>>;
  using Alone = sk::Model<Dense<Itself>, sk::Shape<16>>;
  STATIC_REQUIRE(Again::fingerprint == Alone::fingerprint);
  STATIC_REQUIRE(nn::same_arrays(Again::program.parameters(), Alone::program.parameters()));
  for (std::size_t i = 0; i < Again::program.parameters().size(); ++i)
    CHECK(std::string(std::string_view(Again::program.name(Again::program.parameters()[i]))) ==
          std::string(std::string_view(Alone::program.name(Alone::program.parameters()[i]))));
  STATIC_REQUIRE(sk::saved_bytes_per_sample<Again> < sk::saved_bytes_per_sample<Alone>);
  STATIC_REQUIRE(Again::flops == Alone::flops);
  using Images = sk::Model<Deep, sk::Shape<32, 32, 3>>;
  constexpr nn::MemoryRequirements deep = nn::analyze<Deep>(Images::input::extents);
  STATIC_REQUIRE(deep.kept_activations == 18 * 32 * 32 * 16 + 16);  // the inputs of the blocks, and that of Linear
  STATIC_REQUIRE(deep.again.activations == nn::analyze<Block>({3, {32, 32, 16}}).kept_activations + 32 * 32 * 16);
  STATIC_REQUIRE(deep.again.flops == 18 * nn::analyze<Block>({3, {32, 32, 16}}).flops);
  const std::string text = sk::summary<Again>();
  CAPTURE(text);
  CHECK_THAT(text, Catch::Contains("again in backward") && Catch::Contains("flops a sample once more in backward ("));
  CHECK(sk::summary<Alone>().find("again") == std::string::npos);
}
