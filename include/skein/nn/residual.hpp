// SPDX-License-Identifier: Apache-2.0
// Residual<Body, Shortcut>: y = Body(x) + Shortcut(x); without a shortcut, y = Body(x) + x (He et al., CVPR 2016).
#pragma once
#include "../ops/elementwise.hpp"
#include "identity.hpp"
#include "node.hpp"
#include "run_guards.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// y = Body(x) + Shortcut(x); both have the same output.
template <class Body, class Shortcut = Identity> struct Residual {
  using body = Body;
  using shortcut = Shortcut;
  static constexpr MemoryRequirements analyze(Extents in) {
    const MemoryRequirements b = with_room(nn::analyze<Body>(in)), s = with_room(nn::analyze<Shortcut>(in));
    MemoryRequirements t{.output = b.output};
    t.absorb(b);
    t.absorb(s);
    t.layer_nodes += 1;  // the sum
    t.paths += 1;
    t.flops += t.output.count();
    const long out = whole_line(sample_pitch(t.output)), x = whole_line(sample_pitch(in));
    t.kept_activations = b.kept_activations + s.kept_activations + (b.saves_output ? out : 0) + (s.saves_output ? out : 0);
    const long slot = x > out ? x : out;
    t.scratch = slot + (b.scratch > s.scratch ? b.scratch : s.scratch);
    // What the shortcut saves is below the body's, which is there while the shortcut's backward runs, but not the other way
    // round.
    const long of_body = b.stacked, of_shortcut = b.saved_for_backward + s.scratch;
    t.stacked = slot + s.saved_for_backward + (of_body > of_shortcut ? of_body : of_shortcut);
    t.saves_input = b.saves_input || s.saves_input;
    if (t.fault == Fault::none && !(b.output == s.output)) t.fault = Fault::branches_differ;
    return t;
  }
};

template <ResidualLike L, class In> struct Node<L, In> {
  using Body = Node<typename L::body, In>;
  using Shortcut = Node<typename L::shortcut, In>;
  static constexpr MemoryRequirements body = analyze<typename L::body>(In::extents),
                                      shortcut = analyze<typename L::shortcut>(In::extents);
  static constexpr long out = sample_pitch(body.output), in = sample_pitch(In::extents);
  static constexpr long slot = whole_line(out > in ? out : in);
  // Kept, where backward reads them: the body's output, the shortcut's output, then what is inside of them.
  static constexpr long shortcut_output = body.saves_output ? whole_line(out) : 0;
  static constexpr ArenaOffsets body_at() {
    ArenaOffsets a{};
    a.saved_for_backward = shortcut.saved_for_backward;
    a.kept_activations = shortcut_output + (shortcut.saves_output ? whole_line(out) : 0);
    a.scratch = slot;
    return a;
  }
  static constexpr ArenaOffsets shortcut_at() {
    ArenaOffsets a = body_at() + ArenaOffsets::after(body);
    a.saved_for_backward = 0;
    a.scratch = slot;
    return a;
  }
  template <class R> static typename R::Activation* body_output_of(const R& r, const ArenaOffsets& at) {
    return r.save({at.kept_activations, out});
  }
  template <class R> static typename R::Activation* shortcut_output_of(const R& r, const ArenaOffsets& at) {
    return r.save({at.kept_activations + shortcut_output, out});
  }

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y) {
    typename R::Activation* other = r.temporary({at.scratch, slot});
    const auto* a = Body::forward(r, at + body_at(), x, body.saves_output ? body_output_of(r, at) : y);
    const auto* b = Shortcut::forward(r, at + shortcut_at(), x, shortcut.saves_output ? shortcut_output_of(r, at) : other);
    ops::add<typename R::Device>(y, a, b, out * r.batch);
    return y;
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    detail::NoSplit<R> guard(r);
    typename R::Activation* other = call.dx ? r.temporary({at.scratch, slot}) : nullptr;
    const auto* shortcut_y = shortcut.saves_output ? shortcut_output_of(r, at) : nullptr;
    const auto* b =
        Shortcut::backward(r, at + shortcut_at(), {call.x, shortcut_y, call.dy, other});  // the arena's order reversed
    const auto* body_y = body.saves_output ? body_output_of(r, at) : nullptr;
    const auto* a = Body::backward(r, at + body_at(), {call.x, body_y, call.dy, call.dx});
    if (call.dx) ops::add<typename R::Device>(call.dx, a, b, in * r.batch);
    return call.dx;
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    Body::pack_weights(r, at + body_at());
    Shortcut::pack_weights(r, at + shortcut_at());
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    Body::prepare(r, at + body_at());
    Shortcut::prepare(r, at + shortcut_at());
  }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    Body::template executed_layers<F>(visit);
    Shortcut::template executed_layers<F>(visit);
    visit(1, std::string_view("sum"));
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool, Visit&& visit) {
    Body::leaves(at + body_at(), false, visit);
    Shortcut::leaves(at + shortcut_at(), false, visit);
  }
  template <class R> static constexpr ConversionMemory conversion() {
    ConversionMemory s = Body::template conversion<R>();
    return s += Shortcut::template conversion<R>();
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
