// SPDX-License-Identifier: Apache-2.0
// Every layer with options refuses those that it does not know, and one that is given twice, by value.
#include <catch2/catch.hpp>
#include <skein/nn/avg_pool2d.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/conv_transpose2d.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/options.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/repeat.hpp>
#include <skein/nn/rms_norm.hpp>
#include <skein/nn/upsample.hpp>
#include <skein/nn/zero_pad2d.hpp>

namespace sk = skein;
namespace nn = sk::nn;
using namespace sk;  // the tags of options
using nn::Fault;

namespace {
template <class L> constexpr Fault fault(Extents in) { return nn::analyze<L>(in).fault; }
template <class L> constexpr Fault of_flat = fault<L>({1, {8}});
template <class L> constexpr Fault of_sequence = fault<L>({2, {6, 4}});
template <class L> constexpr Fault of_image = fault<L>({3, {8, 8, 4}});
template <class L> constexpr Fault of_volume = fault<L>({4, {8, 8, 8, 4}});

struct Strange {};             // an option of no layer
template <int> struct Odd {};  // likewise, with a value

// ---- unknown: another layer, an option of other layers, a type of the user's
static_assert(of_flat<nn::Linear<16, nn::Relu>> == Fault::option_unknown);
static_assert(of_flat<nn::Linear<16, NoBias, Odd<3>>> == Fault::option_unknown);
static_assert(of_image<nn::Conv2d<4, Kernel<3>, nn::Relu>> == Fault::option_unknown);
static_assert(of_image<nn::Conv2d<4, Kernel<3>, OutputPadding<1>>> == Fault::option_unknown);
static_assert(of_sequence<nn::Conv1d<4, Kernel<3>, Strange>> == Fault::option_unknown);
static_assert(of_volume<nn::Conv3d<4, Kernel<3>, Strange>> == Fault::option_unknown);
static_assert(of_image<nn::ConvTranspose2d<4, Kernel<3>, Strange>> == Fault::option_unknown);
static_assert(of_image<nn::MaxPool2d<2, Kernel<3>>> == Fault::option_unknown);
static_assert(of_image<nn::AvgPool2d<2, Strange>> == Fault::option_unknown);
static_assert(of_image<nn::ZeroPad2d<1, Padding<1>>> == Fault::option_unknown);
static_assert(of_image<nn::Upsample<2, int>> == Fault::option_unknown);
static_assert(of_flat<nn::BatchNorm<Rate<1, 10>>> == Fault::option_unknown);
static_assert(of_flat<nn::LayerNorm<Momentum<1, 10>>> == Fault::option_unknown);
static_assert(of_flat<nn::GroupNorm<2, Momentum<1, 10>>> == Fault::option_unknown);
static_assert(of_flat<nn::RmsNorm<Momentum<1, 10>>> == Fault::option_unknown);
static_assert(of_flat<nn::Dropout<Slope<1, 10>>> == Fault::option_unknown);
static_assert(of_flat<nn::LeakyRelu<Rate<1, 10>>> == Fault::option_unknown);
static_assert(of_flat<nn::BasicGelu<Strange>> == Fault::option_unknown);
static_assert(of_sequence<nn::Rnn<8, NoBias>> == Fault::option_unknown);
static_assert(of_sequence<nn::Lstm<8, LastState, NoBias>> == Fault::option_unknown);
static_assert(of_sequence<nn::Gru<8, nn::Relu>> == Fault::option_unknown);
static_assert(of_sequence<nn::EachPosition<nn::Linear<8, nn::Relu>>> == Fault::option_unknown);

// ---- twice, with one value or two
static_assert(of_flat<nn::Linear<16, NoBias, NoBias>> == Fault::option_twice);
static_assert(of_flat<nn::Linear<16, WeightInit<Init::zeros>, NoBias, WeightInit<Init::ones>>> == Fault::option_twice);
static_assert(of_image<nn::Conv2d<4, Kernel<3>, Kernel<5>>> == Fault::option_twice);
static_assert(of_sequence<nn::Conv1d<4, Kernel<3>, Groups<2>, Groups<2>>> == Fault::option_twice);
static_assert(of_volume<nn::Conv3d<4, Stride<1>, Kernel<3>, Stride<2>>> == Fault::option_twice);
static_assert(of_image<nn::ConvTranspose2d<4, Kernel<3>, Dilation<1>, Dilation<1>>> == Fault::option_twice);
static_assert(of_image<nn::MaxPool2d<2, Stride<1>, Padding<0>, Stride<2>>> == Fault::option_twice);
static_assert(of_image<nn::AvgPool2d<2, Padding<1>, Padding<1>>> == Fault::option_twice);
static_assert(of_image<nn::ZeroPad2d<1, ZeroChannels<1, 2>, ZeroChannels<2, 1>>> == Fault::option_twice);
static_assert(of_image<nn::Upsample<2, nn::Identity, Bilinear>> == Fault::option_unknown, "the first fault");
static_assert(of_image<nn::Upsample<2, Nearest, Bilinear>> == Fault::option_twice, "they exclude each other");
static_assert(of_flat<nn::BatchNorm<Epsilon<1, 10>, Momentum<1, 2>, Epsilon<1, 9>>> == Fault::option_twice);
static_assert(of_flat<nn::LayerNorm<Epsilon<1, 10>, Epsilon<1, 10>>> == Fault::option_twice);
static_assert(of_flat<nn::GroupNorm<2, Epsilon<1, 10>, Epsilon<1, 9>>> == Fault::option_twice);
static_assert(of_flat<nn::RmsNorm<Epsilon<1, 10>, Epsilon<1, 9>>> == Fault::option_twice);
static_assert(of_flat<nn::Dropout<Rate<1, 10>, Rate<1, 5>>> == Fault::option_twice);
static_assert(of_flat<nn::LeakyRelu<Slope<1, 10>, Slope<1, 5>>> == Fault::option_twice);
static_assert(of_flat<nn::BasicGelu<nn::TanhForm, nn::TanhForm>> == Fault::option_twice);
static_assert(of_sequence<nn::Rnn<8, LastState, LastState>> == Fault::option_twice);
static_assert(of_sequence<nn::Lstm<8, Reversed, LastState, Reversed>> == Fault::option_twice);
static_assert(of_sequence<nn::Gru<8, Stateful, Stateful>> == Fault::option_twice);

// ---- missing, and values that none can have
static_assert(of_image<nn::Conv2d<4>> == Fault::option_missing && of_image<nn::Conv2d<4, Padding<1>>> == Fault::option_missing);
static_assert(of_sequence<nn::Conv1d<4>> == Fault::option_missing && of_volume<nn::Conv3d<4>> == Fault::option_missing);
static_assert(of_image<nn::ConvTranspose2d<4, Stride<2>>> == Fault::option_missing);
static_assert(of_image<nn::Conv2d<4, Kernel<0>>> == Fault::option_out_of_range);
static_assert(of_image<nn::Conv2d<4, Kernel<3>, Groups<0>>> == Fault::option_out_of_range);
static_assert(of_image<nn::Conv2d<4, Kernel<3>, Dilation<-1>>> == Fault::option_out_of_range);
static_assert(of_image<nn::MaxPool2d<2, Stride<0>>> == Fault::option_out_of_range);
static_assert(of_image<nn::ZeroPad2d<1, ZeroChannels<0, -1>>> == Fault::option_out_of_range);
static_assert(of_image<nn::ConvTranspose2d<4, Kernel<3>, OutputPadding<-1>>> == Fault::option_out_of_range);
static_assert(of_flat<nn::Dropout<Rate<1, 0>>> == Fault::option_out_of_range);
static_assert(of_flat<nn::Dropout<Rate<-1, 2>>> == Fault::option_out_of_range);
static_assert(of_flat<nn::BatchNorm<Epsilon<0, 1>>> == Fault::option_out_of_range);
static_assert(of_flat<nn::RmsNorm<Epsilon<0, 0>>> == Fault::option_out_of_range, "also where it stands for the default");
static_assert(of_flat<nn::LeakyRelu<Slope<1, 0>>> == Fault::option_out_of_range);

// ---- what layers know, in any order
static_assert(of_image<nn::Conv2d<4, NoBias, Groups<2>, BiasInit<Init::ones>, Dilation<1>, WeightInit<Init::zeros>, Padding<1>,
                                  Stride<2>, Kernel<3>>> == Fault::none);
static_assert(of_flat<nn::Dropout<Rate<-1, -2>>> == Fault::none && nn::Dropout<Rate<-1, -2>>::rate == 0.5);
static_assert(of_image<nn::Upsample<2>> == Fault::none && of_image<nn::Upsample<2, Nearest>> == Fault::none);
static_assert(nn::MaxPool2d<3>::stride == 3 && nn::MaxPool2d<3, Padding<1>>::stride == 3);
static_assert(nn::ZeroPad2d<1, ZeroChannels<2, 5>>::after == 5 && nn::ZeroPad2d<1>::before == 0);
static_assert(nn::BatchNorm<Momentum<1, 4>>::momentum == 0.25 && nn::BatchNorm<Momentum<1, 4>>::epsilon == 1e-5);

// ---- found in every container
struct in;
struct out;
using Wrong = nn::Linear<8, nn::Relu>;
static_assert(of_flat<nn::Sequential<nn::Relu, Wrong>> == Fault::option_unknown);
static_assert(of_flat<nn::Residual<nn::Relu, Wrong>> == Fault::option_unknown);
static_assert(of_flat<nn::Concat<nn::Relu, Wrong>> == Fault::option_unknown);
static_assert(of_flat<nn::Repeat<2, Wrong>> == Fault::option_unknown);
static_assert(of_flat<nn::Recompute<Wrong>> == Fault::option_unknown);
static_assert(of_flat<nn::Graph<nn::Input<in>, nn::Apply<Wrong, nn::From<in>, nn::To<out>>, nn::Output<out>>> ==
              Fault::option_unknown);

// ---- layers of a program's own
struct Twice {};
template <class... Options> struct Shifted {
  using options = nn::detail::LayerOptions<List<Twice, Padding<3>>, Options...>;
  static constexpr LayerSpec describe(Edge in) { return {.output = in}; }
  static void forward(auto& f) {
    f.y() = f.x() * (nn::detail::has_option<Twice>(options{}) ? 2 : 1) + nn::detail::option<Padding>(options{});
  }
  static void backward(auto& f) { f.dx() = f.dy(); }
};
static_assert(of_flat<Shifted<Twice, Padding<1>>> == Fault::none && of_flat<Shifted<>> == Fault::none);
static_assert(of_flat<Shifted<Twice, Kernel<1>>> == Fault::option_unknown);
struct WithTable {  // the name alone binds nobody
  using options = int;
  static constexpr LayerSpec describe(Edge in) { return {.output = in}; }
  static void forward(auto& f) { f.y() = f.x(); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};
static_assert(of_flat<WithTable> == Fault::none);
}  // namespace

TEST_CASE("options of layers are known, given once and in range, or the first that is not is a fault of its network") {
  using Options = nn::Conv2d<4, Kernel<3>, Padding<1>, NoBias, Padding<2>>::options;
  STATIC_REQUIRE(Options::first.fault == Fault::option_twice);
  STATIC_REQUIRE(Options::first.at == 3);
  STATIC_REQUIRE(nn::Conv2d<4, Padding<1>>::options::first.at == 0);  // Kernel is the first that it knows
}

TEST_CASE("the hash of a layer's options is that of their values, given or not") {
  constexpr auto hash = []<class Layer>(Layer) { return Layer::options::hash(); };
  STATIC_REQUIRE(hash(nn::Dropout<>{}) == hash(nn::Dropout<Rate<1, 2>>{}));
  STATIC_REQUIRE(hash(nn::Dropout<>{}) != hash(nn::Dropout<Rate<1, 4>>{}));
  STATIC_REQUIRE(hash(nn::Upsample<2>{}) == hash(nn::Upsample<2, Nearest>{}));
  STATIC_REQUIRE(hash(nn::Upsample<2>{}) != hash(nn::Upsample<2, Bilinear>{}));
  STATIC_REQUIRE(hash(nn::LeakyRelu<>{}) != hash(nn::LeakyRelu<Slope<1, 5>>{}));
  STATIC_REQUIRE(hash(nn::Conv2d<8, Kernel<3>>{}) != hash(nn::Conv2d<8, Kernel<3>, NoBias>{}));
}
