// SPDX-License-Identifier: Apache-2.0
// Layers of one's own, written once for every device as tensor expressions over a frame of views with static extents:
//
//     struct Scale {                                                        // y = scale * x, one factor a feature
//       static constexpr sk::LayerSpec describe(sk::Edge in) {
//         return {.output = in, .parameters = {{"scale", {in.last()}, sk::Init::ones}}, .backward_reads = sk::Reads::x};
//       }
//       static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"_p); }
//       static void backward(auto& f) {
//         f.gradient("scale"_p) += sum_leading(f.dy() * f.x());
//         f.dx() = f.dy() * f.parameter("scale"_p);
//       }
//     };
//
// Names, extents and what backward reads are checked when it is compiled. On the Cpu forward and backward are called for blocks
// of samples that stay in the first-level cache, so that several assignments read memory once; on another device once for all.
#pragma once
#include "../tensor/functions.hpp"
#include "../tensor/static_evaluate.hpp"
#include "layer_spec.hpp"
#include "write_check.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {

template <class L, class In> inline constexpr LayerSpec spec_of = L::describe(Edge(In::extents));
template <int Rank, int A, int B, int C, int D> struct Layouts;
template <int A, int B, int C, int D> struct Layouts<1, A, B, C, D> {
  using samples = SampleLayout<A>;
  using parameter = ParameterLayout<A>;
};
template <int A, int B, int C, int D> struct Layouts<2, A, B, C, D> {
  using samples = SampleLayout<A, B>;
  using parameter = ParameterLayout<A, B>;
};
template <int A, int B, int C, int D> struct Layouts<3, A, B, C, D> {
  using samples = SampleLayout<A, B, C>;
  using parameter = ParameterLayout<A, B, C>;
};
template <int A, int B, int C, int D> struct Layouts<4, A, B, C, D> {
  using samples = SampleLayout<A, B, C, D>;
  using parameter = ParameterLayout<A, B, C, D>;
};

/// Where the place of a parameter is known: its extents, and its offset in the layer's arrays.
template <class L, class In, int I> struct ParameterAt {
  static constexpr Extents e = spec_of<L, In>.parameters.list[I].extents;
  using Layout = typename Layouts<e.rank, e.e[0], e.e[1], e.e[2], e.e[3]>::parameter;
  static constexpr long offset = [] {
    long at = 0;
    for (int i = 0; i < I; ++i) at += stored_count(spec_of<L, In>.parameters.list[i].extents);
    return at;
  }();
};

/// The base of an array that may be null, so that nobody reads what has been written there.
struct WriteOnly : StaticNode {
  using write_only = void;
};
/// Samples that a layer writes. The array may be null: nobody wants them, and nothing is done. Base: StaticNode where what has
/// been written may be read again.
template <class Element, class Scalar_, class Device_, class Layout, class Base> class SamplesToWrite : public Base {
 public:
  using Scalar = Scalar_;
  using Device = Device_;
  static constexpr Extents extents = Layout::extents;
  using View = StaticView<const Element, Scalar, Device, Layout>;

  constexpr SamplesToWrite(Element* data, long batch) : data_(data), batch_(batch) {}
  template <class E>
  requires(!Number<E>) void operator=(const E& e) const {
    using Node = skein::detail::NodeOfLeaf<E>;
    using Facts = skein::detail::StaticFacts<View, Node>;
    constexpr bool fits = !Node::sound || !Facts::all || skein::detail::fits_samples<typename Layout::shape, Node>;
    static_assert(!Node::sound || Facts::all,
                  "a layer's expression holds a tensor with extents of run time: what it reads comes from its frame");
    static_assert(fits,
                  "the extents of the expression do not fit the array that it is assigned to: aligned at the last, each "
                  "must be equal or 1");
    if constexpr (Node::sound && Facts::all && fits)
      if (data_) skein::static_assign<typename Layout::shape, Device>(data_, batch_, skein::detail::leaf(e));
  }
  template <Number N> void operator=(N n) const { *this = skein::detail::Constant<Scalar>{static_cast<Scalar>(n)}; }
  template <class E> void operator+=(const E& e) const { *this = view() + e; }
  template <class E> void operator-=(const E& e) const { *this = view() - e; }
  template <class E> void operator*=(const E& e) const { *this = view() * e; }
  template <class E> void operator/=(const E& e) const { *this = view() / e; }
  constexpr View view() const { return View(data_, batch_); }

 private:
  Element* data_;
  long batch_;
};

template <class E> inline constexpr bool is_sum = requires { typename E::static_sum; };

/// The gradient of a parameter, which layers add to.
template <class Scalar, class Device, class Layout> class GradientToAdd {
 public:
  /// `added` gets `bit` where something is added, in a debug build.
  constexpr GradientToAdd(Scalar* data, long batch, unsigned* added, unsigned bit)
      : data_(data), batch_(batch), added_(added), bit_(bit) {}
  template <class E> void operator+=(const E& sum) const {
    static_assert(is_sum<E>, "a gradient takes sums over the samples: sum_leading(e), sum_batch(e) or sum_all(e)");
    if constexpr (is_sum<E>) {
      (void)skein::detail::leaf(sum.summed);
      if constexpr (!skein::detail::WriteOnlyExpression<decltype(E::summed)>) add(sum);
    }
  }
  template <class E> void operator=(const E&) const {
    static_assert(sizeof(E*) == 0, "gradients add up over batches and workers: write f.gradient(...) += ...");
  }

 private:
  template <class E> void add(const E& sum) const {
    constexpr bool fits = !E::sound || E::fits(Layout::extents);
    static_assert(fits,
                  "the sum has other extents than the parameter: sum_leading(e) has the last extent of e, sum_batch(e) all "
                  "of them, sum_all(e) is (1)");
    if (SKEIN_CHECKED) *added_ |= bit_;
    if constexpr (fits) skein::static_add_sum<Layout, Device>(data_, batch_, sum);
  }

  Scalar* data_;
  long batch_;
  unsigned* added_;
  unsigned bit_;
};

}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn

namespace skein::inline SKEIN_ABI::detail {
/// In an expression, what has been written is a view.
template <class E, class S, class D, class Layout> struct Leaf<nn::detail::SamplesToWrite<E, S, D, Layout, StaticNode>> {
  static constexpr auto make(const nn::detail::SamplesToWrite<E, S, D, Layout, StaticNode>& samples) { return samples.view(); }
};
}  // namespace skein::inline SKEIN_ABI::detail

namespace skein::inline SKEIN_ABI::nn {

/// What forward and backward of a layer L of expressions see, at input In: views of a slice of the batch. Raw: the Frame below
/// it.
template <class L, class In, class Raw, bool Backward> class ExpressionFrame {
  static constexpr Extents out = detail::spec_of<L, In>.output;
  static constexpr Reads reads = detail::spec_of<L, In>.backward_reads;
  using XLayout =
      typename detail::Layouts<In::extents.rank, In::extents.e[0], In::extents.e[1], In::extents.e[2], In::extents.e[3]>::samples;
  using YLayout = typename detail::Layouts<out.rank, out.e[0], out.e[1], out.e[2], out.e[3]>::samples;

 public:
  using Scalar = typename Raw::Scalar;
  using Device = typename Raw::Device;
  using Activation = typename Raw::Activation;
  using input = In;
  using output = typename YLayout::shape;

  ExpressionFrame(const Raw& raw, long first, long batch) : raw_(raw), first_(first), batch_(batch) {}

  /// The samples that come in: (batch, In).
  auto x() const {
    static_assert(detail::spec_of<L, In>.tokens == 0,
                  "this layer's input is tokens, as its describe() says, and no numbers: read f.tokens()");
    static_assert(!Backward || reads & Reads::x,
                  "this layer's backward reads x, and its describe() does not say so: .backward_reads = sk::Reads::x");
    return samples<XLayout>(raw_.x);
  }
  /// The input where it is tokens, (batch, T) of 32-bit integers, in backward too: for rows_of(table, f.tokens()) and
  /// sum_by_token(e, f.tokens()).
  auto tokens() const {
    static_assert(detail::spec_of<L, In>.tokens > 0,
                  "this layer's describe() does not say how many tokens there are: .tokens = N");
    return TokenView<Device, static_cast<long>(In::count)>{raw_.tokens + first_ * static_cast<long>(In::count), batch_};
  }
  /// In forward what is to be written, (batch, output); in backward the same, to be read.
  auto y() const {
    static_assert(!Backward || reads & Reads::y,
                  "this layer's backward reads y, and its describe() does not say so: .backward_reads = sk::Reads::y");
    if constexpr (Backward) return samples<YLayout>(static_cast<const Activation*>(raw_.y));
    else return target<YLayout, StaticNode>(raw_.y);
  }
  /// The gradient of y.
  auto dy() const {
    static_assert(Backward, "forward has no gradients: dy() is backward's");
    return samples<YLayout>(raw_.dy);
  }
  /// The gradient of x, to be written: all of it. Where nobody wants it, an assignment does nothing.
  auto dx() const {
    static_assert(Backward, "forward has no gradients: dx() is backward's");
    static_assert(detail::spec_of<L, In>.tokens == 0, "tokens have no gradient: a layer that takes them writes no dx");
    return target<XLayout, detail::WriteOnly>(raw_.dx);
  }
  template <class Name> auto parameter(Name) const {
    static_assert(detail::is_a_name<Name>, "a parameter of a layer is named by a literal with _p behind it: \"scale\"_p");
    static_assert(find<Name>() >= 0, "this layer has no parameter of this name: see its describe()");
    using P = At<Name>;
    return StaticView<const Scalar, Scalar, Device, typename P::Layout>(raw_.parameters + P::offset);
  }
  /// The gradient of a parameter: to be added to, f.gradient("w"_p) += sum_leading(e).
  template <class Name> auto gradient(Name) const {
    static_assert(Backward, "forward has no gradients: gradient() is backward's");
    static_assert(detail::is_a_name<Name>, "a parameter of a layer is named by a literal with _p behind it: \"scale\"_p");
    static_assert(find<Name>() >= 0, "this layer has no parameter of this name: see its describe()");
    using P = At<Name>;
    return detail::GradientToAdd<Scalar, Device, typename P::Layout>(raw_.gradients + P::offset, batch_, &added_,
                                                                     1u << find<Name>());
  }
  bool training() const { return raw_.context->training(); }
  /// The frame below, with pointers: for kernels. It has the samples from `first` on.
  const Raw& raw() const {
    added_ = ~0u;  // nobody sees what is added by pointers
    return raw_;
  }
  long first() const { return first_; }
  long batch() const { return batch_; }
  /// Throws ArgumentError, after the backward of a debug build, for a parameter to whose gradient nothing was added.
  void assert_gradients_added() const {
    constexpr ParameterList all = detail::spec_of<L, In>.parameters;
    for (int i = 0; i < all.count; ++i)
      if (!(added_ >> i & 1u)) detail::refuse_missing_gradient(detail::kind_of<L>(), all.list[i].name);
  }

 private:
  template <class Name> static constexpr int find() {
    if constexpr (detail::is_a_name<Name>) return detail::spec_of<L, In>.parameters.find(Name::name);
    else return 0;
  }
  template <class Name> using At = detail::ParameterAt<L, In, (find<Name>() < 0 ? 0 : find<Name>())>;
  template <class Layout> auto samples(const Activation* data) const {
    return StaticView<const Activation, Scalar, Device, Layout>(data + first_ * Layout::sample_stride, batch_);
  }
  template <class Layout, class Base> auto target(Activation* data) const {
    using Target = detail::SamplesToWrite<Activation, Scalar, Device, Layout, Base>;
    return Target(data ? data + first_ * Layout::sample_stride : nullptr, batch_);
  }
  const Raw& raw_;
  long first_, batch_;
  mutable unsigned added_ = 0;  ///< a bit for each parameter whose gradient was added to
};

/// The bodies of L, which are compiled where this is named.
template <class L, class In, class Raw>
void compile_bodies(ExpressionFrame<L, In, Raw, false>& forward, ExpressionFrame<L, In, Raw, true>& backward) {
  L::forward(forward);
  L::backward(backward);
}

template <class L> struct ExpressionLayer;
namespace detail {
template <class L> struct Named<ExpressionLayer<L>> { using type = L; };
}  // namespace detail

/// L as an ordinary layer.
template <class L> struct ExpressionLayer {
  /// 16-bit samples on a device: values are computed with as the parameters' type.
  template <class Device, class Activation> static constexpr bool computes_in = !std::same_as<Device, Cpu> && is_half<Activation>;

  static constexpr LayerInfo describe(Extents in) { return info_of<L>(in); }
  template <class In, class Frame> static void forward(Frame& f) {
    each_block<In, Frame, false>(f, [](auto& block) { L::forward(block); });
  }
  template <class In, class Frame> static void backward(Frame& f) {
    each_block<In, Frame, true>(f, [](auto& block) {
      L::backward(block);
      if constexpr (SKEIN_CHECKED) block.assert_gradients_added();
    });
  }
  /// Room for the sums of gradients.
  template <class In, class Frame> static void prepare(Frame&) {
    using Evaluator = skein::detail::StaticEvaluator<typename Frame::Device>;
    constexpr LayerSpec spec = detail::spec_of<L, In>;
    if constexpr (requires { Evaluator::reserve(1L); })
      for (int i = 0; i < spec.parameters.count; ++i) Evaluator::reserve(spec.parameters.list[i].extents.count());
  }
  template <class In, class Frame> static constexpr std::string_view kernel() { return "expressions"; }

 private:
  /// Samples of a block: about 24 KiB of x, y and their gradients.
  template <class In, class Scalar> static constexpr long block = [] {
    const long bytes =
        static_cast<long>(sizeof(Scalar)) * (sample_pitch(In::extents) + sample_pitch(describe(In::extents).output));
    const long n = 12 * 1024 / bytes;
    return n < 1 ? 1 : n;
  }();
  template <class In, class Frame, bool Backward, class Body> static void each_block(Frame& f, Body body) {
    const long most = on_host<typename Frame::Device> ? block<In, typename Frame::Scalar> : f.batch;
    for (long first = 0; first < f.batch; first += most) {
      ExpressionFrame<L, In, Frame, Backward> part(f, first, first + most < f.batch ? most : f.batch - first);
      body(part);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
