// SPDX-License-Identifier: Apache-2.0
// The steps of a GraphPlan: what is wrong with the wiring, which edges are kept, and where edges and gradients live.
#pragma once
#include <utility>

#include "plan.hpp"

namespace skein::inline SKEIN_ABI::nn {

template <int N> constexpr void GraphPlan<N>::find_wiring_fault() {
  using Kind = GraphItem::Kind;
  for (int i = 0; i < N; ++i) {
    const GraphItem& own = item(i);
    if (own.written_before) blame(GraphFault::written_twice, i);
    if (own.read_count > JoinInputs::most) return blame(GraphFault::too_many_edges, i);
    for (int k = 0; k < own.read_count; ++k) {
      if (read(i, k) < 0) blame(GraphFault::unknown_edge, i, k);
      else if (read(i, k) >= i) blame(GraphFault::read_before_written, i, k);
    }
    if (own.kind == Kind::layer && own.read_count != 1) blame(GraphFault::layer_of_several, i);
    if (own.kind == Kind::join && own.read_count < 2) blame(GraphFault::join_of_one, i);
    if (own.joins_two && own.read_count > 2) blame(GraphFault::join_of_two, i);
  }
  for (int i = 0; i < N; ++i) {
    bool used = !item(i).writes();
    for (int j = 0; j < N; ++j) {
      for (int k = 0; k < item(j).read_count; ++k) used = used || read(j, k) == i;
      if (j < i && !item(i).writes() && !item(j).writes() && read(i, 0) == read(j, 0)) blame(GraphFault::output_twice, i);
    }
    if (!used) blame(GraphFault::never_read, i);
  }
}

template <int N> constexpr void GraphPlan<N>::begin(const Extents& in) {
  long offset = 0;
  bool whole = false;
  for (int i = 0; i < N; ++i) {
    outputs += !item(i).writes();
    if (item(i).kind != GraphItem::Kind::input) continue;
    ++inputs;
    const bool shaped = item(i).part.rank > 0;
    split_input = split_input || shaped;
    whole = whole || !shaped;
    GraphEdge& e = edge(i);
    e.extents = shaped ? item(i).part : in;
    if (e.extents.tokens && shaped) blame(GraphFault::tokens_beside_numbers, i);  // a row of several inputs is of numbers
    if (shaped) e.extents.tokens = false;
    e.source = i;
    e.from_input = true;
    node(i).offset = offset;
    offset += e.extents.count();
    if (shaped) total.layer_nodes += 1, total.paths += 1;
  }
  if (inputs == 0) blame(GraphFault::no_input, 0);
  if (outputs == 0) blame(GraphFault::no_output, 0);
  if (whole && inputs > 1) blame(GraphFault::inputs_mixed, 0);
  if (split_input && (!in.flat() || offset != in.count())) blame(GraphFault::inputs_differ, 0);
}

template <int N> constexpr JoinInputs GraphPlan<N>::inputs_of(int i) {
  JoinInputs in;
  in.count = item(i).read_count;
  for (int k = 0; k < in.count; ++k) in.e[static_cast<std::size_t>(k)] = edge(read(i, k)).extents;
  return in;
}

template <int N> constexpr void GraphPlan<N>::finish(const Extents& in) {
  set_outputs(in);
  find_kept();
  ArenaOffsets at{};
  long inner = 0, stacked = 0;
  for (int i = 0; i < N; ++i) {
    const MemoryRequirements& s = node(i).needs;
    node(i).at = at;
    if (at.saved_for_backward + s.stacked > stacked) stacked = at.saved_for_backward + s.stacked;
    if (item(i).kind == GraphItem::Kind::layer) at = at + ArenaOffsets::after(s);
    else if (item(i).kind == GraphItem::Kind::join || (item(i).kind == GraphItem::Kind::input && split_input)) ++at.ordinal;
    if (s.scratch > inner) inner = s.scratch;
    GraphEdge& e = edge(i);
    if (e.place != EdgePlace::kept) continue;
    const long pitch = sample_pitch(e.extents);
    e.at = {at.kept_activations, pitch};
    at.kept_activations += whole_line(pitch);
  }
  total.whole_gradients = at.whole_gradient;  // the layers' own, then the edges'
  const long forward = place_edges(), backward = place_gradients();
  const long own = forward > backward ? forward : backward;
  for (GraphNode& n : nodes) n.at.scratch = own;
  total.kept_activations = at.kept_activations;
  total.scratch = own + inner;
  total.stacked = own + stacked;
  total.aliases = false;
  total.whole_gradient = output >= 0 && edge(output).whole;
}

/// The row of the output, and which edge's memory is the caller's.
template <int N> constexpr void GraphPlan<N>::set_outputs(const Extents&) {
  long offset = 0;
  for (int i = 0; i < N; ++i) {
    if (item(i).writes()) continue;
    const int e = read(i, 0);
    if (edge(e).extents.tokens) blame(GraphFault::output_of_tokens, i);  // they do not pass through edges
    node(i).offset = offset;
    offset += edge(e).extents.count();
    total.output = edge(e).extents;
    if (outputs == 1) output = e;
  }
  if (outputs > 1) {
    total.output = {1, {static_cast<int>(offset)}};
    total.layer_nodes += 1;
    total.paths += 1;
  }
}

template <int N> constexpr void GraphPlan<N>::find_kept() {
  std::array<bool, static_cast<std::size_t>(N)> kept{};
  auto keep = [&](int e) { kept[static_cast<std::size_t>(edge(e).source)] = true; };
  for (int i = 0; i < N; ++i) {
    if (node(i).needs.saves_output) keep(i);
    if (node(i).needs.saves_input || node(i).join.backward_reads_inputs)
      for (int k = 0; k < item(i).read_count; ++k) keep(read(i, k));
  }
  for (int i = 0; i < N; ++i) {
    GraphEdge& e = edge(i);
    const bool wanted = kept[static_cast<std::size_t>(i)];
    if (!item(i).writes() || e.source != i) continue;
    if (i == whole_input()) {
      e.place = EdgePlace::input;
      total.saves_input = wanted;
    } else if (output >= 0 && edge(output).source == i) {
      e.place = EdgePlace::output;
      total.saves_output = wanted;
    } else {
      e.place = wanted ? EdgePlace::kept : EdgePlace::scratch;
    }
  }
}

/// The last item that reads the memory of an edge; N: it is there to the end.
template <int N> constexpr int GraphPlan<N>::last_use(int source) {
  int last = source;
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < item(i).read_count; ++k)
      if (edge(read(i, k)).source == source) last = item(i).writes() ? i : N;
  return last;
}

template <int N> constexpr long GraphPlan<N>::place_edges() {
  Scratch scratch;
  std::array<int, static_cast<std::size_t>(N)> own{};
  for (int i = 0; i < N; ++i) {
    if (edge(i).place == EdgePlace::scratch) own[static_cast<std::size_t>(i)] = scratch.take(edge(i).extents);
    for (int e = 0; e <= i; ++e)
      if (edge(e).place == EdgePlace::scratch && last_use(e) == i) scratch.release(own[static_cast<std::size_t>(e)]);
  }
  for (int i = 0; i < N; ++i)
    if (edge(i).place == EdgePlace::scratch) edge(i).at = scratch.offset(own[static_cast<std::size_t>(i)]);
  return scratch.total();
}

/// Where the gradient of edge e is made.
template <int N> constexpr GradientHolder GraphPlan<N>::take_gradient(int e, Scratch& scratch) {
  GraphEdge& own = edge(e);
  if (own.gradient_is_dx) return {GradientHolder::Where::caller};
  if (!own.whole) return {GradientHolder::Where::scratch, scratch.take(own.extents)};
  own.gradient = {total.whole_gradients, sample_pitch(own.extents)};
  total.whole_gradients += whole_line(own.gradient.width);
  return {GradientHolder::Where::all_workers};
}

/// Item i gives its part of the gradient of the edge that is its k-th. Returns who has had the sum, and has not any more: a join
/// writes all its parts before it adds the first one to that.
template <int N> constexpr GradientHolder GraphPlan<N>::give(int i, int k, Gradients& g) {
  using Where = GradientHolder::Where;
  const int e = read(i, k);
  GradientHolder &holder = g.holder[static_cast<std::size_t>(e)], &own = g.own[static_cast<std::size_t>(e)];
  GraphRead& r = node(i).reads[static_cast<std::size_t>(k)];
  r.hands_on = item(i).kind == GraphItem::Kind::layer ? node(i).needs.aliases : node(i).join.hands_gradient_on;
  r.first = holder.where == Where::nobody;
  r.owned = own.where != Where::nobody;
  r.copied = r.hands_on && r.first && edge(e).whole;
  if (r.hands_on && r.first && !r.copied) {
    holder = g.holder[static_cast<std::size_t>(i)];
    g.scratch.share(holder);
  } else if (!r.owned) {
    own = take_gradient(e, g.scratch);
    return std::exchange(holder, own);
  } else if (!r.hands_on) {
    g.temporary[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] = {Where::scratch, g.scratch.take(edge(e).extents)};
  }
  return {};
}

/// Places the gradients as backward runs: the outputs first, then the items from the last to the first.
template <int N> constexpr long GraphPlan<N>::place_gradients() {
  Gradients g;
  for (int i = 0; i < N; ++i) edge(i).gradient_is_dx = i == whole_input();
  for (int i = 0; i < N; ++i) {
    if (item(i).writes()) continue;
    const int e = read(i, 0);
    GradientHolder& holder = g.holder[static_cast<std::size_t>(e)];
    if (outputs == 1) holder = {GradientHolder::Where::caller};
    else holder = g.own[static_cast<std::size_t>(e)] = take_gradient(e, g.scratch);
  }
  for (int i = N - 1; i >= 0; --i) {
    if (!item(i).writes()) continue;
    std::array<GradientHolder, JoinInputs::most> left{};
    for (int k = 0; k < item(i).read_count; ++k) left[static_cast<std::size_t>(k)] = give(i, k, g);
    for (int k = 0; k < item(i).read_count; ++k) g.scratch.release(left[static_cast<std::size_t>(k)]);
    for (const GradientHolder& h : g.temporary[static_cast<std::size_t>(i)]) g.scratch.release(h);
    g.scratch.release(g.holder[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < N; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (g.own[at].is_scratch()) edge(i).gradient = g.scratch.offset(g.own[at].array);
    for (std::size_t k = 0; k < JoinInputs::most; ++k)
      if (const GradientHolder& h = g.temporary[at][k]; h.is_scratch()) node(i).reads[k].temporary = g.scratch.offset(h.array);
  }
  return g.scratch.total();
}

}  // namespace skein::inline SKEIN_ABI::nn
