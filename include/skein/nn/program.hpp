// SPDX-License-Identifier: Apache-2.0
// program<Network, Input>: the network as plain data, by one walk over the types that the user wrote (not the fused ones).
#pragma once
#include "../plan/program.hpp"
#include "concat.hpp"
#include "layer_name.hpp"
#include "recompute.hpp"
#include "repeat.hpp"
#include "residual.hpp"
#include "sequential.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Emits layer L at `path`, reading tensor x; returns the tensor that it writes and moves `in` to the output's extents.
template <class L, class P> constexpr int emit(P& p, int path, int x, Extents& in);

namespace detail {
template <class L> constexpr std::string_view label_of() {
  if constexpr (requires { L::label; }) return L::label;
  else return {};
}

template <class P> constexpr int emit_leaf(P& p, int path, int x, Extents& in, const LayerInfo& i, std::string_view kind,
                                           std::uint64_t options = 0) {  // not a template of L
  plan::LayerNode o{.kind = kind, .in = x, .path = path, .input = in, .output = i.output, .parameter = p.stored_parameters};
  o.logical_parameters = i.parameter_count();
  o.saved_for_backward = i.saved_for_backward;
  o.saved_bytes = i.saved_bytes;
  o.flops = i.flops;
  o.saves_input = i.saves_input;
  o.saves_output = i.saves_output;
  o.curvature = i.curvature;
  o.options = options;
  for (const auto& q : i.parameters) {
    if (q.name.empty()) continue;
    plan::Entry& e = p.parameter_entries[static_cast<std::size_t>(p.parameter_count++)];
    e.offset = p.stored_parameters;
    e.stored = stored_count(q.extents);
    e.extents = q.extents;
    e.init = static_cast<int>(q.init);
    e.fan_in = q.fan_in;
    e.fan_out = q.fan_out;
    e.decay = q.decay;
    e.path = path;
    e.layer = p.layer_node_count;
    e.leaf = q.name;
    p.stored_parameters += e.stored;
  }
  for (const auto& q : i.buffers) {
    if (q.name.empty()) continue;
    plan::Entry& e = p.buffer_entries[static_cast<std::size_t>(p.buffer_count++)];
    e.offset = p.stored_buffers;
    e.stored = stored_count(q.extents);
    e.extents = q.extents;
    e.init = static_cast<int>(q.init);
    e.path = path;
    e.layer = p.layer_node_count;
    e.leaf = q.name;
    p.stored_buffers += e.stored;
  }
  o.parameters = p.stored_parameters - o.parameter;
  in = i.output;
  o.out = p.tensor(in.count());
  p.layer_nodes[static_cast<std::size_t>(p.layer_node_count++)] = o;
  return o.out;
}
template <class P> constexpr void mark_again(P& p, int first) {
  for (int i = first; i < p.layer_node_count; ++i) p.layer_nodes[static_cast<std::size_t>(i)].again = first + 1;
}
template <class L, class P> constexpr int emit_child(P& p, int path, int& index, int x, Extents& in) {
  if constexpr (RepeatLike<L> && label_of<L>().empty()) {  // spliced: numbered as N children of the parent
    for (int k = 0; k < L::repetitions; ++k) x = emit<typename L::block>(p, p.path(path, index++), x, in);
    return x;
  } else if constexpr (RecomputeLike<L>) {  // as if the block stood there
    const int first = p.layer_node_count;
    x = emit_child<typename L::recomputed_block>(p, path, index, x, in);
    mark_again(p, first);
    return x;
  } else {
    return emit<L>(p, p.path(path, index++, label_of<L>()), x, in);
  }
}
template <class P, class... Ls> constexpr int emit_children(P& p, int path, int x, Extents& in, List<Ls...>*) {
  int index = 0;
  const int each[] = {(x = emit_child<Ls>(p, path, index, x, in))...};
  (void)each;
  return x;
}
template <class P, class... Ls> constexpr int emit_branches(P& p, int path, int x, Extents& in, List<Ls...>*) {
  int index = 0;
  const Extents before = in;
  Extents joined{};
  int first = -1;
  auto one = [&]<class L>(List<L>*) {
    Extents e = before;
    const int y = emit<L>(p, p.path(path, index++, label_of<L>()), x, e);
    if (first < 0) {
      first = y;
      joined = e;
    } else {
      joined.e[joined.rank - 1] += e.last();
    }
  };
  const int each[] = {(one(static_cast<List<Ls>*>(nullptr)), 0)...};
  (void)each;
  in = joined;
  const int out = p.tensor(in.count());
  p.layer_nodes[static_cast<std::size_t>(p.layer_node_count++)] = plan::LayerNode{
      .kind = "Concat", .in = first, .out = out, .path = path, .input = before, .output = in, .parameter = p.stored_parameters};
  return out;
}
}  // namespace detail

template <class L, class P> constexpr int emit(P& p, int path, int x, Extents& in) {
  if constexpr (SequentialLike<L>) {
    return detail::emit_children(p, path, x, in, static_cast<typename L::children*>(nullptr));
  } else if constexpr (ResidualLike<L>) {
    Extents a = in, b = in;
    const Extents before = in;
    const int y = emit<typename L::body>(p, p.path(path, 0, "body"), x, a);
    const int z = emit<typename L::shortcut>(p, p.path(path, 0, "shortcut"), x, b);
    in = a;
    const int out = p.tensor(in.count());
    p.layer_nodes[static_cast<std::size_t>(p.layer_node_count++)] = plan::LayerNode{.kind = "Residual",
                                                                                    .in = y,
                                                                                    .in2 = z,
                                                                                    .out = out,
                                                                                    .path = path,
                                                                                    .input = before,
                                                                                    .output = in,
                                                                                    .parameter = p.stored_parameters,
                                                                                    .flops = in.count()};
    return out;
  } else if constexpr (ConcatLike<L>) {
    return detail::emit_branches(p, path, x, in, static_cast<typename L::branches*>(nullptr));
  } else if constexpr (RepeatLike<L>) {
    for (int k = 0; k < L::repetitions; ++k) x = emit<typename L::block>(p, p.path(path, k), x, in);
    return x;
  } else if constexpr (RecomputeLike<L>) {
    const int first = p.layer_node_count;
    x = emit<typename L::recomputed_block>(p, path, x, in);
    detail::mark_again(p, first);
    return x;
  } else if constexpr (GraphLike<L>) {
    return L::emit(p, path, x, in);
  } else {
    LayerInfo info{.output = in};  // a layer without describe() has been refused already: nothing shall cascade
    if constexpr (HasDescribe<L> || HasSpec<L>) info = info_of<L>(in);
    std::uint64_t options = 0;
    if constexpr (HasOptions<L>) options = L::options::hash();
    return detail::emit_leaf(p, path, x, in, info, detail::kind_of<L>(), options);
  }
}

/// The program of a network for an input: its layers, parameters, buffers, paths and edges, as a constant.
template <class Network, class Input> constexpr auto build_program() {
  constexpr MemoryRequirements s = analyze<Network>(Input::extents);
  plan::Program<s.layer_nodes, (s.entries > 0 ? s.entries : 1), (s.buffer_entries > 0 ? s.buffer_entries : 1),
                s.paths + s.layer_nodes>
      p;
  Extents in = Input::extents;
  emit<Network>(p, p.path(-1, 0), p.tensor(in.count()), in);
  return p;
}
template <class Network, class Input> inline constexpr auto program = build_program<Network, Input>();

}  // namespace skein::inline SKEIN_ABI::nn
