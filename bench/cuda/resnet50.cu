// SPDX-License-Identifier: Apache-2.0
// A training step of ResNet-50 in bf16, NHWC, on a GPU (224 x 224 images, batch 64), against PyTorch under autocast,
// channels-last, eager and with CUDA graphs. He et al., CVPR 2016, with the stride in the 3 x 3 convolution, as torchvision has
// it.
#include "support/gpu_training.hpp"

namespace {
using namespace bench;

template <int Width, int Step> struct Body
    : nn::Sequential<nn::Conv2d<Width, sk::Kernel<1>, sk::NoBias>, nn::BatchNorm<>, nn::Relu,
                     nn::Conv2d<Width, sk::Kernel<3>, sk::Stride<Step>, sk::Padding<1>, sk::NoBias>, nn::BatchNorm<>, nn::Relu,
                     nn::Conv2d<4 * Width, sk::Kernel<1>, sk::NoBias>, nn::BatchNorm<>> {};
template <int Width, int Step> struct Projection
    : nn::Sequential<nn::Conv2d<4 * Width, sk::Kernel<1>, sk::Stride<Step>, sk::NoBias>, nn::BatchNorm<>> {};
template <int Width> struct Block : nn::Sequential<nn::Residual<Body<Width, 1>>, nn::Relu> {};
template <int Width, int Step> struct First : nn::Sequential<nn::Residual<Body<Width, Step>, Projection<Width, Step>>, nn::Relu> {
};

struct ResNet50
    : nn::Sequential<nn::Conv2d<64, sk::Kernel<7>, sk::Stride<2>, sk::Padding<3>, sk::NoBias>, nn::BatchNorm<>, nn::Relu,
                     nn::MaxPool2d<3, sk::Stride<2>, sk::Padding<1>>, First<64, 1>, nn::Repeat<2, Block<64>>, First<128, 2>,
                     nn::Repeat<3, Block<128>>, First<256, 2>, nn::Repeat<5, Block<256>>, First<512, 2>,
                     nn::Repeat<2, Block<512>>, nn::GlobalAvgPool, nn::Linear<1000>> {
  using input = sk::Shape<224, 224, 3>;
};
using Loss = nn::CrossEntropy;
using Step = GpuTraining<ResNet50, Loss, sk::precision::bf16>;
static_assert(Step::Model::parameter_count == 25557032);
}  // namespace

int main(int argc, char** argv) {
  need_gpu(argv[0]);
  Report report("cuda/resnet50", options(argc, argv));
  constexpr long batch = 64;
  const Samples<ResNet50, Loss> samples(batch);
  Step ours(samples, {.lr = 0.05f, .momentum = 0.9});
  const std::vector<double> curve = ours.losses(8);
  std::string wrong;  // the weights of both sides differ: what is checked is that both learn
  if (!(curve.front() > 5 && curve.front() < 10 && curve.back() < curve.front()))
    wrong = "the loss goes from " + number(curve.front()) + " to " + number(curve.back());
  report.say("what the libraries chose:\n" + sk::cuda::choices().text());
  ours.reset();
  const Candidate candidate = ours.candidate();
  bool right = true;
  for (const char* option : {"--eager", "--graphs"}) {
    Line l{.metric = std::string("ResNet-50 step, batch 64, bf16, against ") + (option + 2), .must = {1.05}, .hope = {1.0}};
    l.add(gpu_name());
    if (const std::string words = ours.note(); !words.empty()) l.add(words);
    const auto peer = gpu_peer("resnet50.py", {"--batch", std::to_string(batch)}, {1, false, false, false, option});
    right &= against_on_gpu(l, candidate, peer.get(), wrong, report.quick());
    l.add(number(1e3 * batch / *l.ours) + " images a second");
    report.add(l);
  }
  return report.finish(right);
}
