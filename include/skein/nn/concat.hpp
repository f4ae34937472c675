// SPDX-License-Identifier: Apache-2.0
// Concat<Branches...>: every branch gets the input; their outputs are joined along the last extent (channels). The branches
// of an image must agree on height and width.
#pragma once
#include <array>

#include "../ops/elementwise.hpp"
#include "node.hpp"
#include "run_guards.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Where a branch's parameters and activations begin, its input and output.
struct BranchPlace {
  ArenaOffsets at{};
  Extents in{}, output{};
  ActivationOffset slot{};
  int channel = 0;  // of the joined output
  bool is_kept = false;
};

/// Applies each branch to the same input and puts the outputs side by side along the last axis; the other extents must be
/// equal.
template <class... Branches> struct Concat {
  using branches = List<Branches...>;
  static constexpr int size = sizeof...(Branches);
  static_assert(size > 0, "a Concat needs at least one branch");

  struct Layout {
    std::array<BranchPlace, static_cast<std::size_t>(size)> children{};
    MemoryRequirements total{};
    long widest = 0;  // of the scratch array for one branch's output or its input gradient
  };

  static constexpr Layout layout(Extents in) {
    Layout r;
    MemoryRequirements& t = r.total;
    ArenaOffsets at{};
    long inner = 0, stacked = 0;
    int n = 0;
    r.widest = whole_line(sample_pitch(in));
    auto one = [&](const MemoryRequirements& s) {
      BranchPlace& b = r.children[static_cast<std::size_t>(n)];
      b.at = at;
      b.in = in;
      b.output = s.output;
      b.is_kept = s.saves_output;
      if (n == 0) t.output = s.output;
      else join(t, s, b);
      const long pitch = sample_pitch(s.output);
      if (const long top = at.saved_for_backward + s.stacked; top > stacked) stacked = top;
      at = at + ArenaOffsets::after(s);
      if (b.is_kept) {
        b.slot = {at.kept_activations, pitch};
        at.kept_activations += whole_line(pitch);
      }
      if (whole_line(pitch) > r.widest) r.widest = whole_line(pitch);
      if (s.scratch > inner) inner = s.scratch;
      t.absorb(s);
      t.saves_input = t.saves_input || s.saves_input;
      ++n;
    };
    const int each[] = {(one(with_room(nn::analyze<Branches>(in))), 0)...};
    (void)each;
    t.layer_nodes += 1;  // the join
    t.paths += 1;
    t.kept_activations = at.kept_activations;
    t.scratch = 2 * r.widest + inner;
    t.stacked = 2 * r.widest + stacked;
    t.saves_output = false;
    for (auto& b : r.children) b.at.scratch = 2 * r.widest;
    return r;
  }
  static constexpr MemoryRequirements analyze(Extents in) { return layout(in).total; }

 private:
  /// The branch's output goes behind those before it, along the last dimension; the others are the same.
  static constexpr void join(MemoryRequirements& total, const MemoryRequirements& branch, BranchPlace& place) {
    place.channel = total.output.last();
    bool same = branch.output.rank == total.output.rank;
    for (int i = 0; same && i + 1 < branch.output.rank; ++i) same = branch.output[i] == total.output[i];
    if (!same && total.fault == Fault::none && branch.fault == Fault::none) total.fault = Fault::concat_differs;
    total.output.e[total.output.rank - 1] += branch.output.last();
  }
};

template <ConcatLike L, class In> struct Node<L, In> {
  static constexpr typename L::Layout all = L::layout(In::extents);
  static constexpr int n = L::size;
  using Indices = std::make_integer_sequence<int, n>;
  template <int I> using NodeAt = Node<TypeAt<typename L::branches, I>, In>;
  static constexpr Extents output = all.total.output;
  static constexpr long pitch = sample_pitch(output), in = sample_pitch(In::extents);
  static constexpr long pixels = output.count() / output.last();
  // Images are dense and flat samples padded: either way the rows of a whole batch lie evenly apart.
  static constexpr long row_of(const Extents& e) { return e.flat() ? sample_pitch(e) : e.last(); }
  static constexpr long row = output.flat() ? pitch : output.last();

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y) {
    each(
        [&]<int I>(std::integral_constant<int, I>) {
          constexpr BranchPlace b = all.children[I];
          const auto* z = NodeAt<I>::forward(r, at + b.at, x, place<I>(r, at));
          ops::copy_rows<typename R::Device>(y + b.channel, row, z, row_of(b.output), r.batch * pixels, b.output.last());
        },
        Indices{});
    return y;
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    detail::NoSplit<R> guard(r);
    each(
        [&]<int J>(std::integral_constant<int, J>) {
          constexpr int I = n - 1 - J;
          constexpr BranchPlace b = all.children[I];
          typename R::Activation* part = r.temporary({at.scratch, all.widest});
          ops::copy_rows<typename R::Device>(part, row_of(b.output), call.dy + b.channel, row, r.batch * pixels, b.output.last());
          typename R::Activation* to = !call.dx ? nullptr : J == 0 ? call.dx : r.temporary({at.scratch + all.widest, all.widest});
          const auto* y = b.is_kept ? place<I>(r, at) : nullptr;
          const auto* from = NodeAt<I>::backward(r, at + b.at, {call.x, y, part, to});
          if (call.dx && J > 0) ops::add<typename R::Device>(call.dx, call.dx, from, in * r.batch);
          else if (call.dx && from != call.dx) ops::copy<typename R::Device>(call.dx, from, in * r.batch);
        },
        Indices{});
    return call.dx;
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::pack_weights(r, at + all.children[I].at); }, Indices{});
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::prepare(r, at + all.children[I].at); }, Indices{});
  }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::template executed_layers<F>(visit); }, Indices{});
    visit(1, std::string_view("join"));
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool, Visit&& visit) {
    each([&]<int I>(std::integral_constant<int, I>) { NodeAt<I>::leaves(at + all.children[I].at, false, visit); }, Indices{});
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
  template <int I, class R> static typename R::Activation* place(const R& r, const ArenaOffsets& at) {
    constexpr BranchPlace b = all.children[I];
    if constexpr (b.is_kept) return r.save({at.kept_activations + b.slot.offset, b.slot.width});
    else return r.temporary({at.scratch, all.widest});
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
