// SPDX-License-Identifier: Apache-2.0
// Algorithm<...>: an option of DataParallel: by which all-reduce gradients are added: one that the type names, or the cheapest
// for each bucket's size on the network as it was measured at the start. Without it the communicator chooses, which is best where
// all ranks share memory.
#pragma once
#include "../../comm/measure.hpp"
#include "../../plan/chosen_all_reduce.hpp"
#include "../exchange/encoded_exchange.hpp"
#include "data_parallel.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// plan::RingAllReduce: the fewest bytes, in 2 (N - 1) messages.
struct Ring : AlgorithmBase {
  static constexpr std::string_view name = plan::RingAllReduce::name;
  plan::RingAllReduce table(int ranks, long count) const { return {ranks, count}; }
};
/// plan::RecursiveDoubling: the fewest messages.
struct RecursiveDoubling : AlgorithmBase {
  static constexpr std::string_view name = plan::RecursiveDoubling::name;
  plan::RecursiveDoubling table(int ranks, long count) const { return {ranks, count}; }
};
/// plan::TorusAllReduce with so many columns, which must divide the ranks; 0: as square as possible.
template <int Columns = 0> struct Torus : AlgorithmBase {
  static_assert(Columns >= 0, "Torus<Columns>: a torus has a column at least, or 0 for as many as rows");
  static constexpr std::string_view name = plan::TorusAllReduce::name;
  void check(int ranks) const {
    if (Columns > 0 && ranks % Columns != 0)
      throw ArgumentError(text("Algorithm<Torus<{}>>: the columns must divide the ranks; there are {} ranks", Columns, ranks));
  }
  plan::TorusAllReduce table(int ranks, long count) const {
    return {ranks, count, Columns > 0 ? Columns : plan::square_columns(ranks)};
  }
};
/// plan::HierarchicalAllReduce over nodes of so many consecutive ranks; the last may have fewer.
template <int Node> struct Nodes : AlgorithmBase {
  static_assert(Node >= 1, "Nodes<Node>: a node has a rank at least");
  static constexpr std::string_view name = plan::HierarchicalAllReduce::name;
  plan::HierarchicalAllReduce table(int ranks, long count) const { return {ranks, count, Node}; }
};
/// For each bucket the fastest of these and of the communicator's own, by comm::measured_network at the start (or from its
/// cache).
struct BySize : AlgorithmBase {
  static constexpr std::string_view name = "by size";
  static constexpr bool by_size = true;
  comm::MeasuredNetwork network{};

  template <class Comm> void prepare(Comm& comm) { network = comm::measured_network(comm); }
  bool own(int ranks, double bytes) const {
    return network.own.seconds(bytes) <= plan::cheapest_all_reduce(network.network, ranks, bytes).seconds;
  }
  plan::ChosenAllReduce table(int ranks, long count, double bytes_of_a_value = 4) const {
    return {ranks, count, plan::cheapest_all_reduce(network.network, ranks, bytes_of_a_value * static_cast<double>(count))};
  }
};

namespace detail {
template <class A> inline constexpr bool is_algorithm = false;
}

/// The all-reduce of gradients uses A: Ring, RecursiveDoubling, Torus<Columns>, Nodes<Node>, BySize, or your own type, which
/// derives from AlgorithmBase and has a name and table(ranks, count).
template <class A> struct Algorithm : OptionBase {
  static constexpr OptionKind kind = OptionKind::algorithm;
  static constexpr bool checked = [] {
    if constexpr (!AllReduceAlgorithm<A>)
      static_assert(detail::is_algorithm<A>,
                    "Algorithm<A>: A names an all-reduce: Ring, RecursiveDoubling, Torus<Columns>, Nodes<Node>, BySize, or a "
                    "type with table(ranks, count) that derives from parallel::AlgorithmBase");
    return true;
  }();
  static_assert(checked);
  template <class E> using Exchange = EncodedExchange<typename E::compressor, A>;
};

}  // namespace skein::inline SKEIN_ABI::parallel
