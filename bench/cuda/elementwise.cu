// SPDX-License-Identifier: Apache-2.0
// How near to the memory's bandwidth is a fused chain, relu(u * v + w), on a GPU, and how does it stand against PyTorch?
#include "support/apart.hpp"
#include "support/gpu.hpp"
#include "support/training.hpp"

namespace {
using namespace bench;

bool measure(Report& report, long n, double bandwidth) {
  const sk::Cuda device{};
  const sk::Tensor<float, 1, sk::Cuda> u = sk::uniform<float>(sk::Seed{1}, sk::dims(n), -1.f, 1.f, 0, device),
                                       v = sk::uniform<float>(sk::Seed{2}, sk::dims(n), -1.f, 1.f, 0, device),
                                       w = sk::uniform<float>(sk::Seed{3}, sk::dims(n), -1.f, 1.f, 0, device);
  sk::Tensor<float, 1, sk::Cuda> result(sk::dims(n), device);
  result = sk::maximum(u * v + w, 0.f);
  const auto a = u.to<sk::Cpu>(), b = v.to<sk::Cpu>(), c = w.to<sk::Cpu>(), got = result.to<sk::Cpu>();
  std::vector<float> expected(static_cast<std::size_t>(n));
  double worst = 0;
  for (long i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    expected[at] = std::max(std::fma(a.data()[i], b.data()[i], c.data()[i]), 0.f);
    worst = larger(worst, static_cast<double>(got.data()[i] - expected[at]));
  }
  const std::string wrong = worst < 1e-6 ? "" : "the result is wrong by " + number(worst);
  const Exchange exchange;
  for (const auto& [name, values] :
       {std::pair{"u", a.data()}, {"v", b.data()}, {"w", c.data()}, {"expected", static_cast<const float*>(expected.data())}})
    exchange.write(name, values, static_cast<std::size_t>(n));

  const Candidate ours = gpu_candidate([&] { result = sk::maximum(u * v + w, 0.f); });
  bool right = true;
  for (const char* option : {"--plain", "--compile-it"}) {
    Line l{.metric = "relu(u * v + w), " + number(static_cast<double>(n)) + " floats, against " + (option + 2),
           .must = {{}, 1 / 0.75},
           .hope = {{}, 1 / 0.88}};
    l.floor = 1e3 * 16.0 * static_cast<double>(n) / bandwidth;
    l.add(gpu_name() + ", a copy reaches " + number(1e-9 * bandwidth) + " GB/s");
    const auto peer = gpu_peer("elementwise.py", {"--folder", exchange.path()}, {1, false, false, false, option});
    right &= against_on_gpu(l, ours, peer.get(), wrong, report.quick());
    report.add(l);
  }
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  need_gpu(argv[0]);
  Report report("cuda/elementwise", options(argc, argv));
  const double bandwidth = gpu_bandwidth(std::size_t{1} << 28);
  bool right = true;
  for (long n : {1L << 20, 1L << 24, 1L << 26}) right &= measure(report, n, bandwidth);
  return report.finish(right);
}
