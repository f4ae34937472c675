// SPDX-License-Identifier: Apache-2.0
// How long do 200 iterations of PageRank take on a random graph of 10,000 nodes and 5 M edges, on two cores: each of experiment
// 06's versions against PyTorch with a dense and with a CSR matrix?
#include "../examples/experiments/support/pagerank.hpp"
#include "support/training.hpp"

namespace {
using namespace bench;
namespace ex = experiments;
constexpr long iterations = 200;

/// A version as a candidate of one iteration each.
template <class Version> struct Iterations {
  ex::PageRank<sk::Cpu, Version> ranks;
  sk::Workers workers;

  Iterations(const ex::Links& links, int threads) : ranks(links, 0.85), workers(threads) {}
  Candidate candidate() {
    return [this](long n) {
      ranks.iterate(workers, 1);
      return timed(1, [&] { ranks.iterate(workers, n); });
    };
  }
};

/// The peer's ranks after 200 iterations are the reference: theirs of a file, ours of the same number.
std::string differs(const Exchange& exchange, Peer& peer, const sk::Tensor<float, 1>& ours) {
  exchange.write("ranks", ours.data(), static_cast<std::size_t>(ours.size()));
  const double d = std::stod(peer.ask("check " + std::to_string(iterations)));
  return d <= 1e-5 ? "" : "ranks differ by " + number(d);
}

/// One version against each of the peers, which are dense and CSR.
template <class Version> bool version(Report& report, const std::string& name, const ex::Links& links, const Exchange& exchange,
                                      double bytes, std::optional<Goal> dense_must, std::optional<Goal> csr_must,
                                      std::optional<Goal> csr_hope, Peer* dense, Peer* csr) {
  std::string wrong;
  {
    Iterations<Version> once(links, 2);
    once.ranks.iterate(once.workers, iterations);
    const sk::Tensor<float, 1> ranks = once.ranks.ranks();
    for (Peer* peer : {dense, csr})
      if (peer && wrong.empty()) wrong = differs(exchange, *peer, ranks);
  }
  Iterations<Version> ours(links, 2);
  bool right = true;
  struct Against {
    const char* name;
    Peer* peer;
    std::optional<Goal> must, hope;
  };
  for (const Against& a : {Against{"dense", dense, dense_must, {}}, Against{"CSR", csr, csr_must, csr_hope}}) {
    if (!a.must) continue;
    Line l{.metric = name + ", against " + a.name + ", an iteration", .must = *a.must, .threads = 2};
    if (a.hope) l.hope = *a.hope;
    l.floor = 1e3 * bytes / (2 * bandwidth(static_cast<long>(bytes), report.quick()));
    right &= against(l, ours.candidate(), a.peer, wrong, report.quick());
    if (l.ours)
      l.add("200 iterations " + number(1e-3 * iterations * *l.ours) + " s" +
            (l.peer ? " against " + number(1e-3 * iterations * *l.peer) + " s" : ""));
    report.add(l);
  }
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("pagerank", options(argc, argv));
  constexpr long nodes = 10'000;
  const ex::Links links(ex::random_graph(nodes, 0.05, sk::Seed{1}));
  const double edges = static_cast<double>(links.in.entries()), cells = static_cast<double>(nodes * nodes);
  const Exchange exchange;
  exchange.write("offsets", links.in.offsets().data, static_cast<std::size_t>(nodes + 1));
  exchange.write("indices", links.in.indices().data, static_cast<std::size_t>(links.in.entries()));
  exchange.write("share", links.share.data(), static_cast<std::size_t>(nodes));
  const auto start = [&](std::vector<const char*> kinds) {
    std::vector<PeerVariant> tried;
    for (const char* kind : kinds)
      for (const bool active : {false, true}) tried.push_back({.threads = 2, .active = active, .option = kind});
    return best_peer("pagerank.py", {"--folder", exchange.path(), "--nodes", std::to_string(nodes)}, tried, report.quick());
  };
  const auto dense = start({"--dense"}), csr = start({"--csr-int32", "--csr-int64", "--csr-scaled"});
  bool right = true;
  using Narrow = ex::Sparse<sk::Cpu, std::uint16_t>;
  right &= version<Narrow>(report, "pattern, 16 bits", links, exchange, 2 * edges, Goal{0.15}, Goal{0.30}, Goal{0.20},
                           dense.get(), csr.get());
  right &= version<ex::Sliced<sk::Cpu>>(report, "pattern, in tiles", links, exchange, 2 * edges, Goal{0.15}, Goal{0.30},
                                        Goal{0.20}, dense.get(), csr.get());
  right &= version<ex::Sparse<sk::Cpu>>(report, "pattern, 32 bits", links, exchange, 4 * edges, {}, Goal{0.30}, Goal{0.20},
                                        dense.get(), csr.get());
  right &= version<ex::DenseScaled<sk::Cpu>>(report, "dense, scaled once", links, exchange, 4 * cells, Goal{1.05}, {}, {},
                                             dense.get(), csr.get());
  right &= version<ex::DenseProduct<sk::Cpu>>(report, "dense, full product", links, exchange, 8 * cells, Goal{}, {}, {},
                                              dense.get(), csr.get());
  right &= version<ex::Messages<sk::Cpu>>(report, "messages, node by node", links, exchange, 12 * edges, Goal{}, {}, {},
                                          dense.get(), csr.get());
  return report.finish(right);
}
