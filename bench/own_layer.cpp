// SPDX-License-Identifier: Apache-2.0
// What does a layer written as tensor expressions cost beside the same layer by hand, one loop over samples and features that
// makes both gradients? y = scale * x with a factor a feature, forward and backward, 1 k to 1 M values on one thread.
#include <algorithm>
#include <functional>

#include "../tests/support/own_layers.hpp"
#include "support/apart.hpp"
#include "support/report.hpp"
#include "support/slices.hpp"

namespace {
using namespace bench;
namespace sk = skein;
using Frame = sk::nn::Frame<float, sk::Cpu>;

/// The compiler is told that arrays do not overlap, and the sizes.
struct ByHand {
  template <class In> static void forward(Frame& f) {
    constexpr long n = In::extents.last(), rows = In::count / n, pitch = sk::sample_pitch(In::extents);
    const float* w = f.parameters;
    for (long s = 0; s < f.batch; ++s)
      for (long r = 0; r < rows; ++r) {
        const float* x = f.x + s * pitch + r * n;
        float* y = f.y + s * pitch + r * n;
#pragma GCC ivdep
        for (long i = 0; i < n; ++i) y[i] = x[i] * w[i];
      }
  }
  template <class In> static void backward(Frame& f) {
    constexpr long n = In::extents.last(), rows = In::count / n, pitch = sk::sample_pitch(In::extents);
    const float* w = f.parameters;
    float* g = f.gradients;
    for (long s = 0; s < f.batch; ++s)
      for (long r = 0; r < rows; ++r) {
        const long at = s * pitch + r * n;
        const float *x = f.x + at, *dy = f.dy + at;
        float* dx = f.dx + at;
#pragma GCC ivdep
        for (long i = 0; i < n; ++i) {
          g[i] += dy[i] * x[i];
          dx[i] = dy[i] * w[i];
        }
      }
  }
};

struct Memory {
  sk::Arena<float> x, y, dy, dx, w, g;
  Frame frame;
  Memory(long values, long features)
      : x(size(values)), y(size(values)), dy(size(values)), dx(size(values)), w(size(sk::row_pitch(features))),
        g(size(sk::row_pitch(features))) {
    std::uint64_t stream = 0;
    for (sk::Arena<float>* a : {&y, &dx, &g}) std::fill(a->data(), a->data() + a->size(), 0.0f);
    for (sk::Arena<float>* a : {&x, &dy, &w}) {
      ++stream;
      for (std::size_t i = 0; i < a->size(); ++i) a->data()[i] = 2 * sk::random_uniform(3, stream, i) - 1;
    }
    std::fill(w.data() + features, w.data() + w.size(), 0.0f);  // the gap behind a row
    frame.x = x.data(), frame.y = y.data(), frame.dy = dy.data(), frame.dx = dx.data();
    frame.parameters = w.data(), frame.gradients = g.data();
  }
  static std::size_t size(long n) { return static_cast<std::size_t>(n); }
};

double apart(const sk::Arena<float>& got, const sk::Arena<float>& expected) {
  return bench::apart(got.data(), expected.data(), static_cast<long>(got.size()));
}

bool report_ratio(Report& report, Line l, const std::function<void()>& ours, const std::function<void()>& by_hand,
                  double difference) {
  const Plan plan{report.quick() ? 0.003 : 0.01, report.quick() ? 40 : 150};
  const auto barrier = [](const std::function<void()>& f) {
    return candidate([f] {
      f();
      asm volatile("" ::: "memory");
    });
  };
  const Candidate a = barrier(ours), b = barrier(by_hand);
  const bool right = difference <= 1e-5;
  if (!right) l.accepted = false, l.add("results differ by " + number(difference));
  if (const std::string reason = void_reason(b, plan); !reason.empty()) l.accepted = false, l.add(reason);
  const Comparison c = compare(a, b, plan);
  l.unit = "us";
  l.ours = 1e6 * c.a;
  l.peer = 1e6 * c.b;
  l.peer_name = "by hand";
  l.ratio = c.ratio;
  l.threads = 1;
  report.add(l);
  return right;
}

template <class In> bool size(Report& report, long batch, const std::string& name) {
  using Ours = sk::nn::ExpressionLayer<own_layers::Scale>;
  const long values = batch * sk::sample_pitch(In::extents), features = In::extents.last();
  Memory a(values, features), b(values, features);
  a.frame.batch = b.frame.batch = batch;
  Ours::forward<In>(a.frame), ByHand::forward<In>(b.frame);
  Ours::backward<In>(a.frame), ByHand::backward<In>(b.frame);
  const double forward = apart(a.y, b.y), backward = larger(apart(a.dx, b.dx), apart(a.g, b.g));
  bool right = report_ratio(
      report, {.metric = "forward, " + name, .must = {1.10}, .hope = {1.05}}, [&] { Ours::forward<In>(a.frame); },
      [&] { ByHand::forward<In>(b.frame); }, forward);
  right &= report_ratio(
      report, {.metric = "backward, " + name, .must = {1.30}, .hope = {1.05}}, [&] { Ours::backward<In>(a.frame); },
      [&] { ByHand::backward<In>(b.frame); }, backward);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("own_layer", options(argc, argv));
  bool right = size<sk::Shape<64>>(report, 16, "1 k values: 16 x 64");
  right &= size<sk::Shape<100>>(report, 100, "10 k values: 100 x 100");
  right &= size<sk::Shape<64>>(report, 1600, "100 k values: 1600 x 64");
  right &= size<sk::Shape<1000>>(report, 100, "100 k values: 100 x 1000");
  right &= size<sk::Shape<100>>(report, 10'000, "1 M values: 10000 x 100");
  right &= size<sk::Shape<14, 14, 32>>(report, 160, "1 M values: 160 images of (14, 14, 32)");
  return report.finish(right);
}
