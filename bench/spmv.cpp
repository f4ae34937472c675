// SPDX-License-Identifier: Apache-2.0
// How long does a sparse matrix times a vector take, a graph of 10,000 nodes and 5 M edges as PageRank has it: as a pattern, with
// 16-bit columns, and with values?
#include <skein/ops/sliced_product.hpp>

#include "support/apart.hpp"
#include "support/training.hpp"

namespace {
using namespace bench;

/// Each edge is there with 5 %.
sk::Csr<float> graph(long nodes) {
  std::vector<std::int32_t> rows, columns;
  for (long i = 0; i < nodes; ++i)
    for (long j = 0; j < nodes; ++j)
      if (sk::random_uniform(1, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)) < 0.05f) {
        rows.push_back(static_cast<std::int32_t>(i));
        columns.push_back(static_cast<std::int32_t>(j));
      }
  return sk::Csr<float>::from_triples(nodes, nodes, rows, columns, std::vector<float>(rows.size(), 1.f));
}

/// What each matrix is multiplied by, and what is to come of it: each row's sum in double precision, by a plain loop.
struct Vectors {
  sk::Tensor<float, 1> x, expected;

  explicit Vectors(const sk::Csr<float>& a)
      : x(sk::uniform<float>(sk::Seed{2}, sk::dims(a.columns()))), expected(sk::dims(a.rows())) {
    for (long i = 0; i < a.rows(); ++i) {
      double sum = 0;
      for (long k = a.offsets().data[i]; k < a.offsets().data[i + 1]; ++k)
        sum += static_cast<double>(a.values().data[k]) * static_cast<double>(x.data()[a.indices().data[k]]);
      expected.data()[i] = static_cast<float>(sum);
    }
  }
};

template <class Matrix> bool product(Report& report, Line l, const Matrix& a, Peer* peer, const Vectors& v, double bytes) {
  sk::Tensor<float, 1> y(sk::dims(a.rows()));
  sk::Workers workers(l.threads);
  auto multiply = [&] { workers.run([&](sk::Worker& w) { mv_into(y.view(), a, v.x.view(), w); }); };
  multiply();
  const double difference = apart(y.data(), v.expected.data(), a.rows());
  l.floor = 1e3 * bytes * static_cast<double>(a.entries()) /
            (l.threads * bandwidth(static_cast<long>(bytes) * a.entries(), report.quick()));
  const bool right =
      against(l, candidate(multiply), peer, difference <= 1e-5 ? "" : "results differ by " + number(difference), report.quick());
  report.add(l);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("spmv", options(argc, argv));
  constexpr long nodes = 10'000;
  const sk::Csr<float> a = graph(nodes);
  const sk::Csr<void> pattern = a.without_values();
  const auto narrow = pattern.with_index<std::uint16_t>();
  const sk::SlicedPattern sliced(pattern);
  const Vectors vectors(a);
  const Exchange exchange;
  exchange.write("offsets", a.offsets().data, static_cast<std::size_t>(nodes + 1));
  exchange.write("indices", a.indices().data, static_cast<std::size_t>(a.entries()));
  exchange.write("x", vectors.x.data(), static_cast<std::size_t>(nodes));
  exchange.write("expected", vectors.expected.data(), static_cast<std::size_t>(nodes));
  bool right = true;
  for (int threads : {1, 2}) {
    std::vector<PeerVariant> tried;
    for (const char* option : {"--int32", ""})
      for (bool active : {false, true})
        if (threads > 1 || !active) tried.push_back({.threads = threads, .active = active, .option = option});
    const auto peer = best_peer("spmv.py", {"--folder", exchange.path(), "--rows", std::to_string(nodes)}, tried, report.quick());
    if (peer)
      if (const double d = std::stod(peer->ask("check")); !(d <= 1e-5)) {
        std::cerr << "spmv: results differ by " << d << '\n';
        return 1;
      }
    const Goal must = threads == 2 ? Goal{0.30} : Goal{};
    right &= product(report, {.metric = "pattern, 32 bits", .must = must, .threads = threads}, pattern, peer.get(), vectors, 4);
    right &= product(report, {.metric = "pattern, 16 bits", .must = must, .threads = threads}, narrow, peer.get(), vectors, 2);
    right &= product(report, {.metric = "pattern, tiles", .must = must, .threads = threads}, sliced, peer.get(), vectors, 2);
    right &= product(report, {.metric = "with values", .threads = threads}, a, peer.get(), vectors, 8);
  }
  return report.finish(right);
}
