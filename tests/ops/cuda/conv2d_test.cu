// SPDX-License-Identifier: Apache-2.0
// Convolution on Cuda below the layer: 16-bit images, plans, workspaces, capture, refusals. What layers do is in tests/nn/cuda.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <skein/core/half.hpp>
#include <skein/device/cuda/memory.hpp>
#include <skein/ops/cuda/conv2d.hpp>

#include "support/on_device.hpp"

namespace sk = skein;
namespace ops = skein::ops;
using ops::Conv2dGeometry;

namespace {

using support::OnDevice;

/// Eighths in [-1, 1]: exact in every type.
double eighths(long i, long salt) { return static_cast<double>((i * 7 + salt * 5 + i / 3) % 17 - 8) / 8; }
template <class T> std::vector<T> values(long n, long salt) {
  std::vector<T> v;
  for (long i = 0; i < n; ++i) v.push_back(static_cast<T>(eighths(i, salt)));
  return v;
}
template <class T> std::vector<T> rows(long n, long logical, long pitch, long salt) {
  std::vector<T> v(static_cast<std::size_t>(n * pitch), T(0));
  for (long r = 0; r < n; ++r)
    for (long c = 0; c < logical; ++c)
      v[static_cast<std::size_t>(r * pitch + c)] = static_cast<T>(eighths(r * logical + c, salt));
  return v;
}
template <class T> double apart(const std::vector<T>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(d) ? 1e300 : std::max(worst, d);
    largest = std::max(largest, std::abs(b[i]));
  }
  return worst / largest;
}

/// Images in Value, weights in float; beside plain loops in double.
template <class Value, class Parameter>
void follows(const Conv2dGeometry& g, long batch, bool bias, bool has_relu, double tolerance) {
  INFO("batch " << batch << (bias ? ", bias" : "") << (has_relu ? ", ReLU" : ""));
  const long pitch = g.weight_pitch();
  OnDevice<Value> x(values<Value>(batch * g.in_count(), 1)), dy(values<Value>(batch * g.out_count(), 2)),
      y(values<Value>(batch * g.out_count(), 9)), dx(values<Value>(batch * g.in_count(), 9)),
      packed_weights(values<Value>(ops::conv2d_device_packed_weights(g), 9));
  OnDevice<Parameter> weight(rows<Parameter>(g.weight_rows(), g.filters, pitch, 3)), b(rows<Parameter>(1, g.filters, pitch, 4)),
      dweight(rows<Parameter>(g.weight_rows(), g.filters, pitch, 5)), db(rows<Parameter>(1, g.filters, pitch, 6));
  ops::DeviceConv2dCall<Value, Parameter> c{
      batch,     x.data(),  weight.data(),  bias ? b.data() : nullptr,  y.data(),
      dy.data(), dx.data(), dweight.data(), bias ? db.data() : nullptr, packed_weights.data()};
  c.has_relu = has_relu;
  using Op = ops::DeviceConv2d<Value, Parameter>;
  Op::prepare(g, batch, bias, has_relu, c.math);
  sk::cuda::workspace().seal();  // from here nothing grows
  Op::pack_weights(g, c);
  Op::forward(g, c);
  Op::backward(g, c);
  sk::cuda::workspace().seal(false);

  std::vector<double> x2 = values<double>(batch * g.in_count(), 1), dy2 = values<double>(batch * g.out_count(), 2),
                      y2(dy2.size()), dx2(x2.size());
  std::vector<double> w2 = rows<double>(g.weight_rows(), g.filters, pitch, 3), b2 = rows<double>(1, g.filters, pitch, 4),
                      dw2 = rows<double>(g.weight_rows(), g.filters, pitch, 5), db2 = rows<double>(1, g.filters, pitch, 6);
  const ops::Conv2dCall<double> d{.batch = batch,
                                  .x = x2.data(),
                                  .weight = w2.data(),
                                  .bias = bias ? b2.data() : nullptr,
                                  .y = y2.data(),
                                  .dy = dy2.data(),
                                  .dx = dx2.data(),
                                  .dweight = dw2.data(),
                                  .dbias = bias ? db2.data() : nullptr};
  ops::reference::conv2d_forward(g, d);
  if (has_relu)
    for (std::size_t i = 0; i < y2.size(); ++i)
      if (y2[i] <= 0) y2[i] = dy2[i] = 0;
  ops::reference::conv2d_backward_data(g, d);
  ops::reference::conv2d_backward_weights(g, d);
  CHECK(apart(y.values(), y2) <= tolerance);
  CHECK(apart(dx.values(), dx2) <= tolerance);
  CHECK(apart(dweight.values(), dw2) <= tolerance);  // gaps too: they stay zero
  if (bias) CHECK(apart(db.values(), db2) <= tolerance);
}
}  // namespace

TEST_CASE("convolution on Cuda in every type, with bias and ReLU, within the prepared workspace", "[cuda]") {
  for (const Conv2dGeometry& g :
       {Conv2dGeometry{9, 8, 3, 16, 3, 1, 1}, Conv2dGeometry{7, 6, 8, 5, 3, 2, 0, 1, 1},
        Conv2dGeometry{6, 7, 6, 9, 3, 1, 2, 2, 3}, Conv2dGeometry{5, 4, 7, 33, 1}, Conv2dGeometry{9, 8, 12, 16, 3, 1, 1}})
    for (const bool bias : {false, true})
      for (const bool has_relu : {false, true}) {
        follows<float, float>(g, 3, bias, has_relu, 1e-5);
        follows<double, double>(g, 2, bias, has_relu, 1e-14);
        follows<sk::bf16, float>(g, 3, bias, has_relu, 5e-3);
        follows<sk::fp16, float>(g, 1, bias, has_relu, 7e-4);
      }
}

TEST_CASE("convolutions of few channels on Cuda follow plain loops, by own kernels and by their plain twins", "[cuda]") {
  for (const Conv2dGeometry& g :
       {Conv2dGeometry{28, 28, 1, 6, 5, 1, 2}, Conv2dGeometry{14, 14, 6, 16, 5}, Conv2dGeometry{9, 11, 8, 32, 3, 1, 1},
        Conv2dGeometry{6, 5, 8, 27, 5, 1, 4}, Conv2dGeometry{1, 40, 3, 9, 7, 1, 3, 1, 1, 1}, Conv2dGeometry{3, 3, 2, 1, 1}}) {
    INFO(g.height << " x " << g.width << " x " << g.channels << ", " << g.filters << " filters, kernel " << g.kernel);
    REQUIRE(ops::DeviceConv2d<float, float>::few_channels(g));
    REQUIRE_FALSE(ops::DeviceConv2d<double, double>::few_channels(g));
    for (const bool plain : {false, true}) {
      const sk::cuda::PlainKernels kernels(plain);
      follows<float, float>(g, 3, true, true, 1e-5);
      follows<float, float>(g, 1, false, false, 1e-5);
      follows<sk::bf16, float>(g, 2, true, false, 5e-3);
      follows<sk::fp16, float>(g, 2, false, true, 7e-4);
    }
  }
  follows<float, float>({4, 4, 1, 3, 3}, 600, true, true, 1e-5);  // more images than blocks
  using Op = ops::DeviceConv2d<float, float>;
  CHECK_FALSE(Op::few_channels({28, 28, 1, 6, 5, 2, 2}));        // a stride
  CHECK_FALSE(Op::few_channels({28, 28, 4, 8, 5, 1, 2, 1, 4}));  // groups
  CHECK_FALSE(Op::few_channels({224, 224, 3, 64, 7, 1, 3}));     // an image that does not fit
  CHECK_FALSE(Op::few_channels({14, 14, 16, 16, 3, 1, 1}));
  CHECK_FALSE(Op::few_channels({6, 5, 8, 27, 6, 1, 3}));  // more taps than a block's threads keep
  CHECK_FALSE(Op::few_channels({1, 1, 1, 6, 3}));         // a window that does not fit
}

namespace {
template <Conv2dGeometry g> void in_chunks() {
  const long pitch = g.weight_pitch();
  OnDevice<float> x(values<float>(4 * g.in_count(), 1)), y(values<float>(4 * g.out_count(), 9)),
      weight(rows<float>(g.weight_rows(), g.filters, pitch, 3)), bias(rows<float>(1, g.filters, pitch, 4)),
      packed_weights(values<float>(ops::conv2d_device_packed_weights(g), 9));
  using Face = ops::Conv2d<sk::Cuda, float, g>;
  STATIC_REQUIRE(Face::packed_weights == ops::conv2d_device_packed_weights(g));
  STATIC_REQUIRE(Face::workspace == 0);
  CHECK(Face::name == (g.channels > 8 ? "cuDNN" : "own kernels of few channels"));
  ops::Conv2dCall<float> c;
  c.batch = 4, c.x = x.data(), c.weight = weight.data(), c.bias = bias.data(), c.y = y.data(),
  c.packed_weights = packed_weights.data();
  Face::prepare(4);
  Face::pack_weights(c);
  Face::forward(c);
  const auto whole = y.values();
  OnDevice<float> again(values<float>(4 * g.out_count(), 9));
  for (long n = 0; n < 4; n += n == 0 ? 1 : 3) {
    c.batch = n == 0 ? 1 : 3;
    c.x = x.data() + n * g.in_count();
    c.y = again.data() + n * g.out_count();
    Face::forward(c);
  }
  const std::vector<float> parts = again.values();  // a GPU may take another algorithm for another batch: not the same bits
  CHECK(apart(parts, {whole.begin(), whole.end()}) < 1e-5);
}
}  // namespace

TEST_CASE("convolution on Cuda takes other chunks of a batch without a plan made before, aligned to 16 bytes or not", "[cuda]") {
  in_chunks<Conv2dGeometry{6, 6, 4, 8, 3, 1, 1}>();
  in_chunks<Conv2dGeometry{6, 6, 12, 8, 3, 1, 1}>();
  in_chunks<Conv2dGeometry{5, 5, 1, 3, 3, 1, 1}>();
}

TEST_CASE("a workspace that was not prepared is refused with its size once the plan is sealed", "[cuda]") {
  const Conv2dGeometry g{40, 40, 16, 64, 5, 1, 2};
  OnDevice<float> x(values<float>(2 * g.in_count(), 1)), dy(values<float>(2 * g.out_count(), 2)),
      y(values<float>(2 * g.out_count(), 2)), weight(rows<float>(g.weight_rows(), 64, g.weight_pitch(), 3)),
      dweight(rows<float>(g.weight_rows(), 64, g.weight_pitch(), 3)),
      packed_weights(values<float>(ops::conv2d_device_packed_weights(g), 9));
  ops::DeviceConv2dCall<float, float> c{2, x.data(), weight.data(), nullptr, y.data(), dy.data(), nullptr, dweight.data()};
  c.packed_weights = packed_weights.data();
  c.has_relu = true;
  std::string said;  // of a thread of its own: the workspace of this one has grown by what ran before
  std::thread([&] {
    sk::cuda::workspace().seal();
    try {
      ops::DeviceConv2d<float, float>::backward(g, c);
    } catch (const sk::DeviceError& e) { said = e.what(); }
  }).join();
  CHECK_THAT(said, Catch::Contains("the plan has 0: its prepare() must say what it takes"));
}

TEST_CASE("images beyond 2^31 values are plain loops', since cuDNN's descriptors do not count so far", "[cuda]") {
  const Conv2dGeometry g{256, 256, 64, 64, 3, 1, 1};
  ops::cudnn::Convolution whole(g, 512, CUDNN_DATA_BFLOAT16, ops::cudnn::MathMode::full);
  CHECK_FALSE((whole.has_forward() || whole.has_input_gradient() || whole.has_filter_gradient()));
  CHECK(whole.fused(true, true) == nullptr);
  CHECK(whole.forward_workspace() + whole.input_gradient_workspace() + whole.filter_gradient_workspace() == 0);
  ops::cudnn::Convolution beyond(g, 1L << 33, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full);
  CHECK_FALSE(beyond.has_forward());
}

TEST_CASE("what cuDNN refuses is said with the shapes", "[cuda]") {
  const Conv2dGeometry g{4, 4, 3, 8, 3};
  CHECK_THROWS_WITH(ops::cudnn::Convolution(g, -2, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full),
                    Catch::Contains("cudnnSetTensor4dDescriptor of -2 x 4 x 4 x 3 to 2 x 2 x 8, kernel 3, stride 1, padding 0") &&
                        Catch::Contains("on Cuda 0") && Catch::Contains("CUDNN_STATUS_BAD_PARAM"));
}

namespace {
struct LimitScope {
  std::size_t before = ops::cudnn::workspace_limit();
  explicit LimitScope(std::size_t bytes) { ops::cudnn::set_workspace_limit(bytes); }
  ~LimitScope() { ops::cudnn::set_workspace_limit(before); }
};
bool said(const std::vector<std::string>& lines, const std::string& a, const std::string& b) {
  for (const std::string& l : lines)
    if (l.find(a) != l.npos && l.find(b) != l.npos) return true;
  return false;
}
}  // namespace

TEST_CASE("algorithms are deterministic, plans are kept, and TF32 is asked for", "[cuda]") {
  const Conv2dGeometry g{8, 8, 8, 8, 3, 1, 1};
  ops::cudnn::Convolution& full = ops::cudnn::convolution(g, 4, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full);
  CHECK(&ops::cudnn::convolution(g, 4, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full) == &full);
  CHECK(&ops::cudnn::convolution(g, 4, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::tf32) != &full);
  CHECK(&ops::cudnn::convolution(g, 3, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full) != &full);
  CHECK(full.fused(true, true) == full.fused(true, true));
}

TEST_CASE("a direction has an algorithm or is a detour, which is said", "[cuda]") {
  const Conv2dGeometry g{8, 8, 16, 8, 3, 1, 1};
  const ops::cudnn::Convolution own(g, 4, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full);
  const std::string name = "cuDNN's convolution of 4 x 8 x 8 x 16 to 8 x 8 x 8";
  const std::pair<const char*, bool> directions[] = {{", forward:", own.has_forward()},
                                                     {", gradient of the input:", own.has_input_gradient()},
                                                     {", gradient of the filters:", own.has_filter_gradient()}};
  for (const auto& [direction, has] : directions) {
    INFO(direction);
    CHECK(said(sk::cuda::choices().notes(), name, std::string(direction) + " algorithm") == has);
    CHECK(said(sk::cuda::choices().detours(), name, std::string(direction) + " no deterministic algorithm") == !has);
  }
#if defined(SKEIN_CUDA_ON_HOST)
  CHECK((own.has_forward() && own.has_input_gradient() && own.has_filter_gradient()));
#endif
}

TEST_CASE("of the algorithms the first within the limit of workspace runs, or the one that wants least", "[cuda]") {
  CHECK(ops::cudnn::first_within({0}, 0) == 0);
  CHECK(ops::cudnn::first_within({900, 20, 10}, 100) == 1);
  CHECK(ops::cudnn::first_within({900, 20, 10}, 1000) == 0);
  CHECK(ops::cudnn::first_within({900, 300, 400}, 100) == 1);
  const LimitScope nothing(0);
  const ops::cudnn::Convolution own({8, 8, 12, 8, 3, 1, 1}, 5, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full);
  const auto& notes = sk::cuda::choices().notes();
  const std::string name = "cuDNN's convolution of 5 x 8 x 8 x 12 to 8 x 8 x 8";
  if (own.filter_gradient_workspace() > 0) CHECK(said(notes, name, "more than the limit: no other wants less"));
}

TEST_CASE("what cuDNN has no algorithm or engine for is a detour, with its name", "[cuda]") {
  const LimitScope nothing(0);
  const Conv2dGeometry g{8, 8, 20, 8, 3, 1, 1};
  ops::cudnn::Convolution own(g, 5, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full);
  const std::string name = "cuDNN's convolution of 5 x 8 x 8 x 20 to 8 x 8 x 8";
  const bool fused = own.fused(true, true);
  CHECK(said(sk::cuda::choices().notes(), name, "with bias and ReLU: one kernel") == fused);
  CHECK(said(sk::cuda::choices().detours(), name, "with bias and ReLU: no engine takes it") != fused);
  CHECK(!ops::cudnn::FusedConvolution::find(g, 5, CUDNN_DATA_INT8, ops::cudnn::MathMode::full, true, true));
  const Conv2dGeometry large{256, 256, 64, 64, 3, 1, 1};
  ops::cudnn::Convolution whole(large, 600, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::full);
  CHECK(said(sk::cuda::choices().detours(), "600 x 256 x 256 x 64", "plain loops run"));
}

TEST_CASE("an engine that says that it passes NaNs on goes before others where there is a ReLU", "[cuda]") {
  using ops::cudnn::Fit;
  using Notes = std::vector<cudnnBackendNumericalNote_t>;
  const auto judged = [](const Notes& notes, cudnnDataType_t type = CUDNN_DATA_FLOAT,
                         ops::cudnn::MathMode math = ops::cudnn::MathMode::full) { return ops::cudnn::judge(notes, type, math); };
  CHECK(judged({}) == Fit::loose);
  CHECK(judged({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, CUDNN_DATA_HALF) == Fit::no);
  CHECK(judged({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}) == Fit::no);
  CHECK(judged({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::tf32) == Fit::loose);
  CHECK(judged({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, CUDNN_DATA_FLOAT, ops::cudnn::MathMode::tf32) == Fit::no);
#if CUDNN_VERSION >= 91900
  CHECK(judged({CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}) == Fit::passes_nan);
  CHECK(judged({CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}) == Fit::no);
#endif
  const std::vector<Fit> engines{Fit::loose, Fit::no, Fit::passes_nan, Fit::loose, Fit::passes_nan};
  CHECK(ops::cudnn::order_of(engines, true) == std::vector<std::size_t>{2, 4, 0, 3});
  CHECK(ops::cudnn::order_of(engines, false) == std::vector<std::size_t>{0, 2, 3, 4});
}
