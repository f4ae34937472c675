// SPDX-License-Identifier: Apache-2.0
// Convolutions of ResNet-50 on a GPU, forward and both backwards, NHWC, in tf32 and bf16, against PyTorch's channels-last: both
// call cuDNN. Ours are its deterministic kernels.
#include "support/gpu.hpp"

namespace {
namespace sk = skein;
namespace ops = skein::ops;
using namespace bench;

template <class Value> bool measure(Report& report, const std::string& precision, long batch, const ops::Conv2dGeometry& g) {
  const sk::Cuda device{};
  const auto count = [](long n) { return static_cast<std::size_t>(n); };
  const auto filled = [&](std::size_t n, std::uint64_t key) {
    std::vector<Value> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<Value>(2 * sk::random_uniform(key, 0, i) - 1);
    return v;
  };
  const std::vector<Value> images = filled(count(batch * g.in_count()), 1);
  std::vector<float> filters(count(g.weight_rows() * g.weight_pitch()));
  for (std::size_t i = 0; i < filters.size(); ++i)
    if (static_cast<long>(i) % g.weight_pitch() < g.filters) filters[i] = 2 * sk::random_uniform(2, 0, i) - 1;
  sk::Arena<Value, sk::Cuda> x(images.size(), device), y(count(batch * g.out_count()), device), dy(y.size(), device),
      dx(images.size(), device), packed_weights(count(ops::conv2d_device_packed_weights(g)), device);
  sk::Arena<float, sk::Cuda> weight(filters.size(), device), dweight(filters.size(), device);
  sk::Memory<sk::Cuda>::from_host(x.data(), images.data(), images.size() * sizeof(Value), device);
  sk::Memory<sk::Cuda>::from_host(weight.data(), filters.data(), filters.size() * sizeof(float), device);
  const std::vector<Value> gradients = filled(y.size(), 3);
  sk::Memory<sk::Cuda>::from_host(dy.data(), gradients.data(), gradients.size() * sizeof(Value), device);

  using Op = ops::DeviceConv2d<Value, float>;
  ops::DeviceConv2dCall<Value, float> c{batch,     x.data(),  weight.data(),  nullptr, y.data(),
                                        dy.data(), dx.data(), dweight.data(), nullptr, packed_weights.data()};
  c.math = precision == "tf32" ? ops::cudnn::MathMode::tf32 : ops::cudnn::MathMode::full;
  Op::prepare(g, batch, false, false, c.math);
  Op::pack_weights(g, c);
  Op::forward(g, c);
  std::vector<Value> got(y.size());
  sk::Memory<sk::Cuda>::to_host(got.data(), y.data(), got.size() * sizeof(Value), device);
  double sum = 0, size = 0;  // the pixel in the middle of the last image, filter 0
  const long row = g.out_height() / 2, column = g.out_width() / 2;
  for (int i = 0; i < g.kernel; ++i)
    for (int j = 0; j < g.kernel; ++j)
      for (int k = 0; k < g.channels; ++k) {
        const long at_row = row * g.stride - g.padding + i, at_column = column * g.stride - g.padding + j;
        if (at_row < 0 || at_row >= g.height || at_column < 0 || at_column >= g.width) continue;
        const double term =
            static_cast<double>(images[count((batch - 1) * g.in_count() + (at_row * g.width + at_column) * g.channels + k)]) *
            static_cast<double>(
                static_cast<Value>(filters[count(((1L * i * g.kernel + j) * g.channels + k) * g.weight_pitch())]));
        sum += term, size += std::fabs(term);
      }
  const double off =
      std::fabs(sum - static_cast<double>(got[count((batch - 1) * g.out_count() + (row * g.out_width() + column) * g.filters)])) /
      size;
  const std::string wrong = off < 1e-2 ? "" : "the result is wrong by " + number(off);

  bool right = true;
  for (const std::string direction : {"forward", "backward"}) {
    std::string words = "conv";
    std::vector<std::string> arguments{"conv"};
    for (long v :
         {batch, static_cast<long>(g.height), static_cast<long>(g.width), static_cast<long>(g.channels),
          static_cast<long>(g.filters), static_cast<long>(g.kernel), static_cast<long>(g.stride), static_cast<long>(g.padding)}) {
      arguments.push_back(std::to_string(v));
      words += " " + arguments.back();
    }
    arguments.push_back(direction);
    Line l{.metric = words + " " + direction + ", " + precision, .must = {1.05}, .hope = {1.0}};
    l.add(gpu_name());
    const auto peer = gpu_peer("operation.py", arguments, {1, false, false, false, "--" + precision});
    const Candidate ours =
        direction == "forward" ? gpu_candidate([&] { Op::forward(g, c); }) : gpu_candidate([&] { Op::backward(g, c); });
    right &= against_on_gpu(l, ours, peer.get(), wrong, report.quick());
    report.add(l);
  }
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  need_gpu(argv[0]);
  Report report("cuda/conv", options(argc, argv));
  bool right = true;
  for (const ops::Conv2dGeometry& g :
       {ops::Conv2dGeometry{56, 56, 64, 64, 3, 1, 1}, ops::Conv2dGeometry{28, 28, 128, 128, 3, 1, 1},
        ops::Conv2dGeometry{14, 14, 1024, 256, 1, 1, 0}, ops::Conv2dGeometry{224, 224, 3, 64, 7, 2, 3}}) {
    right &= measure<float>(report, "tf32", 64, g);
    right &= measure<sk::bf16>(report, "bf16", 64, g);
  }
  report.say("what the libraries chose:\n" + sk::cuda::choices().text());
  return report.finish(right);
}
