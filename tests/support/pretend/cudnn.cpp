// SPDX-License-Identifier: Apache-2.0
// The classic interface of cuDNN 9, as far as skein calls it, in plain loops. It is strict where cuDNN is: channels-last
// convolutions of doubles have no algorithm, workspaces must be as large as was said, a zero blend factor does not read, extents
// must fit. Lists of algorithms begin with one that does not take the problem and one that is not deterministic: who takes the
// first is found out.
#include "cudnn.hpp"

#include <algorithm>
#include <cmath>

struct cudnnTensorStruct : pretend::Tensor {};
struct cudnnFilterStruct : pretend::Tensor {};
struct cudnnConvolutionStruct {
  pretend::Window window;
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace pretend {

namespace {
std::string& last_words() {
  thread_local std::string words;
  return words;
}
}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& words) {
  last_words() = words;
  return status;
}

cudnnStatus_t launch(cudnnHandle_t handle, const char* name, std::function<void()> run) {
  if (current_device() != handle->device)
    return refuse(CUDNN_STATUS_BAD_PARAM, std::string(name) + ": the handle is of another device than the current one");
  return submit(handle->stream, {std::move(run), bit(handle->device), name}) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_EXECUTION_FAILED, std::string(name) + " failed");
}
bool reaches(cudnnHandle_t handle, const void* p, std::size_t bytes, const char* name) {
  return on_device(p, bytes, handle->device, name);
}

bool fits(const Tensor& x, const Tensor& f, const Tensor& y, const Window& w) {
  if (x.extent[0] != y.extent[0] || f.extent[0] != y.extent[1] || f.extent[1] * w.groups != x.extent[1] ||
      f.extent[0] % w.groups != 0)
    return false;
  for (int d = 0; d < 2; ++d) {
    const std::int64_t reach = w.dilation[d] * (f.extent[2 + d] - 1) + 1, room = x.extent[2 + d] + 2 * w.padding[d] - reach;
    if (room < 0 || room / w.stride[d] + 1 != y.extent[2 + d]) return false;
  }
  return true;
}

namespace {

cudnnStatus_t set(Tensor& t, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return refuse(CUDNN_STATUS_BAD_PARAM, "extents must be positive");
  if (size_of(type) == 0) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "this double of cuDNN does not know the data type");
  if (static_cast<std::int64_t>(n) * c * h * w > (std::int64_t{1} << 31) - 1)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "more than 2 giga-elements");
  t.type = type;
  const std::int64_t extent[] = {n, c, h, w}, last[] = {1L * h * w * c, 1, 1L * w * c, c},
                     first[] = {1L * c * h * w, 1L * h * w, w, 1};
  std::copy_n(extent, 4, t.extent);
  std::copy_n(format == CUDNN_TENSOR_NHWC ? last : first, 4, t.stride);
  return format == CUDNN_TENSOR_NCHW_VECT_C ? refuse(CUDNN_STATUS_NOT_SUPPORTED, "vectors of channels") : CUDNN_STATUS_SUCCESS;
}

/// What every convolution's call checks.
cudnnStatus_t checked(cudnnHandle_t handle, const Tensor& x, const Tensor& f, const Tensor& y, const cudnnConvolutionStruct* c) {
  if (!handle || !c) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null handle or descriptor");
  if (!fits(x, f, y, c->window))
    return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "the extents of a convolution do not fit each other");
  if (x.type != f.type || x.type != y.type) return refuse(CUDNN_STATUS_BAD_PARAM, "the data types of a convolution differ");
  if (c->compute != (x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "this compute type does not go with these tensors");
  if (c->mode != CUDNN_CROSS_CORRELATION) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "only cross-correlation here");
  return CUDNN_STATUS_SUCCESS;
}
/// Channels-last kernels exist for float, half and bfloat16.
bool has_kernels(const Tensor& x, const Tensor& f, const Tensor& y) {
  const bool last = x.channels_last() && f.channels_last() && y.channels_last();
  return !(last && x.type == CUDNN_DATA_DOUBLE);
}
std::size_t scratch_of(const Tensor& f) { return f.bytes() + 64; }

template <class Perf> void fill(Perf* list, int asked, int* count, const Perf& good, decltype(Perf::algo) refused,
                                decltype(Perf::algo) random, bool takes) {
  *count = 0;
  Perf none = good, loose = good, best = good;
  none.algo = refused;
  none.status = CUDNN_STATUS_NOT_SUPPORTED;
  loose.algo = random;
  loose.determinism = CUDNN_NON_DETERMINISTIC;
  if (!takes) loose.status = best.status = CUDNN_STATUS_NOT_SUPPORTED;
  for (const Perf& p : {none, loose, best})
    if (*count < asked) list[(*count)++] = p;
}
template <class Perf> Perf good(decltype(Perf::algo) algorithm, const Tensor& f, const cudnnConvolutionStruct* c) {
  Perf p{};
  p.algo = algorithm;
  p.status = CUDNN_STATUS_SUCCESS;
  p.time = -1;
  p.memory = scratch_of(f);
  p.determinism = CUDNN_DETERMINISTIC;
  p.mathType = c->math;
  return p;
}
bool wants_scratch(cudnnHandle_t handle, const Tensor& f, void* scratch, std::size_t bytes, const char* name) {
  return bytes >= scratch_of(f) && reaches(handle, scratch, scratch_of(f), name);
}
/// y = alpha sums + beta y; `sums` in the layout of t.
void blend(const Tensor& t, void* y, const std::vector<double>& sums, double alpha, double beta) {
  for (std::int64_t n = 0; n < t.extent[0]; ++n)
    for (std::int64_t c = 0; c < t.extent[1]; ++c)
      for (std::int64_t h = 0; h < t.extent[2]; ++h)
        for (std::int64_t w = 0; w < t.extent[3]; ++w) {
          const std::int64_t i = t.at(n, c, h, w);
          store(t.type, y, i, alpha * sums[static_cast<std::size_t>(i)] + (beta == 0 ? 0 : beta * load(t.type, y, i)));
        }
}
std::vector<double> zeros(const Tensor& t) { return std::vector<double>(t.bytes() / size_of(t.type)); }
double& ref(std::vector<double>& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; }

}  // namespace
}  // namespace pretend

using namespace pretend;

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NULL_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
      return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED_..." : "CUDNN_STATUS_...";
  }
}
void cudnnGetLastErrorString(char* message, size_t most) {
  if (most == 0) return;
  const std::size_t n = std::min(most - 1, last_words().size());
  std::memcpy(message, last_words().data(), n);
  message[n] = 0;
  last_words().clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (device_count() == 0) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "there is no device");
  if (unsafe_call() != cudaSuccess) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "a stream captures");
  *handle = new cudnnContext{current_device(), nullptr};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (device_of(stream) != handle->device)
    return refuse(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "the stream is of another device than the handle");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

// ---- descriptors

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) { return *d = new cudnnTensorStruct, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return delete d, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  return set(*d, format, type, n, c, h, w);
}
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n, int c, int h, int w, int sn,
                                           int sc, int sh, int sw) {
  if (const cudnnStatus_t status = set(*d, CUDNN_TENSOR_NCHW, type, n, c, h, w)) return status;
  if (sn <= 0 || sc <= 0 || sh <= 0 || sw <= 0) return refuse(CUDNN_STATUS_BAD_PARAM, "strides must be positive");
  const std::int64_t stride[] = {sn, sc, sh, sw};
  std::copy_n(stride, 4, d->stride);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) { return *d = new cudnnFilterStruct, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return delete d, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format, int k,
                                         int c, int h, int w) {
  return set(*d, format, type, k, c, h, w);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) {
  return *d = new cudnnConvolutionStruct, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return delete d, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  if (pad_h < 0 || pad_w < 0 || u <= 0 || v <= 0 || dilation_h <= 0 || dilation_w <= 0)
    return refuse(CUDNN_STATUS_BAD_PARAM, "a window's numbers");
  d->window = {{pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}, 1};
  d->mode = mode;
  d->compute = compute;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  if (groups <= 0) return refuse(CUDNN_STATUS_BAD_PARAM, "at least one group");
  d->window.groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math) {
  d->math = math;
  return CUDNN_STATUS_SUCCESS;
}

// ---- convolution

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t f, const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int asked, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* list) {
  if (const cudnnStatus_t status = checked(handle, *x, *f, *y, c)) return status;
  fill(list, asked, count, good<cudnnConvolutionFwdAlgoPerf_t>(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, *f, c),
       CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, has_kernels(*x, *f, *y));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t f, const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
                                                      size_t* bytes) {
  if (const cudnnStatus_t status = checked(handle, *x, *f, *y, c)) return status;
  if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM || !has_kernels(*x, *f, *y))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such kernel");
  *bytes = scratch_of(*f);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xd, const void* x,
                                      const cudnnFilterDescriptor_t fd, const void* f, const cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* scratch, size_t bytes, const void* beta,
                                      const cudnnTensorDescriptor_t yd, void* y) {
  const char* name = "cudnnConvolutionForward";
  if (const cudnnStatus_t status = checked(handle, *xd, *fd, *yd, c)) return status;
  if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM || !has_kernels(*xd, *fd, *yd))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such kernel");
  if (!wants_scratch(handle, *fd, scratch, bytes, name)) return refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
  if (!reaches(handle, x, xd->bytes(), name) || !reaches(handle, f, fd->bytes(), name) || !reaches(handle, y, yd->bytes(), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  const Tensor tx = *xd, tf = *fd, ty = *yd;
  const Window w = c->window;
  const double a = factor(ty.type, alpha), b = factor(ty.type, beta);
  return launch(handle, name, [=] {
    std::memset(scratch, 0xFF, scratch_of(tf));
    std::vector<double> sums = zeros(ty);
    each_product(tx, tf, ty, w, [&](auto i, auto j, auto k) { ref(sums, k) += load(tx.type, x, i) * load(tf.type, f, j); });
    blend(ty, y, sums, a, b);
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t f,
                                                          const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t dx, const int asked, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* list) {
  if (const cudnnStatus_t status = checked(handle, *dx, *f, *dy, c)) return status;
  fill(list, asked, count, good<cudnnConvolutionBwdDataAlgoPerf_t>(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, *f, c),
       CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, has_kernels(*dx, *f, *dy));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t f,
                                                           const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  if (const cudnnStatus_t status = checked(handle, *dx, *f, *dy, c)) return status;
  if (algorithm != CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 || !has_kernels(*dx, *f, *dy))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such kernel");
  *bytes = scratch_of(*f);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, const cudnnFilterDescriptor_t fd,
                                           const void* f, const cudnnTensorDescriptor_t yd, const void* dy,
                                           const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void* scratch, size_t bytes, const void* beta, const cudnnTensorDescriptor_t xd,
                                           void* dx) {
  const char* name = "cudnnConvolutionBackwardData";
  if (const cudnnStatus_t status = checked(handle, *xd, *fd, *yd, c)) return status;
  if (algorithm != CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 || !has_kernels(*xd, *fd, *yd))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such kernel");
  if (!wants_scratch(handle, *fd, scratch, bytes, name)) return refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
  if (!reaches(handle, dx, xd->bytes(), name) || !reaches(handle, f, fd->bytes(), name) ||
      !reaches(handle, dy, yd->bytes(), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  const Tensor tx = *xd, tf = *fd, ty = *yd;
  const Window w = c->window;
  const double a = factor(tx.type, alpha), b = factor(tx.type, beta);
  return launch(handle, name, [=] {
    std::memset(scratch, 0xFF, scratch_of(tf));
    std::vector<double> sums = zeros(tx);
    each_product(tx, tf, ty, w, [&](auto i, auto j, auto k) { ref(sums, i) += load(ty.type, dy, k) * load(tf.type, f, j); });
    blend(tx, dx, sums, a, b);
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t df, const int asked, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* list) {
  if (const cudnnStatus_t status = checked(handle, *x, *df, *dy, c)) return status;
  fill(list, asked, count, good<cudnnConvolutionBwdFilterAlgoPerf_t>(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, *df, c),
       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, has_kernels(*x, *df, *dy));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t df,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  if (const cudnnStatus_t status = checked(handle, *x, *df, *dy, c)) return status;
  if (algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 || !has_kernels(*x, *df, *dy))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such kernel");
  *bytes = scratch_of(*df);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xd,
                                             const void* x, const cudnnTensorDescriptor_t yd, const void* dy,
                                             const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* scratch, size_t bytes, const void* beta, const cudnnFilterDescriptor_t fd,
                                             void* df) {
  const char* name = "cudnnConvolutionBackwardFilter";
  if (const cudnnStatus_t status = checked(handle, *xd, *fd, *yd, c)) return status;
  if (algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 || !has_kernels(*xd, *fd, *yd))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such kernel");
  if (!wants_scratch(handle, *fd, scratch, bytes, name)) return refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
  if (!reaches(handle, x, xd->bytes(), name) || !reaches(handle, df, fd->bytes(), name) ||
      !reaches(handle, dy, yd->bytes(), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  const Tensor tx = *xd, tf = *fd, ty = *yd;
  const Window w = c->window;
  const double a = factor(tf.type, alpha), b = factor(tf.type, beta);
  return launch(handle, name, [=] {
    std::memset(scratch, 0xFF, scratch_of(tf));
    std::vector<double> sums = zeros(tf);
    each_product(tx, tf, ty, w, [&](auto i, auto j, auto k) { ref(sums, j) += load(ty.type, dy, k) * load(tx.type, x, i); });
    blend(tf, df, sums, a, b);
  });
}

// ---- softmax: over the channels of each position

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                  const void* alpha, const cudnnTensorDescriptor_t xd, const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t yd, void* y) {
  const char* name = "cudnnSoftmaxForward";
  if (!handle || !x || !y) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null pointer");
  if (!xd->same_extents(*yd) || xd->type != yd->type) return refuse(CUDNN_STATUS_BAD_PARAM, "x and y differ");
  if (mode != CUDNN_SOFTMAX_MODE_CHANNEL) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "only over channels here");
  if (!reaches(handle, x, xd->bytes(), name) || !reaches(handle, y, yd->bytes(), name)) return CUDNN_STATUS_EXECUTION_FAILED;
  const Tensor tx = *xd, ty = *yd;
  const double a = factor(tx.type, alpha), b = factor(tx.type, beta);
  return launch(handle, name, [=] {
    std::vector<double> sums = zeros(ty);
    for (std::int64_t n = 0; n < tx.extent[0]; ++n)
      for (std::int64_t h = 0; h < tx.extent[2]; ++h)
        for (std::int64_t w = 0; w < tx.extent[3]; ++w) {
          const auto in = [&](std::int64_t c) { return load(tx.type, x, tx.at(n, c, h, w)); };
          double top = algorithm == CUDNN_SOFTMAX_FAST ? 0 : in(0), total = 0;
          for (std::int64_t c = 0; algorithm != CUDNN_SOFTMAX_FAST && c < tx.extent[1]; ++c) top = std::max(top, in(c));
          for (std::int64_t c = 0; c < tx.extent[1]; ++c) total += std::exp(in(c)-top);
          for (std::int64_t c = 0; c < tx.extent[1]; ++c)
            ref(sums, ty.at(n, c, h, w)) =
                algorithm == CUDNN_SOFTMAX_LOG ? in(c)-top - std::log(total) : std::exp(in(c)-top) / total;
        }
    blend(ty, y, sums, a, b);
  });
}
cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                   const void* alpha, const cudnnTensorDescriptor_t yd, const void* y,
                                   const cudnnTensorDescriptor_t dyd, const void* dy, const void* beta,
                                   const cudnnTensorDescriptor_t dxd, void* dx) {
  const char* name = "cudnnSoftmaxBackward";
  if (!handle || !dx || !y || !dy) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null pointer");
  if (!yd->same_extents(*dyd) || !yd->same_extents(*dxd) || yd->type != dyd->type || yd->type != dxd->type)
    return refuse(CUDNN_STATUS_BAD_PARAM, "y, dy and dx differ");
  if (std::memcmp(yd->stride, dyd->stride, sizeof yd->stride) != 0)
    return refuse(CUDNN_STATUS_BAD_PARAM, "the strides of y and dy differ");
  if (mode != CUDNN_SOFTMAX_MODE_CHANNEL) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "only over channels here");
  if (!reaches(handle, y, yd->bytes(), name) || !reaches(handle, dy, dyd->bytes(), name) ||
      !reaches(handle, dx, dxd->bytes(), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  const Tensor ty = *yd, tx = *dxd;
  const bool log = algorithm == CUDNN_SOFTMAX_LOG;
  const double a = factor(tx.type, alpha), b = factor(tx.type, beta);
  return launch(handle, name, [=] {
    std::vector<double> sums = zeros(tx);
    for (std::int64_t n = 0; n < ty.extent[0]; ++n)
      for (std::int64_t h = 0; h < ty.extent[2]; ++h)
        for (std::int64_t w = 0; w < ty.extent[3]; ++w) {
          double sum = 0;
          const auto out = [&](std::int64_t c) { return load(ty.type, y, ty.at(n, c, h, w)); };
          const auto slope = [&](std::int64_t c) { return load(ty.type, dy, ty.at(n, c, h, w)); };
          for (std::int64_t c = 0; c < ty.extent[1]; ++c) sum += log ? slope(c) : slope(c) * out(c);
          for (std::int64_t c = 0; c < ty.extent[1]; ++c)
            ref(sums, tx.at(n, c, h, w)) = log ? slope(c) - std::exp(out(c)) * sum : out(c) * (slope(c) - sum);
        }
    blend(tx, dx, sums, a, b);
  });
}

}  // extern "C"
