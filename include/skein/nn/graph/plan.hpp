// SPDX-License-Identifier: Apache-2.0
// The plan of a Graph, by value: who reads which edge, where edges and their gradients live, and what is wrong. An edge has the
// number of the item that writes it. Edges that backward reads are kept; the others, and all gradients, share scratch arrays by
// liveness: a pure function of plain numbers.
#pragma once
#include <array>

#include "../memory_requirements.hpp"
#include "join.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// What can be wrong with the wiring of a graph. The sentences live in nn/graph/check.hpp.
enum class GraphFault {
  none,
  not_an_item,
  unknown_edge,
  read_before_written,
  written_twice,
  never_read,
  no_input,
  no_output,
  output_twice,
  inputs_mixed,
  inputs_differ,
  tokens_beside_numbers,
  output_of_tokens,
  layer_of_several,
  join_of_one,
  join_of_two,
  too_many_edges,
  join_refuses
};

/// Input<...>, Apply<...> or Output<...> as numbers.
struct GraphItem {
  enum class Kind { input, layer, join, output };
  Kind kind = Kind::input;
  std::array<int, JoinInputs::most> reads{};  ///< items that write what it reads; -1: nobody does
  int read_count = 0;
  bool written_before = false;  ///< another item writes its edge too
  bool joins_two = false;       ///< of a join that takes two edges and no more
  Extents part{};               ///< of an Input with a shape; rank 0: the whole input

  constexpr bool writes() const { return kind != Kind::output; }
};

/// Where an edge is while forward runs: the graph's own input or output, or an array of its own.
enum class EdgePlace { none, input, output, kept, scratch };

/// What is known of the edge that an item writes.
struct GraphEdge {
  Extents extents{};
  int source = -1;          ///< the item whose memory it is: itself, unless a layer only renames
  bool from_input = false;  ///< its gradient is wanted only where the input's is
  bool whole = false;       ///< backward of its layer wants the gradient as one array over all workers
  EdgePlace place = EdgePlace::none;
  ActivationOffset at{};        ///< of kept and scratch ones
  bool gradient_is_dx = false;  ///< the gradient is made where the graph's caller wants it
  ActivationOffset gradient{};  ///< else the array where it is made, if it ever has one of its own
};

/// Who has a gradient at a point of backward: nobody, the graph's caller, all workers in one array, or one of the scratch arrays.
struct GradientHolder {
  enum class Where { nobody, caller, all_workers, scratch };
  Where where = Where::nobody;
  int array = 0;  ///< of scratch ones

  constexpr bool is_scratch() const { return where == Where::scratch; }
};

/// How backward of an item gives its part of the gradient of an edge that it reads.
struct GraphRead {
  bool hands_on = false;  ///< the part is the gradient of the item's own edge, where that is
  bool first = false;     ///< nobody has given a part before
  bool copied = false;    ///< handed on into the edge's own array
  bool owned = false;     ///< the sum so far is in the edge's own array: the part goes to `temporary`
  ActivationOffset temporary{};
};

/// One Input, Apply or Output at its place.
struct GraphNode {
  ArenaOffsets at{};
  MemoryRequirements needs{};  ///< of a layer
  JoinSpec join{};
  long offset = 0;  ///< of an Input with a shape in the row of the input; of an Output in that of the output
  std::array<GraphRead, JoinInputs::most> reads{};
};

/// Arrays of scratch memory with a count of who needs each, as wide as the widest edge that it ever has.
template <int Most> struct ScratchArrays {
  std::array<long, static_cast<std::size_t>(Most)> width{};
  std::array<int, static_cast<std::size_t>(Most)> users{};
  int count = 0;

  constexpr int take(const Extents& e) {
    int s = 0;
    while (s < count && users[static_cast<std::size_t>(s)] > 0) ++s;
    if (s == count) ++count;
    const long wide = whole_line(sample_pitch(e));
    if (wide > width[static_cast<std::size_t>(s)]) width[static_cast<std::size_t>(s)] = wide;
    users[static_cast<std::size_t>(s)] = 1;
    return s;
  }
  constexpr void release(int s) { --users[static_cast<std::size_t>(s)]; }
  /// Whether there is an array to share or to release, the holder says.
  constexpr void share(const GradientHolder& h) {
    if (h.is_scratch()) ++users[static_cast<std::size_t>(h.array)];
  }
  constexpr void release(const GradientHolder& h) {
    if (h.is_scratch()) release(h.array);
  }
  constexpr ActivationOffset offset(int s) const {
    ActivationOffset a;
    for (int i = 0; i < s; ++i) a.offset += width[static_cast<std::size_t>(i)];
    a.width = width[static_cast<std::size_t>(s)];
    return a;
  }
  constexpr long total() const {
    long all = 0;
    for (int i = 0; i < count; ++i) all += width[static_cast<std::size_t>(i)];
    return all;
  }
};

/// The whole plan of a graph of N items.
template <int N> struct GraphPlan {
  std::array<GraphItem, static_cast<std::size_t>(N)> items{};
  std::array<GraphEdge, static_cast<std::size_t>(N)> edges{};
  std::array<GraphNode, static_cast<std::size_t>(N)> nodes{};
  MemoryRequirements total{};
  GraphFault fault = GraphFault::none;
  int faulty = 0, faulty_read = 0;
  int inputs = 0, outputs = 0;  ///< how many
  bool split_input = false;     ///< Inputs have shapes
  int output = -1;              ///< the only output's edge; -1: there are several

  constexpr GraphItem& item(int i) { return items[static_cast<std::size_t>(i)]; }
  constexpr GraphEdge& edge(int i) { return edges[static_cast<std::size_t>(i)]; }
  constexpr GraphNode& node(int i) { return nodes[static_cast<std::size_t>(i)]; }
  constexpr int read(int i, int k) { return item(i).reads[static_cast<std::size_t>(k)]; }

  // Steps of planning, in this order.
  constexpr void find_wiring_fault();
  constexpr void begin(const Extents& in);                      // counts, inputs' extents
  constexpr JoinInputs inputs_of(int i);                        // for a join's describe
  constexpr void set_layer(int i, const MemoryRequirements& s)  // items in their order
  {
    node(i).needs = s;
    GraphEdge& e = edge(i);
    e.extents = s.output;
    e.source = s.aliases ? edge(read(i, 0)).source : i;
    e.from_input = s.aliases && edge(read(i, 0)).from_input;
    e.whole = s.whole_gradient;
    total.absorb(s);
  }
  constexpr void set_join(int i, const JoinSpec& s) {
    node(i).join = s;
    edge(i).extents = s.output;
    edge(i).source = i;
    total.layer_nodes += 1;
    total.paths += 1;
    total.flops += join_flops(s);
    bool tokens = false;  // joins calculate with numbers
    for (int k = 0; k < item(i).read_count && k < JoinInputs::most; ++k) tokens = tokens || edge(read(i, k)).extents.tokens;
    if (!s.accepts || tokens) blame(GraphFault::join_refuses, i);
  }
  constexpr void finish(const Extents& in);

  /// The Input without a shape; -1: there is none.
  constexpr int whole_input() {
    for (int i = 0; i < N && !split_input; ++i)
      if (item(i).kind == GraphItem::Kind::input) return i;
    return -1;
  }

 private:
  using Scratch = ScratchArrays<2 * N + JoinInputs::most>;
  using Holders = std::array<GradientHolder, static_cast<std::size_t>(N)>;
  struct Gradients {  // while they are placed
    Scratch scratch{};
    Holders holder{}, own{};  // of each edge: now; its own array
    std::array<std::array<GradientHolder, JoinInputs::most>, static_cast<std::size_t>(N)> temporary{};  // of each read
  };

  constexpr void blame(GraphFault f, int i, int read = 0) {
    if (fault != GraphFault::none) return;
    fault = f;
    faulty = i;
    faulty_read = read;
  }
  constexpr void set_outputs(const Extents& in);
  constexpr void find_kept();
  constexpr int last_use(int source);
  constexpr long place_edges();      // returns the scalars of scratch memory that forward takes
  constexpr long place_gradients();  // likewise backward
  constexpr GradientHolder take_gradient(int e, Scratch& scratch);
  constexpr GradientHolder give(int i, int k, Gradients& g);
};

}  // namespace skein::inline SKEIN_ABI::nn
