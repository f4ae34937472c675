// SPDX-License-Identifier: Apache-2.0
// Sequential<Layers...>: one layer after the other. Its layout decides, by value and once, where every edge between two
// children lives: kept for backward, or made again there by the child that has written it, or in scratch memory while the two
// children run, or in the memory of the edge before (a child that only renames the shape).
#pragma once
#include <utility>

#include "node.hpp"
#include "run_guards.hpp"
#include "sequential_layout.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Layers, each of which takes the output of the one before.
template <class... Layers> struct Sequential {
  using children = List<Layers...>;
  static constexpr int size = sizeof...(Layers);
  static_assert(size > 0, "a Sequential needs at least one layer");

  using Layout = SequentialLayout<(size > 0 ? size : 1)>;  // of none too: its sentence alone is the error

  static constexpr Layout layout(Extents in) {
    Layout r;
    auto one = [&](const MemoryRequirements& child, bool container) {
      r.add(in, child, container);
      in = child.output;
    };
    const int each[] = {(one(nn::analyze<Layers>(in), Container<Layers>), 0)...};  // a comma fold stops at 256 in clang
    (void)each;
    return r.placed();
  }
  static constexpr MemoryRequirements analyze(Extents in) { return layout(in).total; }
};

template <SequentialLike L, class In> struct Node<L, In> {
  static constexpr typename L::Layout all = L::layout(In::extents);
  static constexpr int n = L::size;
  using Indices = std::make_integer_sequence<int, n>;
  template <int I> using ShapeAt =  // integers, not a reference to the extents, for nvcc
      typename MakeEdge<all.children[I].in.tokens, all.children[I].in.rank, all.children[I].in.e[0], all.children[I].in.e[1],
                        all.children[I].in.e[2], all.children[I].in.e[3]>::type;
  template <int I> using NodeAt = Node<TypeAt<typename L::children, I>, ShapeAt<I>>;

  // As a residual block's body: its last layer joins the sum, its first one adds to dx. They must be two.
  template <class R> static constexpr bool joins_sum = (n > 1) && NodeJoinsSum<NodeAt<n - 1>, R>;
  template <class R> static constexpr bool adds_dx = (n > 1) && NodeAddsToGradient<NodeAt<0>, R>;

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y,
                                                                  const typename R::Activation* addend = nullptr) {
    return forward_all(r, at, x, y, addend, Indices{});
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    return backward_all(r, at, call, Indices{});
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::pack_weights(r, at + all.children[I].at); }, Indices{});
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::prepare(r, at + all.children[I].at); }, Indices{});
  }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::template executed_layers<F>(visit); }, Indices{});
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool split, Visit&& visit) {
    const auto one = [&]<int I>(std::integral_constant<int, I>) {
      NodeAt<I>::leaves(at + all.children[I].at, split && remade_input<I>() < 0, visit);
    };
    each(one, Indices{});
  }
  template <class R> static constexpr ConversionMemory conversion() {
    ConversionMemory s;
    each([&]<int I>(std::integral_constant<int, I>) { s += NodeAt<I>::template conversion<R>(); }, Indices{});
    return s;
  }

 private:
  template <class F, int... I> static constexpr void each(F&& f, std::integer_sequence<int, I...>) {
    const int done[] = {(f(std::integral_constant<int, I>{}), 0)...};
    (void)done;
  }
  /// Where child i writes its output.
  template <class R> static typename R::Activation* output(const R& r, const ArenaOffsets& at, int i, typename R::Activation* y) {
    const ChildPlace& c = all.children[static_cast<std::size_t>(i)];
    if (c.source == all.last) return y;
    const ActivationOffset s{c.output.offset + (c.is_kept ? at.kept_activations : at.scratch), c.output.width};
    return c.is_kept ? r.save(s) : r.temporary(s);
  }
  /// Edge i (the output of child i; -1: the input) as backward sees it.
  template <class R> static const typename R::Activation* edge(const R& r, const ArenaOffsets& at, int i,
                                                               const BackwardCall<typename R::Activation>& call) {
    const int source = i < 0 ? -1 : all.children[static_cast<std::size_t>(i)].source;
    return source < 0 ? call.x : output(r, at, source, const_cast<typename R::Activation*>(call.y));
  }
  /// The array of the gradient of child i's input.
  template <class R>
  static typename R::Activation* gradient(const R& r, const ArenaOffsets& at, int i, typename R::Activation* dx) {
    if (i <= all.first) return dx;
    const ChildPlace& c = all.children[static_cast<std::size_t>(i - 1)];
    const ActivationOffset s = c.gradient;
    if (c.whole_gradient) return r.whole_gradient({s.offset + at.whole_gradient, s.width});
    return r.temporary({s.offset + at.scratch, s.width});
  }

  template <class R, int... I>
  static const typename R::Activation* forward_all(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                   typename R::Activation* y, const typename R::Activation* addend,
                                                   std::integer_sequence<int, I...>) {
    const int done[] = {(x = forward_child<I>(r, at + all.children[I].at, x, output(r, at, I, y), addend), 0)...};
    (void)done;
    return x;
  }
  template <int I, class R>
  static const typename R::Activation* forward_child(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                     typename R::Activation* y, const typename R::Activation* addend) {
    if constexpr (I + 1 == n && joins_sum<R>) return NodeAt<I>::forward(r, at, x, y, addend);
    else return NodeAt<I>::forward(r, at, x, y);
  }
  /// The call's dy goes from child to child.
  template <class R, int... I> static const typename R::Activation* backward_all(R& r, const ArenaOffsets& at,
                                                                                 BackwardCall<typename R::Activation> call,
                                                                                 std::integer_sequence<int, I...>) {
    const int done[] = {(call.dy = backward_child<n - 1 - I>(r, at, call), 0)...};
    (void)done;
    return call.dy;
  }
  template <int I, class R>
  static const typename R::Activation* backward_child(R& r, const ArenaOffsets& at,
                                                      const BackwardCall<typename R::Activation>& call) {
    constexpr long end = I + 1 < n ? all.children[I + 1 < n ? I + 1 : I].at.parameter : all.total.stored;
    const ArenaOffsets here = at + all.children[I].at;
    const PartBackward part =
        r.backward_of(here.parameter, at.parameter + end, I > all.first || call.dx, all.children[I].takes_room);
    if (!part.runs) return nullptr;  // nor is anything in front of it trained
    constexpr bool last = I + 1 == n && joins_sum<R>, first = I == 0 && adds_dx<R>;
    BackwardCall<typename R::Activation> child{edge(r, at, I - 1, call), edge(r, at, I, call), call.dy};
    if (part.wants_dx) child.dx = gradient(r, at, I, call.dx);
    if (part.takes_scratch) child.dx_scratch = gradient(r, at, I, call.array_of_dx());
    child.ends = {last ? call.ends.dsum : nullptr, first && call.ends.adds_dx};
    if constexpr (remade_input<I>() < 0) {
      return NodeAt<I>::backward(r, here, child);
    } else {
      child.x = make_again<remade_input<I>()>(r, at, call);
      // It is there for this worker's samples alone, and a half that is left for later would not find it.
      const detail::NoSplit<R> own(r);
      [[maybe_unused]] const detail::WholeBackward<R> whole(r);
      return NodeAt<I>::backward(r, here, child);
    }
  }
  /// The child that makes the input of child I again; -1: it is there.
  template <int I> static constexpr int remade_input() {
    const int source = I == 0 || all.children[I].source != I ? -1 : all.children[I == 0 ? 0 : I - 1].source;
    return source >= 0 && all.children[static_cast<std::size_t>(source)].remade ? source : -1;
  }
  template <int S, class R> static const typename R::Activation* make_again(R& r, const ArenaOffsets& at,
                                                                            const BackwardCall<typename R::Activation>& call) {
    const ActivationOffset s = all.children[S].again;
    typename R::Activation* to = r.temporary({s.offset + at.scratch, s.width});
    NodeAt<S>::remake(r, at + all.children[S].at, edge(r, at, S - 1, call), to);
    return to;
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
