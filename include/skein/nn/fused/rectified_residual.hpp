// SPDX-License-Identifier: Apache-2.0
// RectifiedResidual<Body, Shortcut>: y = max(0, Body(x) + Shortcut(x)): what runs a Residual and the Relu behind it on the host.
// Where the body ends with a layer that joins a sum (ConvBatchNorm), sum and ReLU are part of that layer's passes; where it
// begins with one that can, its gradient is added to the shortcut's in place.
#pragma once
#include "../fused_network.hpp"
#include "../relu.hpp"
#include "../run_guards.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// y = max(0, Body(x) + Shortcut(x)); both have the same output.
template <class Body, class Shortcut> struct RectifiedResidual {
  using rectified_body = Body;
  using rectified_shortcut = Shortcut;
  template <class Device> using rewritten =
      RectifiedResidual<typename detail::Rewrite<Body, Device>::type, typename detail::Rewrite<Shortcut, Device>::type>;
  static constexpr MemoryRequirements analyze(Extents in) {
    MemoryRequirements t = Residual<Body, Shortcut>::analyze(in);
    t.layer_nodes += 1;
    t.paths += 1;
    t.flops += t.output.count();
    t.saves_output = true;
    const MemoryRequirements b = with_room(nn::analyze<Body>(in)), s = with_room(nn::analyze<Shortcut>(in));
    const ScratchOf at = scratch_of(b, s, in);
    const long own = s.aliases ? at.sum : at.sum + at.input, ends[] = {own, at.body + b.scratch, at.shortcut + s.scratch};
    const long tops[] = {own, at.body + b.stacked, at.shortcut + b.saved_for_backward + s.scratch};
    t.scratch = t.stacked = 0;
    for (const long end : ends) t.scratch = end > t.scratch ? end : t.scratch;
    for (const long top : tops) t.stacked = top > t.stacked ? top : t.stacked;
    t.stacked += s.saved_for_backward;  // below the body's, as in a Residual
    t.in_place = sample_pitch(in) == sample_pitch(t.output);
    return t;
  }
  /// The gradient of the sum, in forward the shortcut's output; then the shortcut's part of the input's gradient, which lives
  /// beside the body's scratch memory where it is made before the body's; then what is theirs.
  struct ScratchOf {
    long sum = 0, input = 0;      // widths
    long body = 0, shortcut = 0;  // offsets
  };
  static constexpr ScratchOf scratch_of(const MemoryRequirements& body, const MemoryRequirements& shortcut, Extents in) {
    ScratchOf r{whole_line(sample_pitch(body.output)), whole_line(sample_pitch(in))};
    r.body = shortcut.stored > 0 && !shortcut.aliases ? r.sum + r.input : r.sum;
    r.shortcut = shortcut.aliases ? r.sum : r.sum + r.input;
    return r;
  }
};

template <RectifiedResidualLike L, class In> struct Node<L, In> {
  using Plain = Node<Residual<typename L::rectified_body, typename L::rectified_shortcut>, In>;
  using Body = typename Plain::Body;
  using Shortcut = typename Plain::Shortcut;
  static constexpr long out = Plain::out, in = Plain::in;
  static constexpr bool identity = Plain::shortcut.aliases;
  static constexpr auto scratch = L::scratch_of(Plain::body, Plain::shortcut, In::extents);
  static constexpr ArenaOffsets body_at() {
    ArenaOffsets a = Plain::body_at();
    a.scratch = scratch.body;
    return a;
  }
  static constexpr ArenaOffsets shortcut_at() {
    ArenaOffsets a = Plain::shortcut_at();
    a.scratch = scratch.shortcut;
    return a;
  }

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y) {
    const auto* b = Shortcut::forward(r, at + shortcut_at(), x,
                                      Plain::shortcut.saves_output ? Plain::shortcut_output_of(r, at) : array_of_sum(r, at));
    if constexpr (NodeJoinsSum<Body, R>) {
      Body::forward(r, at + body_at(), x, y, b);
    } else {
      const auto* a = Body::forward(r, at + body_at(), x, Plain::body.saves_output ? Plain::body_output_of(r, at) : y);
      ops::add_relu<typename R::Device>(y, a, b, out * r.batch);
    }
    return y;
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    detail::NoSplit<R> guard(r);
    // A shortcut's parameters are behind the body's in the arena, so that its gradients are made first.
    if constexpr (NodeJoinsSum<Body, R> && Plain::shortcut.stored == 0) return backward_joined(r, at, call);
    else return backward_apart(r, at, call);
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) { Plain::pack_weights(r, at); }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) { Plain::prepare(r, at); }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    Body::template executed_layers<F>(visit);
    Shortcut::template executed_layers<F>(visit);
    visit(2, NodeJoinsSum<Body, F> ? std::string_view("in the body's last pass") : std::string_view("sum, with ReLU"));
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool split, Visit&& visit) {
    Plain::leaves(at, split, visit);
  }
  template <class R> static constexpr ConversionMemory conversion() { return Plain::template conversion<R>(); }

 private:
  template <class R> static typename R::Activation* array_of_sum(const R& r, const ArenaOffsets& at) {
    return r.temporary({at.scratch, scratch.sum});
  }
  template <class R> static typename R::Activation* array_of_input(const R& r, const ArenaOffsets& at) {
    return r.temporary({at.scratch + scratch.sum, scratch.input});
  }
  /// The body's last layer makes the gradient of the sum. Of a shortcut that only hands x on that is dx, to which the body adds.
  template <class R> static const typename R::Activation* backward_joined(R& r, const ArenaOffsets& at,
                                                                          const BackwardCall<typename R::Activation>& call) {
    constexpr bool adds = identity && NodeAddsToGradient<Body, R>;
    auto* const dsum = adds && call.dx ? call.dx : array_of_sum(r, at);
    Body::backward(r, at + body_at(), {call.x, call.y, call.dy, call.dx, {dsum, adds && call.dx}});
    if (call.dx && !adds) add_shortcut(r, at, call.x, dsum, call.dx);
    return call.dx;
  }
  /// The gradient of the sum first, then the body's, then the shortcut's; but that of its parameters before the body's.
  template <class R> static const typename R::Activation* backward_apart(R& r, const ArenaOffsets& at,
                                                                         const BackwardCall<typename R::Activation>& call) {
    auto* const dsum = array_of_sum(r, at);
    ops::relu_gradient<typename R::Device>(dsum, call.dy, call.y, out * r.batch);
    const auto* body_y = Plain::body.saves_output ? Plain::body_output_of(r, at) : nullptr;
    if constexpr (Plain::shortcut.stored > 0 || (identity && NodeAddsToGradient<Body, R>)) {
      constexpr bool adds = NodeAddsToGradient<Body, R>;
      auto* const to = !call.dx || identity ? nullptr : adds ? call.dx : array_of_input(r, at);
      const auto* b = through_shortcut(r, at, call.x, dsum, to);
      if constexpr (adds) {
        if (call.dx) ops::copy<typename R::Device>(call.dx, b, in * r.batch);
        Body::backward(r, at + body_at(), {call.x, body_y, dsum, call.dx, {nullptr, call.dx != nullptr}});
      } else {
        const auto* a = Body::backward(r, at + body_at(), {call.x, body_y, dsum, call.dx});
        if (call.dx) ops::add<typename R::Device>(call.dx, a, b, in * r.batch);
      }
    } else {
      const auto* a = Body::backward(r, at + body_at(), {call.x, body_y, dsum, call.dx});
      if (call.dx) ops::copy<typename R::Device>(call.dx, a, in * r.batch);
      if (call.dx) add_shortcut(r, at, call.x, dsum, call.dx);
    }
    return call.dx;
  }
  template <class R> static void add_shortcut(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                              const typename R::Activation* dsum, typename R::Activation* dx) {
    const auto* b = through_shortcut(r, at, x, dsum, identity ? nullptr : array_of_input(r, at));
    ops::add<typename R::Device>(dx, dx, b, in * r.batch);
  }
  template <class R>
  static const typename R::Activation* through_shortcut(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                        const typename R::Activation* dsum, typename R::Activation* to) {
    const auto* output = Plain::shortcut.saves_output ? Plain::shortcut_output_of(r, at) : nullptr;
    return Shortcut::backward(r, at + shortcut_at(), {x, output, dsum, to});
  }
};

template <class Body, class Shortcut> struct Fusion<Cpu, Residual<Body, Shortcut>, Relu> {
  using type = RectifiedResidual<Body, Shortcut>;
};

}  // namespace skein::inline SKEIN_ABI::nn
