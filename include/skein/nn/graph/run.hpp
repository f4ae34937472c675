// SPDX-License-Identifier: Apache-2.0
// How a graph runs: Node<Graph<...>, In> executes the items in their order, and backward in the opposite one, over the places
// that the plan has given to edges and gradients.
#pragma once
#include <type_traits>

#include "../node.hpp"
#include "place.hpp"

namespace skein::inline SKEIN_ABI::nn {

template <GraphLike L, class In> struct Node<L, In> {
  static constexpr GraphPlan<L::size> plan = L::plan(In::extents);
  static constexpr int n = L::size;
  static constexpr bool sound = plan.fault == GraphFault::none;  // else refused already: nothing shall cascade
  using Indices = std::make_integer_sequence<int, sound ? n : 0>;
  using Kind = GraphItem::Kind;
  static constexpr long in_pitch = sample_pitch(In::extents), out_pitch = sample_pitch(plan.total.output);
  template <int I> using LayerAt = typename TypeAt<typename L::graph_items, I>::layer;
  template <int I> using ShapeAt =
      typename MakeEdge<plan.edges[I].extents.tokens, plan.edges[I].extents.rank, plan.edges[I].extents.e[0],
                        plan.edges[I].extents.e[1], plan.edges[I].extents.e[2], plan.edges[I].extents.e[3]>::type;
  template <int I> using NodeAt = Node<LayerAt<I>, ShapeAt<plan.items[I].reads[0]>>;

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y) {
    const typename R::Activation* edges[n] = {};
    each([&]<int I>(std::integral_constant<int, I>) { forward_item<I>(r, at, x, y, edges); });
    if constexpr (plan.output >= 0 && plan.edges[plan.output < 0 ? 0 : plan.output].source == whole_input)
      ops::copy<typename R::Device>(y, x, in_pitch * r.batch);
    return y;
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    const Backward<R> b{call, r, at};
    const typename R::Activation* gradients[n] = {};
    each([&]<int I>(std::integral_constant<int, I>) { begin_gradient<I>(b, gradients); });
    each([&]<int I>(std::integral_constant<int, I>) { backward_item<n - 1 - I>(b, gradients); });
    return call.dx;
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    each_layer([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::pack_weights(r, at + plan.nodes[I].at); });
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    each_layer([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::prepare(r, at + plan.nodes[I].at); });
  }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    each([&]<int I>(std::integral_constant<int, I>) {
      if constexpr (plan.items[I].kind == Kind::layer) NodeAt<I>::template executed_layers<F>(visit);
      else if constexpr (plan.items[I].kind == Kind::join) visit(1, std::string_view("join"));
      else if constexpr (plan.items[I].kind == Kind::input && plan.split_input) visit(1, std::string_view("copy"));
    });
    if (plan.outputs > 1) visit(1, std::string_view("copy"));
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool split, Visit&& visit) {
    each_layer([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::leaves(at + plan.nodes[I].at, split, visit); });
  }
  template <class R> static constexpr ConversionMemory conversion() {
    ConversionMemory s;
    each_layer([&]<int I>(std::integral_constant<int, I>) { s += NodeAt<I>::template conversion<R>(); });
    return s;
  }

 private:
  static constexpr int find_whole_input() {
    auto p = plan;
    return p.whole_input();
  }
  static constexpr int whole_input = find_whole_input();

  /// The call, with the run and the place of the graph.
  template <class R> struct Backward : BackwardCall<typename R::Activation> {
    R& r;
    const ArenaOffsets& at;
  };

  template <class F> static constexpr void each(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      const int done[] = {(f(std::integral_constant<int, I>{}), 0)...};
      (void)done;
    }
    (Indices{});
  }
  template <class F> static constexpr void each_layer(F&& f) {
    each([&]<int I>(std::integral_constant<int, I> i) {
      if constexpr (plan.items[I].kind == Kind::layer) f(i);
    });
  }

  /// Where edge E is; null where backward asks for what was not kept.
  template <int E, class R>
  static typename R::Activation* place(const R& r, const ArenaOffsets& at, typename R::Activation* y, bool forward) {
    constexpr GraphEdge e = plan.edges[E];
    if constexpr (e.place == EdgePlace::output) return y;
    else if constexpr (e.place == EdgePlace::kept) return r.save({at.kept_activations + e.at.offset, e.at.width});
    else return forward ? r.temporary({at.scratch + e.at.offset, e.at.width}) : nullptr;
  }
  /// Edge E as backward sees it.
  template <int E, class R> static const typename R::Activation* edge(const Backward<R>& b) {
    constexpr int source = plan.edges[E].source;
    if constexpr (source == whole_input) return b.x;
    else return place<source>(b.r, b.at, const_cast<typename R::Activation*>(b.y), false);
  }

  template <int I, class R> static void forward_item(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                     typename R::Activation* y, const typename R::Activation** edges) {
    constexpr GraphItem item = plan.items[I];
    constexpr Extents e = plan.edges[I].extents;
    if constexpr (item.kind == Kind::input && !plan.split_input) {
      edges[I] = x;
    } else if constexpr (item.kind == Kind::input) {
      auto* to = place<I>(r, at, y, true);
      ops::copy_rows<typename R::Device>(to, sample_pitch(e), x + plan.nodes[I].offset, in_pitch, r.batch, e.count());
      edges[I] = to;
    } else if constexpr (item.kind == Kind::layer) {
      constexpr bool renames = plan.edges[I].source != I;
      edges[I] = NodeAt<I>::forward(r, at + plan.nodes[I].at, edges[item.reads[0]], renames ? nullptr : place<I>(r, at, y, true));
    } else if constexpr (item.kind == Kind::join) {
      auto f = join_frame<I, R, false>(r.batch);
      for (std::size_t k = 0; k < f.inputs.size(); ++k) f.inputs[k] = edges[item.reads[k]];
      edges[I] = f.output = place<I>(r, at, y, true);
      LayerAt<I>::forward(f);
    } else if constexpr (plan.outputs > 1) {
      constexpr Extents o = plan.edges[item.reads[0]].extents;
      ops::copy_rows<typename R::Device>(y + plan.nodes[I].offset, out_pitch, edges[item.reads[0]], sample_pitch(o), r.batch,
                                         o.count());
    }
  }

  template <int I, class R, bool Back> static auto join_frame(long batch) {
    return [&]<int... K>(std::integer_sequence<int, K...>) {
      JoinFrame<R, Back, ShapeAt<I>, ShapeAt<plan.items[I].reads[K]>...> f;
      f.batch = batch;
      return f;
    }
    (std::make_integer_sequence<int, plan.items[I].read_count>{});
  }

  /// The array where the gradient of edge E is made.
  template <int E, class R> static typename R::Activation* own_gradient(const Backward<R>& b) {
    constexpr ActivationOffset own = plan.edges[E].gradient;
    if constexpr (plan.edges[E].gradient_is_dx) return b.dx;
    else if constexpr (plan.edges[E].whole) return b.r.whole_gradient({b.at.whole_gradient + own.offset, own.width});
    else return b.r.temporary({b.at.scratch + own.offset, own.width});
  }
  /// Something that is trained, or the input, is in front of edge E.
  template <int E, class R> static bool wanted(const Backward<R>& b) {
    constexpr long end = plan.nodes[E].at.parameter + plan.nodes[E].needs.stored;
    return b.dx || !(plan.edges[E].from_input || b.r.frozen(b.at.parameter + end));
  }
  template <int E, class R> static long values(const Backward<R>& b) { return sample_pitch(plan.edges[E].extents) * b.r.batch; }

  /// What comes from outside for the edge of output I.
  template <int I, class R> static void begin_gradient(const Backward<R>& b, const typename R::Activation** gradients) {
    constexpr GraphItem item = plan.items[I];
    if constexpr (!item.writes()) {
      constexpr int E = item.reads[0];
      constexpr Extents e = plan.edges[E].extents;
      if (!wanted<E>(b)) return;
      if constexpr (plan.outputs == 1) {
        gradients[E] = b.dy;
      } else {
        auto* to = own_gradient<E>(b);
        ops::copy_rows<typename R::Device>(to, sample_pitch(e), b.dy + plan.nodes[I].offset, out_pitch, b.r.batch, e.count());
        gradients[E] = to;
      }
    }
  }

  template <int I, class R> static void backward_item(const Backward<R>& b, const typename R::Activation** gradients) {
    constexpr GraphItem item = plan.items[I];
    if constexpr (item.writes())
      if (!wanted<I>(b)) return;
    if constexpr (item.kind == Kind::layer) {
      constexpr int E = item.reads[0];
      auto* part = part_of<I, 0>(b);
      const auto* given = NodeAt<I>::backward(b.r, b.at + plan.nodes[I].at, {edge<E>(b), edge<I>(b), gradients[I], part});
      if (wanted<E>(b)) take<I, 0>(b, gradients, given);
    } else if constexpr (item.kind == Kind::join) {
      join_backward<I>(b, gradients, std::make_integer_sequence<int, item.read_count>{});
    } else if constexpr (item.kind == Kind::input) {
      constexpr Extents e = plan.edges[I].extents;
      if constexpr (plan.split_input)
        ops::copy_rows<typename R::Device>(b.dx + plan.nodes[I].offset, in_pitch, gradients[I], sample_pitch(e), b.r.batch,
                                           e.count());
      else ops::copy<typename R::Device>(b.dx, gradients[I], values<I>(b));
    }
  }
  template <int I, class R, int... K>
  static void join_backward(const Backward<R>& b, const typename R::Activation** gradients, std::integer_sequence<int, K...>) {
    constexpr GraphItem item = plan.items[I];
    const typename R::Activation* parts[] = {part_of<I, K>(b)...};
    if constexpr (plan.nodes[I].join.hands_gradient_on) {
      for (auto& part : parts) part = gradients[I];
    } else {
      auto f = join_frame<I, R, true>(b.r.batch);
      f.inputs = {edge<item.reads[K]>(b)...};
      f.gradient = gradients[I];
      f.gradients = {part_of<I, K>(b)...};
      LayerAt<I>::backward(f);
    }
    const int done[] = {(wanted<item.reads[K]>(b) ? take<I, K>(b, gradients, parts[K]) : void(), 0)...};
    (void)done;
  }

  /// Where item I writes its part of the gradient of the edge that is its K-th; null: nobody wants it, or it hands its own on.
  template <int I, int K, class R> static typename R::Activation* part_of(const Backward<R>& b) {
    constexpr int E = plan.items[I].reads[K];
    constexpr GraphRead read = plan.nodes[I].reads[K];
    if (read.hands_on || !wanted<E>(b)) return nullptr;
    if constexpr (read.owned) return b.r.temporary({b.at.scratch + read.temporary.offset, read.temporary.width});
    else return own_gradient<E>(b);
  }
  /// Adds that part to what the edge has.
  template <int I, int K, class R>
  static void take(const Backward<R>& b, const typename R::Activation** gradients, const typename R::Activation* part) {
    constexpr int E = plan.items[I].reads[K];
    constexpr GraphRead read = plan.nodes[I].reads[K];
    if constexpr (read.copied) {
      auto* own = own_gradient<E>(b);
      ops::copy<typename R::Device>(own, part, values<E>(b));
      gradients[E] = own;
    } else if constexpr (read.first) {
      gradients[E] = part;
    } else {
      auto* own = own_gradient<E>(b);
      ops::add<typename R::Device>(own, gradients[E], part, values<E>(b));
      gradients[E] = own;
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
