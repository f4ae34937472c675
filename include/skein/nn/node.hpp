// SPDX-License-Identifier: Apache-2.0
// Node<L, In> runs layer L at input shape In, in a worker's pass (Run). There is one Node for each distinct pair, whatever its
// place, which comes as a value (ArenaOffsets). Here is the leaf's; containers specialise Node in their own headers.
#pragma once
#include "backward_call.hpp"
#include "converted_layer.hpp"
#include "expression_layer.hpp"
#include "run.hpp"
#include "write_check.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The last layer of a node joins a sum (JoinsSum), or its first one adds to the gradient of the input (AddsToGradient).
template <class N, class R> concept NodeJoinsSum = requires { requires N::template joins_sum<R>; };
template <class N, class R> concept NodeAddsToGradient = requires { requires N::template adds_dx<R>; };

/// A leaf. forward returns where the output is (an aliasing layer: its input); backward likewise for the input's gradient.
template <class L, class In> struct Node {
  static constexpr LayerInfo info = L::describe(In::extents);
  static constexpr bool splits = needs_of<L>(In::extents).splits_gradients;
  template <class R> static constexpr bool takes = std::same_as<typename LeafFrame<L, R>::Activation, typename R::Activation>;
  template <class R> static constexpr bool joins_sum = takes<R>&& JoinsSum<L>;
  template <class R> static constexpr bool adds_dx = takes<R>&& AddsToGradient<L, In, LeafFrame<L, R>>;

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y,
                                                                  const typename R::Activation* addend = nullptr) {
    if constexpr (info.aliases_input) {
      return x;
    } else if constexpr (!takes<R>) {
      ConvertedLayer<L, In>::forward(r, at, x, y);
      return y;
    } else {
      auto f = r.template frame<LeafFrame<L, R>>(at, info);
      share_gradient(r, at, f);
      f.x = x;
      f.y = y;
      f.addend = addend;
      const auto written = watch<R>(y, r.batch, info.output);
      L::template forward<In>(f);
      written.assert_written("forward", "its output", "f.y() = ...");
      return y;
    }
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    if constexpr (info.aliases_input) {
      return call.dy;
    } else {
      if (!call.dx && r.frozen(at.parameter + info.stored_parameters())) return nullptr;
      if constexpr (!takes<R>) {
        ConvertedLayer<L, In>::backward(r, at, call);
      } else {
        auto f = r.template frame<LeafFrame<L, R>>(at, info);
        share_gradient(r, at, f);
        f.x = call.x;
        f.y = const_cast<typename R::Activation*>(call.y);
        f.dy = call.dy;
        f.dx = call.dx;
        f.dsum = call.ends.dsum;
        f.adds_dx = call.ends.adds_dx;
        if constexpr (CollectsFactors<R>) r.template add_units<L, In>(at.parameter, f);
        const auto written = watch<R>(info.tokens > 0 || f.adds_dx ? nullptr : f.dx, r.batch, In::extents);
        if constexpr (Defers<R> && HasBackwardHalves<L>) {
          if (r.defers(call.dy, info.saved_by_backward)) {
            L::template backward_input<In>(f);
            written.assert_written("backward", "the gradient of its input", "f.dx() = ...");
            r.defer(&Node::template backward_parameters<R>, at, {call.x, call.y, call.dy});
            return call.dx;
          }
        }
        L::template backward<In>(f);
        written.assert_written("backward", "the gradient of its input", "f.dx() = ...");
        if constexpr (CollectsFactors<R>) r.template add_factors<L, In>(at.parameter, f);
      }
      if constexpr (info.stored_parameters() > 0) r.gradients_final_from(at.parameter);
      return call.dx;
    }
  }
  /// The half that a backward before has left for later.
  template <class R>
  static void backward_parameters(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    auto f = r.template frame<LeafFrame<L, R>>(at, info);
    share_gradient(r, at, f);
    f.x = call.x;
    f.y = const_cast<typename R::Activation*>(call.y);
    f.dy = call.dy;
    L::template backward_parameters<In>(f);
  }
  /// Writes its output of training once more, of a layer that says remakes_output: the same bits.
  template <class R> static void remake(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                        typename R::Activation* y) requires(info.remakes_output != Remakes::never) {
    if constexpr (!takes<R>) {
      ConvertedLayer<L, In>::remake(r, at, x, y);
    } else {
      auto f = r.template frame<LeafFrame<L, R>>(at, info);
      f.x = x;
      f.y = y;
      L::template remake<In>(f);
    }
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    if constexpr (HasPackWeights<L>) {
      auto f = r.template frame<LeafFrame<L, R>>(at, info);
      share_gradient(r, at, f);
      L::template pack_weights<In>(f);
    }
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    if constexpr (HasPrepare<L>) {
      if constexpr (!takes<R>) {
        ConvertedLayer<L, In>::prepare(r, at);
      } else {
        auto f = r.template frame<LeafFrame<L, R>>(at, info);
        share_gradient(r, at, f);
        L::template prepare<In>(f);
      }
    }
  }
  /// Calls visit(number of the user's layers, which kernel runs them) for each executed layer, in order.
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    if constexpr (requires { L::template kernel<In, LeafFrame<L, F>>(); })
      visit(detail::layer_count_of<L>(), std::string_view(L::template kernel<In, LeafFrame<L, F>>()));
    else visit(detail::layer_count_of<L>(), std::string_view(info.aliases_input ? "no copy" : ""));
  }
  /// Calls visit(layer's info, stored parameter offset, may its gradient be split among workers) for each leaf, in order.
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool split, Visit&& visit) {
    visit(info, at.parameter, split && splits);
  }
  /// What running this subtree on other activations than its scalars takes.
  template <class R> static constexpr ConversionMemory conversion() {
    if constexpr (info.aliases_input) return {};
    else if constexpr (takes<R>) return {.reads_weights = info.stored_parameters() > 0, .passes = info.saved_by_backward};
    else return ConvertedLayer<L, In>::template needs<typename R::Device>();
  }

 private:
  /// The rank's one gradient where the workers divide it.
  template <class R, class F> static void share_gradient(R& r, const ArenaOffsets& at, F& f) {
    if constexpr (splits)
      if (r.context.split) f.gradients = r.split_gradients + at.parameter;
  }
  /// Samples that the layer is about to write.
  template <class R, class T> static auto watch(T* to, long batch, const Extents& sample) {
    if constexpr (checks_writes<R>) return detail::WriteCheck<L, T>(to, batch, sample);
    else return detail::NoWriteCheck{};
  }
};

/// A leaf of tensor expressions.
template <HasSpec L, class In> struct Node<L, In> : Node<ExpressionLayer<L>, In> {};

}  // namespace skein::inline SKEIN_ABI::nn
