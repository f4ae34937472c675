// SPDX-License-Identifier: Apache-2.0
// Sequential<Layers...>: one layer after the other. Its layout decides, by value and once, where every edge between two
// children lives: kept for backward, or made again there by the child that has written it, or in scratch memory while the two
// children run, or in the memory of the edge before (a child that only renames the shape).
#pragma once
#include <array>
#include <utility>

#include "node.hpp"
#include "scratch_layout.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// What a Sequential knows of its I-th child. `output` is the edge behind it, `gradient` the gradient of that edge.
struct ChildPlace {
  ArenaOffsets at{};
  Extents in{};
  ActivationOffset output{}, gradient{};
  ActivationOffset again{};       // where backward makes a copy of the edge, of one that is made again
  int turn = 0;                   // alternates with every child that writes
  int source = 0;                 // the child that writes this edge (itself, unless it aliases); -1: the input
  bool kept_activations = false;  // the edge is in the kept arena
  bool remade = false;            // the edge is not kept: this child makes it again where backward reads it
  bool whole_gradient = false;    // its gradient is one array for all workers
  bool takes_room = false;        // MemoryRequirements::room
};

/// Layers, each of which takes the output of the one before.
template <class... Layers> struct Sequential {
  using children = List<Layers...>;
  static constexpr int size = sizeof...(Layers);
  static_assert(size > 0, "a Sequential needs at least one layer");

  struct Layout {
    std::array<ChildPlace, static_cast<std::size_t>(size)> children{};
    MemoryRequirements total{};
    int last = 0;   // the child whose output is the output; -1: all alias
    int first = 0;  // the first child that does not alias; size: all alias
  };

  static constexpr Layout layout(Extents in) {
    Layout r;
    std::array<MemoryRequirements, static_cast<std::size_t>(size)> s{};
    {
      int n = 0;
      Extents x = in;
      auto one = [&](const MemoryRequirements& child) {
        r.children[static_cast<std::size_t>(n)].in = x;
        s[static_cast<std::size_t>(n++)] = child;
        x = child.output;
      };
      const int each[] = {(one(nn::analyze<Layers>(x)), 0)...};  // a comma fold stops at 256 in clang
      (void)each;
    }
    Layout kept = r;
    place(kept, s, false);
    place(r, s, true);
    const auto size_of = [](const Layout& l) { return l.total.kept_activations + l.total.stacked; };
    return size_of(r) < size_of(kept) ? r : kept;
  }
  static constexpr MemoryRequirements analyze(Extents in) { return layout(in).total; }

 private:
  using AllRequirements = std::array<MemoryRequirements, static_cast<std::size_t>(size)>;

  static constexpr bool leaves[static_cast<std::size_t>(size)] = {!Container<Layers>...};
  /// Does child i make its output again where `reader` wants it in backward? Not where it makes that from such an edge itself. A
  /// container holds the array as long as all its layers run: that pays where later layers have left room.
  static constexpr bool remakes(const Layout& r, const AllRequirements& s, int i, int reader, bool for_containers) {
    const auto child = [&](int k) -> const ChildPlace& { return r.children[static_cast<std::size_t>(k)]; };
    const MemoryRequirements& own = s[static_cast<std::size_t>(i)];
    if (own.remakes_output == Remakes::never || own.saves_output || i == r.last) return false;
    if (!leaves[reader] && !for_containers) return false;
    const int before = i == 0 || own.remakes_output == Remakes::from_saved ? -1 : child(i - 1).source;
    return before < 0 || !child(before).remade;
  }
  /// The child that reads edge i, past those that only rename it.
  static constexpr int reader(const Layout& r, int i) {
    int reader = i + 1;
    while (r.children[static_cast<std::size_t>(reader)].source == i) ++reader;
    return reader;
  }
  /// The array of edge i's gradient, one for all workers. Edges of one pitch take two of them by turns: a worker writes its own
  /// rows alone, and others have read those when the layer that divides its gradient has ended. Rows of another pitch would lie
  /// elsewhere.
  static constexpr ActivationOffset whole_gradient(const Layout& r, int i, int turn, long pitch, ArenaOffsets& at) {
    for (int k = 0; k < i; ++k) {
      const ChildPlace& c = r.children[static_cast<std::size_t>(k)];
      if (c.whole_gradient && c.turn == turn && c.gradient.width == pitch) return c.gradient;
    }
    const long offset = at.whole_gradient;
    at.whole_gradient += whole_line(pitch);
    return {offset, pitch};
  }

  static constexpr void place(Layout& r, const AllRequirements& s, bool remade_for_containers) {
    auto child = [&](int i) -> ChildPlace& { return r.children[static_cast<std::size_t>(i)]; };
    auto size_of = [&](int i) -> const MemoryRequirements& { return s[static_cast<std::size_t>(i)]; };
    r.first = size;
    for (int i = 0; i < size; ++i) {
      child(i).source = size_of(i).aliases ? (i == 0 ? -1 : child(i - 1).source) : i;
      if (!size_of(i).aliases && r.first == size) r.first = i;
    }
    r.last = child(size - 1).source;

    MemoryRequirements& total = r.total;
    for (int i = 0; i < size; ++i) {  // who needs which edge in backward
      if (size_of(i).saves_output) child(i).kept_activations = true;
      if (!size_of(i).saves_input) continue;
      const int source = i == 0 ? -1 : child(i - 1).source;
      if (source < 0) total.saves_input = true;
      else if (remakes(r, s, source, i, remade_for_containers)) child(source).remade = true;
      else child(source).kept_activations = true;
    }
    ArenaOffsets at{};
    int turn = 0;
    for (int i = 0; i < size; ++i) {
      ChildPlace& c = child(i);
      const long pitch = sample_pitch(size_of(i).output);
      c.at = at;
      at = at + ArenaOffsets::after(size_of(i));
      if (c.source != i || c.source == r.last) {
        c.kept_activations = c.remade = false;  // no memory of its own
      } else if (c.kept_activations) {
        c.output = {at.kept_activations, pitch};
        at.kept_activations += whole_line(pitch);
      }
      if (!size_of(i).aliases) turn ^= 1;
      c.turn = turn;
      if (i + 1 < size && i >= r.first && !size_of(i + 1).aliases) {  // backward of the next child writes it
        c.whole_gradient = c.source >= 0 && size_of(c.source).whole_gradient;
        if (c.whole_gradient) c.gradient = whole_gradient(r, i, turn, pitch, at);
      }
      total.absorb(size_of(i));
    }
    place_scratch(r, s);
    for (int i = 0; i < size; ++i) {
      const ChildPlace& c = child(i);
      const long scratch = c.at.scratch + size_of(i).scratch,
                 stacked = c.at.saved_for_backward + c.at.scratch + size_of(i).stacked;
      if (scratch > total.scratch) total.scratch = scratch;
      if (stacked > total.stacked) total.stacked = stacked;
      child(i).takes_room = size_of(i).room > 0;
    }
    if (r.first < size) total.room = size_of(r.first).room;
    total.output = size_of(size - 1).output;
    total.kept_activations = at.kept_activations;
    total.whole_gradients = at.whole_gradient;
    total.aliases = r.last < 0;
    total.in_place = runs_in_place(r, s);
    if (r.last >= 0) {
      total.saves_output = size_of(r.last).saves_output;
      for (int i = r.last + 1; i < size; ++i)  // an alias behind the last layer hands its saves on
        if (size_of(i).saves_input) total.saves_output = true;
      total.whole_gradient = size_of(r.last).whole_gradient;
    }
  }

  /// One layer writes the gradient of the input, and it or another one behind it, which then has run, has read that of the
  /// output.
  static constexpr bool runs_in_place(const Layout& r, const AllRequirements& s) {
    if (r.last < 0 || sample_pitch(r.children[0].in) != sample_pitch(s[static_cast<std::size_t>(r.last)].output)) return false;
    return r.first < r.last || s[static_cast<std::size_t>(r.first)].in_place;
  }
  /// The edge whose gradient that of edge i may be written over, by the child behind edge i; null: it has an array of its own.
  static constexpr const ChildPlace* written_over(const Layout& r, const AllRequirements& s, int i) {
    const auto writer = static_cast<std::size_t>(i + 1);
    if (!s[writer].in_place || r.children[writer].source == r.last) return nullptr;
    const ChildPlace& over = r.children[static_cast<std::size_t>(reader(r, i + 1) - 1)];
    const bool as_wide = sample_pitch(s[writer].output) == sample_pitch(s[static_cast<std::size_t>(i)].output);
    return as_wide && !over.whole_gradient ? &over : nullptr;
  }
  /// Edges that are not kept, copies of those that are made again, and gradients, from the last to the first. The scratch memory
  /// of a child lies behind all that live while it runs.
  static constexpr void place_scratch(Layout& r, const AllRequirements& s) {
    auto child = [&](int i) -> ChildPlace& { return r.children[static_cast<std::size_t>(i)]; };
    ScratchLayout forward, backward;
    auto lift = [&](int k, const ActivationOffset& array) {
      if (array.offset + array.width > child(k).at.scratch) child(k).at.scratch = array.offset + array.width;
    };
    auto take = [&](ScratchLayout& pass, int i, int first, int last) {
      const ActivationOffset array = pass.take(sample_pitch(s[static_cast<std::size_t>(i)].output), first, last);
      for (int k = first; k <= last; ++k) lift(k, array);
      return array;
    };
    for (int i = size - 2; i >= 0; --i) {
      ChildPlace& c = child(i);
      if (c.source < 0 || c.source == r.last) continue;
      const int reads = reader(r, c.source);
      forward.forget_behind(reads);
      backward.forget_behind(reads);
      if (c.source == i && !c.kept_activations) {
        c.output = take(forward, i, i, reads);
        if (c.remade) c.again = take(backward, i, reads, reads);
      }
      if (i < r.first || s[static_cast<std::size_t>(i + 1)].aliases || c.whole_gradient) continue;
      if (const ChildPlace* over = written_over(r, s, i)) {
        c.gradient = over->gradient;
        backward.extend(c.gradient, over->source, c.source);
        for (int k = c.source; k <= i; ++k) lift(k, c.gradient);
      } else {
        c.gradient = take(backward, i, c.source, i + 1);
      }
    }
  }
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
  template <class R> static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                   const typename R::Activation* y,
                                                                   const typename R::Activation* dy, typename R::Activation* dx,
                                                                   const BodyEnds<typename R::Activation>& ends = {}) {
    return backward_all(r, at, {x, y, dx, ends}, dy, Indices{});
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
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::leaves(at + all.children[I].at, split, visit); }, Indices{});
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
    const ActivationOffset s{c.output.offset + (c.kept_activations ? at.kept_activations : at.scratch), c.output.width};
    return c.kept_activations ? r.save(s) : r.temporary(s);
  }
  /// Edge i (the output of child i; -1: the input) as backward sees it.
  template <class R> static const typename R::Activation* edge(const R& r, const ArenaOffsets& at, int i,
                                                               const typename R::Activation* x, const typename R::Activation* y) {
    const int source = i < 0 ? -1 : all.children[static_cast<std::size_t>(i)].source;
    return source < 0 ? x : output(r, at, source, const_cast<typename R::Activation*>(y));
  }
  /// Where child i writes the gradient of its input; null: nobody wants it, and the child has no other use for the array.
  template <class R>
  static typename R::Activation* gradient(const R& r, const ArenaOffsets& at, int i, typename R::Activation* dx) {
    if (i <= all.first) return dx;
    const ChildPlace& child = all.children[static_cast<std::size_t>(i)];
    if (!child.takes_room && !r.wants_gradient(at.parameter + child.at.parameter)) return nullptr;
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
  /// What backward of all children has in common.
  template <class Activation> struct BackwardCall {
    const Activation *x, *y;
    Activation* dx;
    BodyEnds<Activation> ends;
  };
  template <class R, int... I> static const typename R::Activation* backward_all(R& r, const ArenaOffsets& at,
                                                                                 const BackwardCall<typename R::Activation>& call,
                                                                                 const typename R::Activation* dy,
                                                                                 std::integer_sequence<int, I...>) {
    const int done[] = {(dy = backward_child<n - 1 - I>(r, at, call, dy), 0)...};
    (void)done;
    return dy;
  }
  template <int I, class R> static const typename R::Activation* backward_child(R& r, const ArenaOffsets& at,
                                                                                const BackwardCall<typename R::Activation>& call,
                                                                                const typename R::Activation* dy) {
    constexpr long end = I + 1 < n ? all.children[I + 1 < n ? I + 1 : I].at.parameter : all.total.stored;
    typename R::Activation* const to = gradient(r, at, I, call.dx);
    const bool wanted = to && r.wants_gradient(at.parameter + all.children[I].at.parameter);
    if (!wanted && r.frozen(at.parameter + end)) return nullptr;  // nor is anything in front of it trained
    const auto *x = edge(r, at, I - 1, call.x, call.y), *y = edge(r, at, I, call.x, call.y);
    if constexpr (remade_input<I>() < 0) {
      return run_backward<I>(r, at, {x, y, to, call.ends}, dy);
    } else {
      x = make_again<remade_input<I>()>(r, at, call);
      [[maybe_unused]] const detail::WholeBackward<R> whole(r);  // a half that is left for later would not find it
      return run_backward<I>(r, at, {x, y, to, call.ends}, dy);
    }
  }
  template <int I, class R> static const typename R::Activation* run_backward(R& r, const ArenaOffsets& at,
                                                                              const BackwardCall<typename R::Activation>& child,
                                                                              const typename R::Activation* dy) {
    const ArenaOffsets here = at + all.children[I].at;
    constexpr bool last = I + 1 == n && joins_sum<R>, first = I == 0 && adds_dx<R>;
    if constexpr (last || first)
      return NodeAt<I>::backward(r, here, child.x, child.y, dy, child.dx,
                                 {last ? child.ends.dsum : nullptr, first ? child.ends.adds_dx : false});
    else return NodeAt<I>::backward(r, here, child.x, child.y, dy, child.dx);
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
    NodeAt<S>::remake(r, at + all.children[S].at, edge(r, at, S - 1, call.x, call.y), to);
    return to;
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
