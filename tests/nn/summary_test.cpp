// SPDX-License-Identifier: Apache-2.0
// The summary of LeNet: its constants, and a row for each layer that the user wrote.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/residual.hpp>
#include <skein/nn/summary.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/state.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {

using LeNet =
    nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>,
                   nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>>;
using Model = sk::Model<LeNet, sk::Shape<28, 28, 1>>;
static_assert(Model::parameter_count == 61'706);
static_assert(Model::sizes.stored >= Model::parameter_count);
static_assert(sk::gradient_buckets<Model, 1> == 5);  // a layer each
static_assert(sk::gradient_buckets<Model, 1 << 30> == 1);
static_assert(sk::saved_bytes_per_sample<Model> > 0);
static_assert(sk::saved_bytes_per_sample<sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cpu, double>> >
              sk::saved_bytes_per_sample<Model>);

/// The line that begins with this name.
std::string row(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  return at == text.npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

}  // namespace

TEST_CASE("the summary has a row a layer and the sums", "[nn]") {
  const std::string text = sk::summary<Model>();
  CAPTURE(text);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2 + 12 + 1);  // headings, the input, the layers, the sums
  CHECK_THAT(row(text, "0"), Catch::Contains("Conv2d<6") && Catch::Contains("28 x 28 x 6") && Catch::Contains("156"));
  CHECK_THAT(row(text, "3"), Catch::Contains("10 x 10 x 16") && Catch::Contains("2,416"));
  CHECK_THAT(row(text, "7"), Catch::Contains("Linear<120>") && Catch::Contains("48,120"));
  CHECK_THAT(row(text, "11"), Catch::Contains("Linear<10>") && Catch::Contains("850"));
  CHECK_THAT(row(text, "0"), Catch::Contains("fused, 3 layers"));
  CHECK_THAT(row(text, "1"), Catch::Contains("with the one above"));
  CHECK_THAT(text, Catch::Contains("\n61,706 parameters ("));
  CHECK(text.find("skein::") == text.npos);
  CHECK(sk::summary(Model{}) == text);
}

TEST_CASE("columns of the summary are as wide as their widest cell", "[nn]") {
  using Deep = nn::Residual<nn::Residual<nn::Residual<nn::Sequential<nn::Linear<3>>>>>;  // "body.body.body.0"
  std::string text = sk::summary<sk::Model<nn::Sequential<Deep, nn::Linear<12345>>, sk::Shape<3>>>();
  CAPTURE(text);
  text.resize(text.find("49,392 parameters"));
  std::size_t kinds = 0, lines = 0;
  const std::size_t column = text.find("layer");
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1, ++lines)
    kinds += at + column < end && text[at + column] != ' ' && text[at + column - 1] == ' ';
  CHECK(lines > 5);
  CHECK(kinds == lines);
}

TEST_CASE("the summary says which kernel runs a convolution: direct for few channels, oneDNN for many, loops for neither",
          "[nn]") {
  using Convolutions =
      nn::Sequential<nn::Conv2d<16, sk::Kernel<3>, sk::Padding<1>>, nn::Conv2d<144, sk::Kernel<3>, sk::Padding<1>, sk::NoBias>,
                     nn::BatchNorm<>, nn::Relu, nn::Conv2d<250, sk::Kernel<3>, sk::Padding<1>>,
                     nn::Conv2d<250, sk::Kernel<3>, sk::Groups<250>>>;
  using Images = sk::Shape<16, 16, 3>;
  const bool direct = SKEIN_WITH_XSIMD, onednn = SKEIN_WITH_ONEDNN;
  const auto runs_as = [](const std::string& text, const char* layer, const std::string& kernel) {
    CHECK_THAT(row(text, layer), Catch::EndsWith("  " + kernel));
  };
  const std::string few = direct ? "direct over the filters" : onednn ? "oneDNN" : "reference";
  const std::string many = onednn ? "oneDNN" : few, grouped = onednn ? "oneDNN" : "reference";
  const std::string in_float = sk::summary<sk::Model<Convolutions, Images>>();
  CAPTURE(in_float);
  runs_as(in_float, "0", few);
  if (onednn) runs_as(in_float, "1", "oneDNN, then BatchNorm, fused, 3 layers");
  runs_as(in_float, "2", "  with the one above");
  runs_as(in_float, "4", many);
  runs_as(in_float, "5", grouped);
  const std::string in_double = sk::summary<sk::Model<Convolutions, Images, sk::Cpu, double>>();
  CAPTURE(in_double);
  const std::string of_double = direct ? "direct over the filters" : "reference";  // oneDNN does not take double
  runs_as(in_double, "0", of_double);
  if (direct) runs_as(in_double, "1", "direct over the filters, with BatchNorm, fused, 3 layers");
  runs_as(in_double, "4", of_double);
  runs_as(in_double, "5", "reference");
}

#if SKEIN_WITH_XSIMD
TEST_CASE("the summary names rows and gathered rows, alone and with what is fused to them", "[nn]") {
  using Deep = nn::Conv2d<128, sk::Kernel<3>, sk::Padding<1>, sk::NoBias>;
  using Convolutions =
      nn::Sequential<nn::Conv2d<128, sk::Kernel<1>>, nn::Conv2d<128, sk::Kernel<1>>, nn::Relu,
                     nn::Conv2d<128, sk::Kernel<1>, sk::NoBias>, nn::BatchNorm<>, Deep, nn::BatchNorm<>, Deep, nn::Relu>;
  const std::string all = sk::summary<sk::Model<Convolutions, sk::Shape<6, 6, 64>>>();
  CAPTURE(all);
  const bool gathers = sk::ops::cpu::accumulators <= 16;
  const std::string deep = gathers ? "gathered rows" : "direct over the filters";
  CHECK_THAT(row(all, "0"), Catch::EndsWith("  rows"));
  CHECK_THAT(row(all, "1"), Catch::Contains("  rows, then ReLU in place"));
  CHECK_THAT(row(all, "3"), Catch::Contains("  rows, then BatchNorm"));
  CHECK_THAT(row(all, "5"), Catch::Contains("  " + deep + (gathers ? ", then BatchNorm" : ", with BatchNorm")));
  CHECK_THAT(row(all, "7"), Catch::Contains("  " + deep + (gathers ? ", then ReLU in place" : ", with ReLU")));
}
#endif

TEST_CASE("the summary of a pass says what memory it holds", "[nn]") {
  Model model;
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 32, .threads = 2}};
  const sk::MemoryPlan m = executor.memory_plan();
  CHECK(m.parameters == Model::sizes.stored * sizeof(float));
  CHECK(m.gradients == 2 * (Model::sizes.stored + sk::gradient_tail) * sizeof(float));
  CHECK(m.activations > 0);
  CHECK(m.libraries == 0);
  const std::string text = sk::summary(executor), table = sk::summary(model);
  CHECK(text.substr(0, table.size()) == table);
  CHECK_THAT(text.substr(table.size()), Catch::StartsWith("memory for 32 samples on Cpu: parameters " +
                                                          std::to_string((m.parameters + 1023) / 1024) + " KiB, gradients "));
}

TEST_CASE("the summary of a pass names a frozen beginning, and what it saves", "[nn]") {
  Model model;
  optim::Adam adam{.lr = 0.01f};
  const optim::BoundOptimizer all{adam, model};
  adam.groups = {optim::frozen("0.*"), optim::frozen("3.*"), optim::frozen("7.*"), optim::frozen("11.*")};
  const optim::BoundOptimizer optimizer{adam, model};
  sk::Executor whole{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 1}};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 1, .first_trained = optimizer.first_trained()}};
  const std::string text = sk::summary(executor, optimizer);
  CAPTURE(text);
  for (const char* name : {"0", "1", "3", "7", "8"}) CHECK_THAT(row(text, name), Catch::EndsWith(", frozen"));
  CHECK_THAT(row(text, "9"), !Catch::Contains("frozen"));
  CHECK_THAT(row(text, "11"), !Catch::Contains("frozen"));          // behind a trained one: backward goes through it
  const long flops = Model::flops - 2 * (120 * 84 + 84 * 10) - 84;  // of the last two, and a ReLU between them
  CHECK_THAT(text, Catch::Contains(", 9 layers frozen, without backward: 50,692 parameters, " + nn::detail::grouped(flops) +
                                   " of these flops, on "));
  const auto state = [](const auto& of) {
    return "state of the optimizer " + nn::detail::grouped((of.state_bytes() + 1023) / 1024);
  };
  CHECK_THAT(text, Catch::Contains(state(optimizer) + " KiB, "));
  CHECK(optimizer.state_bytes() < all.state_bytes() / 4);
  CHECK_THAT(sk::summary(whole, all), Catch::Contains(state(all) + " KiB, ") && !Catch::Contains("frozen"));
  CHECK(sk::summary(executor).find("state of") == std::string::npos);
}

TEST_CASE("blocks of Recompute within a frozen beginning are not made again", "[nn]") {
  using Block = nn::Recompute<nn::Sequential<nn::Linear<8>, nn::Tanh>>;
  sk::Model<nn::Sequential<Block, Block, nn::Linear<2>>, sk::Shape<8>> model;
  const auto frozen = [&](int blocks) {
    optim::Sgd sgd{.lr = 0.1f};
    for (int i = 0; i < blocks; ++i) sgd.groups.rules.push_back(optim::frozen(std::to_string(i) + ".*"));
    const optim::BoundOptimizer optimizer{sgd, model};
    sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 1, .first_trained = optimizer.first_trained()}};
    return sk::summary(executor);
  };
  const auto layers = decltype(model)::program.layers();
  const auto again = [](long flops) { return ", " + std::to_string(flops) + " flops a sample once more in backward"; };
  const long block = layers[0].flops + layers[1].flops;
  CHECK_THAT(frozen(0), Catch::Contains(again(2 * block)));
  CHECK_THAT(frozen(1), Catch::Contains(again(block)) && Catch::Contains(", 2 layers frozen"));
  CHECK_THAT(frozen(2), !Catch::Contains("again") && !Catch::Contains("once more") && Catch::Contains(", 4 layers frozen"));
}

TEST_CASE("a block of Recompute that is frozen in part is made again whole", "[nn]") {
  using Block = nn::Recompute<nn::Sequential<nn::Linear<8>, nn::Tanh, nn::Linear<4>>>;
  sk::Model<nn::Sequential<Block, nn::Linear<2>>, sk::Shape<8>> model;
  optim::Sgd sgd{.lr = 0.1f};
  sgd.groups.rules.push_back(optim::frozen("0.0.*"));
  const optim::BoundOptimizer optimizer{sgd, model};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 1, .first_trained = optimizer.first_trained()}};
  const std::string text = sk::summary(executor);
  CAPTURE(text);
  const auto layers = decltype(model)::program.layers();
  const long block = layers[0].flops + layers[1].flops + layers[2].flops;
  CHECK_THAT(text, Catch::Contains(", " + std::to_string(block) + " flops a sample once more in backward"));
  CHECK_THAT(text, Catch::Contains("again in backward"));
  CHECK_THAT(text, Catch::Contains(" layers frozen, without backward: 72 parameters, 0 of these flops"));
}
