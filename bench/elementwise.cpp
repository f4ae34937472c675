// SPDX-License-Identifier: Apache-2.0
// How long does relu(u * v + w) take over 1 k, 100 k and 1 M floats on one thread: one fused loop an assignment?
#include "support/training.hpp"

namespace {
using namespace bench;

bool relu_of(Report& report, Line l, long n) {
  sk::Tensor<float, 1> u(sk::dims(n)), v(sk::dims(n)), w(sk::dims(n)), result(sk::dims(n));
  for (auto [t, stream] : {std::pair{&u, 1}, std::pair{&v, 2}, std::pair{&w, 3}})
    for (long i = 0; i < n; ++i)
      t->data()[i] = 2 * sk::random_uniform(9, static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(i)) - 1;
  auto assign = [&] {
    result = relu(u * v + w);
    asm volatile("" ::"r"(result.data()) : "memory");
  };
  assign();
  const Exchange exchange;
  for (auto [t, name] : {std::pair{&u, "u"}, std::pair{&v, "v"}, std::pair{&w, "w"}, std::pair{&result, "expected"}})
    exchange.write(name, t->data(), static_cast<std::size_t>(n));
  std::vector<PeerVariant> tried{{.threads = 1, .option = "--plain"}, {.threads = 1, .option = "--in-place"}};
  if (!report.quick()) tried.push_back({.threads = 1, .compile = true});
  const auto peer = best_peer("elementwise.py", {"--folder", exchange.path()}, tried, report.quick());
  std::string wrong;
  if (peer)
    if (const double d = std::stod(peer->ask("check")); !(d <= 1e-6)) wrong = "results differ by " + number(d);
  l.floor = 1e3 * 16 * static_cast<double>(n) / bandwidth(16 * n, report.quick());
  const bool right = against(l, candidate(assign), peer.get(), wrong, report.quick());
  report.add(l);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("elementwise", options(argc, argv));
  bool right = relu_of(report, {.metric = "relu(u * v + w), 1 k", .must = {0.07}, .hope = {0.045}, .threads = 1}, 1000);
  right &= relu_of(report, {.metric = "relu(u * v + w), 100 k", .must = {0.58}, .hope = {0.50}, .threads = 1}, 100'000);
  right &= relu_of(report, {.metric = "relu(u * v + w), 1 M", .must = {1.03}, .hope = {0.95}, .threads = 1}, 1'000'000);
  return report.finish(right);
}
