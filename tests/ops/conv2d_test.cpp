// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN against plain loops, with geometries at run time; the choice between the kernels.
#include <catch2/catch.hpp>

#include <skein/ops/conv2d.hpp>

#include "support/conv_cases.hpp"

using namespace skein;
using ops::Conv2dGeometry;
using support::apart;
using support::doubles;
using support::Guarded;
using support::scattered;

namespace {
template <Conv2dGeometry G, class Scalar> constexpr std::string_view kernel = ops::Conv2d<Cpu, Scalar, G>::name;
}

TEST_CASE("a convolution says which kernel runs it") {
  constexpr Conv2dGeometry few{14, 14, 6, 16, 5}, many{14, 14, 200, 600, 3, 1, 1}, grouped{14, 14, 6, 6, 3, 1, 1, 1, 3};
#if SKEIN_WITH_XSIMD
  CHECK(kernel<few, float> == "direct over the filters");
  CHECK(kernel<few, double> == "direct over the filters");
#else
  CHECK(kernel<few, double> == "reference");
#endif
  constexpr bool rows = SKEIN_WITH_XSIMD, onednn = SKEIN_WITH_ONEDNN;
#if SKEIN_WITH_ONEDNN
  CHECK(kernel<many, float> == "oneDNN");
  CHECK(kernel<grouped, float> == "oneDNN");
#else
  CHECK(kernel<many, float> == "reference");
#endif
  CHECK(kernel<many, double> == "reference");
  CHECK(kernel<grouped, double> == "reference");
  constexpr Conv2dGeometry pixels{14, 14, 64, 256, 1}, strided{14, 14, 64, 256, 1, 2}, sequence{1, 21, 16, 32, 1, 2, 0, 1, 1, 1},
      large{7, 7, 512, 2048, 1};
  CHECK(kernel<pixels, float> == (rows ? "rows" : onednn ? "oneDNN" : "reference"));
  CHECK(kernel<strided, float> == (rows ? "rows" : onednn ? "oneDNN" : "reference"));
  CHECK(kernel<sequence, double> == (rows ? "rows" : "reference"));
  CHECK(kernel<large, float> == (rows ? "rows" : onednn ? "oneDNN" : "reference"));
  constexpr Conv2dGeometry deep{14, 14, 256, 256, 3, 1, 1}, projection{14, 14, 1024, 2048, 1, 2};
#if SKEIN_WITH_XSIMD
  constexpr bool gathers = ops::cpu::accumulators <= 16;
  CHECK(kernel<deep, float> == (gathers || !onednn ? "gathered rows" : "oneDNN"));
  CHECK(kernel<projection, float> == "gathered rows");
  CHECK(kernel<projection, double> == "gathered rows");
  constexpr Conv2dGeometry windows{1, 64, 64, 64, 5, 1, 0, 1, 1, 1};  // of a sequence
  CHECK(kernel<windows, float> == (gathers || !onednn ? "gathered rows" : "oneDNN"));
  CHECK(kernel<windows, double> == "gathered rows");
#else
  CHECK(kernel<projection, double> == "reference");
#endif
}

namespace {
/// A kernel of the geometry, against plain loops in double.
template <class Scalar, class Kernel> void kernel_follows(Kernel&& conv, const Conv2dGeometry& g, long packed, long scratch,
                                                          std::initializer_list<long> batches, bool has_bias) {
  INFO(g.height << " x " << g.width << " x " << g.channels << " to " << g.filters << ", kernel " << g.kernel << ", stride "
                << g.stride << ", padding " << g.padding << ", dilation " << g.dilation << ", groups " << g.groups
                << (has_bias ? "" : ", no bias"));
  const double close = sizeof(Scalar) == 8 ? 1e-14 : 2e-6;
  const long rows = g.weight_rows(), pitch = g.weight_pitch();
  Guarded<Scalar> weight(rows * pitch), bias(pitch), packed_weights(packed), workspace(scratch);
  for (long i = 0; i < rows * pitch; ++i) weight[i] = i % pitch < g.filters ? static_cast<Scalar>(scattered(i, 3)) : 0;
  for (long i = 0; i < g.filters; ++i) bias[i] = static_cast<Scalar>(scattered(i, 4));
  for (const long batch : batches) {
    INFO("batch " << batch);
    Guarded<Scalar> x(batch * g.in_count()), y(batch * g.out_count()), dy(batch * g.out_count()), dx(batch * g.in_count());
    Guarded<Scalar> dweight(rows * pitch), dbias(pitch);
    for (long i = 0; i < x.size(); ++i) x[i] = static_cast<Scalar>(scattered(i, 1)), dx[i] = 7;
    for (long i = 0; i < dy.size(); ++i) dy[i] = static_cast<Scalar>(scattered(i, 2));
    dweight[0] = 1;  // added to
    ops::Conv2dCall<Scalar> c{.batch = batch,
                              .x = x.data(),
                              .weight = weight.data(),
                              .bias = has_bias ? bias.data() : nullptr,
                              .y = y.data(),
                              .dy = dy.data(),
                              .dx = dx.data(),
                              .dweight = dweight.data(),
                              .dbias = has_bias ? dbias.data() : nullptr,
                              .packed_weights = packed_weights.data(),
                              .workspace = workspace.data()};
    conv.prepare(batch);
    conv.pack_weights(c);
    conv.forward(c);
    conv.backward(c);

    auto x2 = doubles(x), w2 = doubles(weight), b2 = doubles(bias), dy2 = doubles(dy);
    std::vector<double> y2(dy2.size()), dx2(x2.size()), dw2(w2.size()), db2(b2.size());
    dw2[0] = 1;
    const ops::Conv2dCall<double> d{.batch = batch,
                                    .x = x2.data(),
                                    .weight = w2.data(),
                                    .bias = has_bias ? b2.data() : nullptr,
                                    .y = y2.data(),
                                    .dy = dy2.data(),
                                    .dx = dx2.data(),
                                    .dweight = dw2.data(),
                                    .dbias = has_bias ? db2.data() : nullptr};
    ops::reference::conv2d_forward(g, d);
    ops::reference::conv2d_backward_data(g, d);
    ops::reference::conv2d_backward_weights(g, d);
    CHECK(apart(doubles(y), y2) < close);
    CHECK(apart(doubles(dx), dx2) < close);
    // Rounding of a sum grows with its terms: here the pixels of all images. Gaps too: they stay zero.
    const double terms = static_cast<double>(batch * g.out_pixels());
    CHECK(apart(doubles(dweight), dw2) < close * std::max(1.0, terms / 4096));
    CHECK(apart(doubles(dbias), db2) < close);
    CHECK((x.intact() && y.intact() && dx.intact() && dweight.intact() && dbias.intact() && packed_weights.intact() &&
           workspace.intact()));
    c.dx = nullptr;
    dx.fill(5);
    conv.backward(c);
    CHECK(std::all_of(dx.begin(), dx.end(), [](Scalar v) { return v == 5; }));
    for (double& v : db2) v *= 2;
    CHECK(apart(doubles(dbias), db2) < close);
    c.dx = dx.data(), c.dweight = c.dbias = nullptr;  // of weights that are frozen
    conv.backward(c);
    CHECK(apart(doubles(dx), dx2) < close);
    CHECK((dx.intact() && workspace.intact()));
  }
}
/// The one that is chosen.
template <Conv2dGeometry G, class Scalar> void follows_plain_loops(std::initializer_list<long> batches, bool has_bias) {
  using Kernel = ops::Conv2d<Cpu, Scalar, G>;
  kernel_follows<Scalar>(Kernel{}, G, Kernel::packed_weights, Kernel::workspace, batches, has_bias);
}
}  // namespace

TEST_CASE("a convolution with a window of one pixel is the plain one, whatever its stride leaves out") {
  follows_plain_loops<Conv2dGeometry{9, 8, 16, 32, 1}, float>({0, 1, 3}, true);
  follows_plain_loops<Conv2dGeometry{30, 31, 64, 16, 1}, float>({2}, false);
  follows_plain_loops<Conv2dGeometry{5, 5, 512, 48, 1}, float>({3}, true);  // rows of 512 weights have a gap
  follows_plain_loops<Conv2dGeometry{5, 4, 32, 512, 1}, float>({3}, true);
  follows_plain_loops<Conv2dGeometry{8, 8, 16, 32, 1, 2}, float>({0, 3}, false);
  follows_plain_loops<Conv2dGeometry{9, 7, 48, 16, 1, 2}, float>({1, 2}, true);
  follows_plain_loops<Conv2dGeometry{10, 11, 16, 16, 1, 3}, float>({2}, true);
  follows_plain_loops<Conv2dGeometry{1, 21, 16, 32, 1, 2, 0, 1, 1, 1}, float>({2}, true);
  follows_plain_loops<Conv2dGeometry{1, 21, 16, 32, 1, 2, 0, 1, 1, 1}, double>({2}, true);
  follows_plain_loops<Conv2dGeometry{5, 7, 48, 144, 1}, float>({0, 1, 4}, true);  // panels of more than one width
  follows_plain_loops<Conv2dGeometry{5, 7, 48, 144, 1}, double>({3}, false);
  follows_plain_loops<Conv2dGeometry{6, 6, 32, 80, 1}, float>({2}, false);
}

TEST_CASE("a window of one pixel with more weights than the caches hold goes by blocks of rows and of channels") {
  follows_plain_loops<Conv2dGeometry{5, 7, 1040, 256, 1}, float>({0, 1, 16}, true);  // several blocks of both
  follows_plain_loops<Conv2dGeometry{5, 7, 256, 1040, 1}, float>({3}, false);
  follows_plain_loops<Conv2dGeometry{5, 7, 528, 256, 1}, double>({3}, true);
  follows_plain_loops<Conv2dGeometry{1, 33, 272, 512, 1, 1, 0, 1, 1, 1}, float>({2}, true);  // a sequence, a gap behind rows
}

#if SKEIN_WITH_XSIMD
namespace {
template <class Scalar> struct Gathered : ops::cpu::GatheredConv2d<Scalar> {
  using ops::cpu::GatheredConv2d<Scalar>::GatheredConv2d;
  void prepare(long) const {}
};
template <class Scalar> void gathered_follows(const Conv2dGeometry& g, std::initializer_list<long> batches, bool has_bias) {
  REQUIRE(ops::cpu::is_gathered(g));
  kernel_follows<Scalar>(Gathered<Scalar>(g), g, ops::cpu::gathered_packed_weights(g), ops::cpu::gathered_workspace(g), batches,
                         has_bias);
}
}  // namespace

TEST_CASE("a convolution of many channels is a product of gathered rows a row of its window") {
  gathered_follows<float>({14, 14, 128, 128, 3, 2, 1}, {0, 1, 3}, true);
  gathered_follows<float>({9, 26, 64, 272, 3, 1, 1}, {3}, true);  // a block ends within an image, and rows of weights have a gap
  gathered_follows<float>({25, 30, 80, 144, 3, 2, 1}, {4}, false);
  gathered_follows<float>({7, 7, 1040, 64, 1, 2, 0}, {1, 3}, true);
  gathered_follows<float>({8, 10, 64, 1040, 1, 3, 0}, {2}, true);  // rows and columns that no output sees
  gathered_follows<float>({11, 6, 64, 112, 5, 2, 2}, {2}, true);
  gathered_follows<float>({4, 3, 64, 64, 7, 2, 6}, {2}, true);  // some rows of the window see nothing but padding
  gathered_follows<float>({2, 2, 96, 96, 3, 1, 1}, {150}, false);
  gathered_follows<float>({1, 33, 64, 96, 3, 2, 1, 1, 1, 1}, {2}, true);  // a sequence
  gathered_follows<double>({9, 9, 112, 80, 3, 2, 1}, {3}, true);
  gathered_follows<double>({6, 5, 64, 272, 1, 2, 0}, {2}, false);
  gathered_follows<double>({6, 5, 96, 96, 3, 1, 4}, {2}, true);  // windows that see nothing but padding
}
#endif

TEST_CASE("a convolution of many weights is right whichever kernels share its passes") {
  follows_plain_loops<Conv2dGeometry{6, 7, 144, 272, 3, 1, 1}, float>({0, 1, 3}, true);  // rows of weights have a gap
  follows_plain_loops<Conv2dGeometry{9, 8, 160, 144, 3, 2, 1}, float>({2}, false);
  follows_plain_loops<Conv2dGeometry{9, 8, 80, 112, 3, 2, 1}, float>({3}, true);
  follows_plain_loops<Conv2dGeometry{6, 5, 64, 144, 5, 1, 2}, float>({2}, true);
}

TEST_CASE("a result that is larger than the caches is stored past them, and is the same") {
  follows_plain_loops<Conv2dGeometry{64, 64, 16, 256, 1}, float>({9}, true);  // y is 36 MiB, then dx
  follows_plain_loops<Conv2dGeometry{64, 64, 256, 16, 1}, float>({9}, true);
  follows_plain_loops<Conv2dGeometry{63, 64, 16, 80, 1}, double>({14}, true);

  constexpr Conv2dGeometry g{64, 64, 16, 256, 1};
  using Kernel = ops::Conv2d<Cpu, float, g>;
  constexpr long batch = 9;
  Guarded<float> x(batch * g.in_count()), weight(g.weight_rows() * g.weight_pitch()), packed(Kernel::packed_weights),
      workspace(Kernel::workspace), y(batch * g.out_count() + 1), aligned(batch * g.out_count());
  for (long i = 0; i < x.size(); ++i) x[i] = static_cast<float>(scattered(i, 1));
  for (long i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(scattered(i, 3));
  ops::Conv2dCall<float> c{.batch = batch, .x = x.data(), .weight = weight.data(), .y = y.data() + 1};
  c.packed_weights = packed.data();
  c.workspace = workspace.data();
  Kernel{}.prepare(batch);
  Kernel{}.pack_weights(c);
  Kernel{}.forward(c);  // memory that is not aligned to vectors
  c.y = aligned.data();
  Kernel{}.forward(c);
  CHECK(std::equal(aligned.begin(), aligned.end(), y.begin() + 1));
  CHECK(y.intact());
}

namespace {
/// Both scalar types; the first of them runs direct kernels wherever there are vectors.
template <Conv2dGeometry G> void direct_follows(std::initializer_list<long> batches) {
#if SKEIN_WITH_XSIMD
  CHECK(kernel<G, float> == "direct over the filters");
#endif
  follows_plain_loops<G, float>(batches, false);
  follows_plain_loops<G, double>(batches, true);
}
}  // namespace

// height, width, channels, filters, kernel, stride, padding
TEST_CASE("direct convolutions that skip the padding are the plain ones") {
  direct_follows<Conv2dGeometry{32, 32, 16, 16, 3, 1, 1}>({0, 2});
  direct_follows<Conv2dGeometry{9, 26, 64, 64, 3, 1, 1}>({1, 3});
  direct_follows<Conv2dGeometry{13, 25, 16, 48, 5, 1, 2}>({2});
  direct_follows<Conv2dGeometry{12, 12, 20, 24, 3, 1, 2}>({2});
  direct_follows<Conv2dGeometry{9, 10, 3, 16, 3, 1, 1}>({3});
  direct_follows<Conv2dGeometry{3, 14, 16, 64, 7, 1, 6}>({2});  // at both ends of a row several pixels see the padding
  direct_follows<Conv2dGeometry{2, 2, 16, 16, 3, 1, 1}>({2});
  direct_follows<Conv2dGeometry{1, 1, 16, 16, 5, 1, 2}>({2});
}
TEST_CASE("the gradient of a stride's input is one convolution a phase") {
  direct_follows<Conv2dGeometry{32, 32, 16, 32, 3, 2, 1}>({0, 2});
  direct_follows<Conv2dGeometry{16, 15, 32, 64, 3, 2, 1}>({2});
  direct_follows<Conv2dGeometry{11, 53, 64, 64, 5, 2, 2}>({2});
  direct_follows<Conv2dGeometry{13, 14, 48, 16, 2, 2, 0}>({1, 3});  // the last row is never seen
  direct_follows<Conv2dGeometry{8, 9, 32, 16, 1, 2, 0}>({2});
  direct_follows<Conv2dGeometry{5, 60, 64, 64, 7, 2, 6}>({2});
  direct_follows<Conv2dGeometry{4, 3, 16, 16, 7, 2, 6}>({2});
  direct_follows<Conv2dGeometry{1, 2, 16, 16, 3, 2, 1}>({2});
}

#if SKEIN_WITH_ONEDNN
namespace {
void onednn_follows(const Conv2dGeometry& g, std::initializer_list<long> batches, bool has_bias) {
  kernel_follows<float>(ops::cpu::OneDnnConv2d(g), g, ops::cpu::onednn_packed_weights(g), ops::cpu::onednn_workspace(g), batches,
                        has_bias);
}
}  // namespace

TEST_CASE("there is room for the weights in the layouts that oneDNN likes") {
  for (const int kernel : {1, 3})
    for (const int channels : {3, 16, 64, 80, 512, 2048})
      for (const int filters : {10, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 512, 1000, 1024, 2048})
        for (const int side : {1, 4, 7, 14, 56}) {
          if (kernel == 3 && channels * filters > 512 * 512) continue;
          CAPTURE(kernel, channels, filters, side);
          CHECK(ops::cpu::OneDnnConv2d({side, side, channels, filters, kernel, 1, kernel / 2}).accepted());
        }
  CHECK(ops::cpu::OneDnnConv2d({14, 14, 64, 64, 3, 1, 1, 1, 64}).accepted());
  CHECK(ops::cpu::OneDnnConv2d({14, 14, 64, 128, 3, 1, 1, 1, 2}).accepted());
}

TEST_CASE("oneDNN's convolution is the plain one") {
  onednn_follows({9, 8, 3, 16, 3, 1, 1}, {0, 1, 3}, true);
  onednn_follows({8, 7, 16, 32, 3, 2, 1}, {2}, false);
  onednn_follows({6, 6, 40, 130, 3, 1, 1}, {1, 2}, true);
  onednn_follows({5, 5, 64, 64, 1, 1, 0}, {3}, false);
  onednn_follows({11, 12, 5, 7, 4, 3, 2}, {2}, true);
  onednn_follows({12, 12, 6, 10, 3, 1, 4, 3}, {2}, true);
  onednn_follows({13, 10, 1, 6, 5, 1, 2}, {2}, true);
  onednn_follows({8, 8, 6, 9, 3, 1, 1, 1, 3}, {2}, true);
  onednn_follows({8, 8, 32, 32, 3, 1, 1, 1, 2}, {2}, true);
  onednn_follows({9, 9, 20, 20, 3, 2, 1, 1, 20}, {2}, true);
  onednn_follows({15, 15, 3, 8, 11, 4, 2}, {2}, true);
}

TEST_CASE("few pixels under many weights are copied to the layout that oneDNN likes, sixteen images at a time") {
  constexpr Conv2dGeometry few{1, 2, 512, 512, 3, 1, 1};
  static_assert(ops::cpu::onednn_copies_images(few) && ops::cpu::onednn_copies_images({7, 7, 512, 512, 3, 1, 1}));
  static_assert(!ops::cpu::onednn_copies_images({14, 14, 512, 512, 3, 1, 1}) &&
                !ops::cpu::onednn_copies_images({7, 7, 256, 256, 3, 1, 1}));
  onednn_follows(few, {0, 1, 19, 32}, true);
}
#endif
