// SPDX-License-Identifier: Apache-2.0
// Joins: what makes one edge of a Graph of several. A join has no parameters. It says of itself what comes out for the edges that
// it reads, and is written as tensor expressions over them, once for every device:
//
//     struct Multiply {                                                     // y = a b
//       static constexpr nn::JoinSpec describe(sk::Edge a, sk::Edge b) {
//         return {.output = a, .backward_reads_inputs = true, .accepts = a == b};
//       }
//       static void forward(auto& f) { f.y() = f.a() * f.b(); }
//       static void backward(auto& f) {
//         f.da() = f.dy() * f.b();
//         f.db() = f.dy() * f.a();
//       }
//     };
#pragma once
#include <array>
#include <concepts>

#include "../../ops/elementwise.hpp"
#include "../expression_layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The edges that a join reads: two to eight.
struct JoinInputs {
  static constexpr int most = 8;
  std::array<Extents, most> e{};
  int count = 0;

  constexpr const Extents& operator[](int i) const { return e[static_cast<std::size_t>(i)]; }
};

/// All that a join declares for the edges that it reads.
struct JoinSpec {
  Edge output{};
  bool backward_reads_inputs = false;
  bool hands_gradient_on = false;  ///< the gradient of every input is that of the output: there is no backward()
  long flops = 0;                  ///< of forward, a sample; 0: as many as the output has values
  bool accepts = true;             ///< false: these edges are refused
};

/// Floating-point operations of a join's forward, for one sample.
constexpr long join_flops(const JoinSpec& s) { return s.flops > 0 ? s.flops : s.output.count(); }

/// A join of two edges: describe(Edge a, Edge b).
template <class L> concept JoinsTwo = requires(Edge in) {
  { L::describe(in, in) } -> std::same_as<JoinSpec>;
};
/// A join of any number of edges: describe(JoinInputs).
template <class L> concept JoinsMany = requires(const JoinInputs& in) {
  { L::describe(in) } -> std::same_as<JoinSpec>;
};
template <class L> concept Join = JoinsTwo<L> || JoinsMany<L>;

/// What join L says of these edges.
template <class L> constexpr JoinSpec join_spec(const JoinInputs& in) {
  if constexpr (JoinsMany<L>) return L::describe(in);
  else if (in.count == 2) return L::describe(Edge(in[0]), Edge(in[1]));
  else return {.output = in[0], .accepts = false};
}

/// What forward and backward of a join see of one worker's samples: views of expressions for joins of two, pointers for all.
template <class R, bool Backward, class Out, class... Ins> class JoinFrame {
 public:
  using Scalar = typename R::Scalar;
  using Device = typename R::Device;
  using Activation = typename R::Activation;
  static constexpr int count = sizeof...(Ins);
  static constexpr std::array<Extents, sizeof...(Ins)> inputs_extents{Ins::extents...};
  static constexpr Extents output_extents = Out::extents;

  std::array<const Activation*, sizeof...(Ins)> inputs{};  ///< in backward only with backward_reads_inputs
  Activation* output = nullptr;                            ///< forward's
  const Activation* gradient = nullptr;                    ///< backward's: of the output
  std::array<Activation*, sizeof...(Ins)> gradients{};     ///< of the inputs; null: nobody wants it
  long batch = 0;                                          ///< samples

  auto a() const { return view<0>(inputs[0]); }
  auto b() const { return view<1>(inputs[1]); }
  /// To be written.
  auto y() const {
    static_assert(!Backward, "y() is forward's: a join's backward sees dy(), a() and b()");
    return target<Out>(output);
  }
  auto dy() const {
    static_assert(Backward, "forward has no gradients: dy() is backward's");
    return samples<Out>(gradient);
  }
  /// The gradients of a and b, to be written; where nobody wants one, an assignment does nothing.
  auto da() const { return target<TypeAt<List<Ins...>, 0>>(gradients[0]); }
  auto db() const { return target<TypeAt<List<Ins...>, 1>>(gradients[1]); }

 private:
  template <class S> using Layout =
      typename detail::Layouts<S::extents.rank, S::extents.e[0], S::extents.e[1], S::extents.e[2], S::extents.e[3]>::samples;
  template <class S> auto samples(const Activation* data) const {
    return StaticView<const Activation, Scalar, Device, Layout<S>>(data, batch);
  }
  template <int I> auto view(const Activation* data) const { return samples<TypeAt<List<Ins...>, I>>(data); }
  template <class S> auto target(Activation* data) const {
    return detail::SamplesToWrite<Activation, Scalar, Device, Layout<S>, detail::WriteOnly>(data, batch);
  }
};

namespace detail {
constexpr bool all_equal(const JoinInputs& in) {
  for (int i = 1; i < in.count; ++i)
    if (!(in[i] == in[0])) return false;
  return true;
}
}  // namespace detail

/// The sum of edges of one shape. Costs backward nothing: the gradient is that of each.
struct Add {
  static constexpr JoinSpec describe(const JoinInputs& in) {
    return {
        .output = in[0], .hands_gradient_on = true, .flops = (in.count - 1) * in[0].count(), .accepts = detail::all_equal(in)};
  }
  static void forward(auto& f) {
    using Device = typename std::remove_cvref_t<decltype(f)>::Device;
    const long n = sample_pitch(f.output_extents) * f.batch;
    ops::add<Device>(f.output, f.inputs[0], f.inputs[1], n);
    for (std::size_t i = 2; i < f.inputs.size(); ++i) ops::add<Device>(f.output, f.output, f.inputs[i], n);
  }
};

/// The product of two edges of one shape, value by value: a gate.
struct Multiply {
  static constexpr JoinSpec describe(Edge a, Edge b) { return {.output = a, .backward_reads_inputs = true, .accepts = a == b}; }
  static void forward(auto& f) { f.y() = f.a() * f.b(); }
  static void backward(auto& f) {
    f.da() = f.dy() * f.b();
    f.db() = f.dy() * f.a();
  }
};

/// Edges side by side along the last extent (channels, features); all others are equal.
struct Concatenate {
  static constexpr JoinSpec describe(const JoinInputs& in) {
    JoinSpec s{.output = in[0]};
    for (int i = 1; i < in.count; ++i) {
      bool same = in[i].rank == in[0].rank;
      for (int k = 0; same && k + 1 < in[i].rank; ++k) same = in[i][k] == in[0][k];
      s.accepts = s.accepts && same;
      s.output.e[s.output.rank - 1] += in[i].last();
    }
    return s;
  }
  static void forward(auto& f) {
    using F = std::remove_cvref_t<decltype(f)>;
    int channel = 0;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      const Extents& e = F::inputs_extents[i];
      ops::copy_rows<typename F::Device>(f.output + channel, row(F::output_extents), f.inputs[i], row(e), rows(f), e.last());
      channel += e.last();
    }
  }
  static void backward(auto& f) {
    using F = std::remove_cvref_t<decltype(f)>;
    int channel = 0;
    for (std::size_t i = 0; i < f.gradients.size(); ++i) {
      const Extents& e = F::inputs_extents[i];
      if (f.gradients[i])
        ops::copy_rows<typename F::Device>(f.gradients[i], row(e), f.gradient + channel, row(F::output_extents), rows(f),
                                           e.last());
      channel += e.last();
    }
  }

 private:
  // Images are dense and flat samples padded: either way the rows of a whole batch lie evenly apart.
  static constexpr long row(const Extents& e) { return e.flat() ? sample_pitch(e) : e.last(); }
  static long rows(const auto& f) { return f.batch * (f.output_extents.count() / f.output_extents.last()); }
};

}  // namespace skein::inline SKEIN_ABI::nn

namespace skein::inline SKEIN_ABI {
using nn::JoinSpec;
}  // namespace skein::inline SKEIN_ABI
