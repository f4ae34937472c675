// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of the pretend cuDNN: spatial, the calls with workspace. Parameters are floats, doubles for tensors of
// doubles.
#include <cmath>

#include "cudnn.hpp"

struct cudnnTensorStruct : pretend::Tensor {};
struct cudnnActivationStruct {};

using namespace pretend;

namespace {

cudnnDataType_t parameter_type(const Tensor& x) { return x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT; }
std::size_t scratch_of(const Tensor& x) { return static_cast<std::size_t>(x.extent[1]) * 16 + 32; }

cudnnStatus_t checked(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const Tensor& x,
                      const Tensor& parameters) {
  if (!handle) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null handle");
  if (mode == CUDNN_BATCHNORM_PER_ACTIVATION) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "only spatial here");
  if (ops != CUDNN_BATCHNORM_OPS_BN) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "only bare normalisation here");
  const std::int64_t extent[] = {1, x.extent[1], 1, 1};
  if (std::memcmp(parameters.extent, extent, sizeof extent) != 0)
    return refuse(CUDNN_STATUS_BAD_PARAM, "parameters are (1, channels, 1, 1)");
  if (parameters.type != parameter_type(x)) return refuse(CUDNN_STATUS_BAD_PARAM, "parameters are floats, or doubles of doubles");
  return CUDNN_STATUS_SUCCESS;
}
template <class Visit> void each(const Tensor& x, std::int64_t c, Visit visit) {
  for (std::int64_t n = 0; n < x.extent[0]; ++n)
    for (std::int64_t h = 0; h < x.extent[2]; ++h)
      for (std::int64_t w = 0; w < x.extent[3]; ++w) visit(x.at(n, c, h, w));
}
void blend(cudnnDataType_t type, void* to, std::int64_t i, double value, double alpha, double beta) {
  store(type, to, i, alpha * value + (beta == 0 ? 0 : beta * load(type, to, i)));
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                                       cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
                                                                       const cudnnTensorDescriptor_t,
                                                                       const cudnnTensorDescriptor_t y,
                                                                       const cudnnTensorDescriptor_t parameters,
                                                                       const cudnnActivationDescriptor_t, size_t* bytes) {
  if (const cudnnStatus_t status = checked(handle, mode, ops, *x, *parameters)) return status;
  if (!x->same_extents(*y)) return refuse(CUDNN_STATUS_BAD_PARAM, "x and y differ");
  *bytes = scratch_of(*x);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                                cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
                                                                const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t dy,
                                                                const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t dx,
                                                                const cudnnTensorDescriptor_t parameters,
                                                                const cudnnActivationDescriptor_t, size_t* bytes) {
  if (const cudnnStatus_t status = checked(handle, mode, ops, *x, *parameters)) return status;
  if (!x->same(*dy) || !x->same(*dx)) return refuse(CUDNN_STATUS_BAD_PARAM, "x, dy and dx differ");
  *bytes = scratch_of(*x);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t,
                                                                   const cudnnActivationDescriptor_t,
                                                                   const cudnnTensorDescriptor_t x, size_t* bytes) {
  // Persistent kernels may keep something from forward to backward; here where there are more than 40 channels.
  *bytes = mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT && x->extent[1] > 40 ? 128 : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
                                                       const void* alpha, const void* beta, const cudnnTensorDescriptor_t xd,
                                                       const void* x, const cudnnTensorDescriptor_t, const void*,
                                                       const cudnnTensorDescriptor_t yd, void* y,
                                                       const cudnnTensorDescriptor_t pd, const void* scale, const void* bias,
                                                       double average, void* running_mean, void* running_variance, double epsilon,
                                                       void* saved_mean, void* saved_inverse, cudnnActivationDescriptor_t,
                                                       void* scratch, size_t bytes, void* reserve, size_t reserve_bytes) {
  const char* name = "cudnnBatchNormalizationForwardTrainingEx";
  if (const cudnnStatus_t status = checked(handle, mode, ops, *xd, *pd)) return status;
  if (!xd->same_extents(*yd)) return refuse(CUDNN_STATUS_BAD_PARAM, "x and y differ");
  if (epsilon < CUDNN_BN_MIN_EPSILON) return refuse(CUDNN_STATUS_BAD_PARAM, "epsilon is negative");
  if ((saved_mean == nullptr) != (saved_inverse == nullptr) || (running_mean == nullptr) != (running_variance == nullptr))
    return refuse(CUDNN_STATUS_BAD_PARAM, "one of two results is null");
  std::size_t kept = 0;
  cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, mode, ops, nullptr, xd, &kept);
  if (bytes < scratch_of(*xd) || reserve_bytes < kept || (kept && !reserve))
    return refuse(CUDNN_STATUS_BAD_PARAM, "workspace or reserve is too small");
  const Tensor tx = *xd, ty = *yd;
  const cudnnDataType_t pt = parameter_type(tx);
  const std::size_t parameter_bytes = static_cast<std::size_t>(tx.extent[1]) * size_of(pt);
  for (const void* p : {scale, bias, static_cast<const void*>(running_mean), static_cast<const void*>(running_variance),
                        static_cast<const void*>(saved_mean), static_cast<const void*>(saved_inverse)})
    if (p && !reaches(handle, p, parameter_bytes, name)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!reaches(handle, x, tx.bytes(), name) || !reaches(handle, y, ty.bytes(), name) ||
      !reaches(handle, scratch, scratch_of(tx), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  const double a = factor(tx.type, alpha), b = factor(tx.type, beta);
  return launch(handle, name, [=] {
    std::memset(scratch, 0xFF, scratch_of(tx));
    const double n = static_cast<double>(tx.extent[0] * tx.extent[2] * tx.extent[3]);
    for (std::int64_t c = 0; c < tx.extent[1]; ++c) {
      double sum = 0, square = 0;
      each(tx, c, [&](std::int64_t i) { sum += load(tx.type, x, i); });
      const double mean = sum / n;
      each(tx, c, [&](std::int64_t i) { square += std::pow(load(tx.type, x, i) - mean, 2); });
      const double variance = square / n, inverse = 1 / std::sqrt(variance + epsilon);
      for (std::int64_t k = 0; k < tx.extent[0]; ++k)
        for (std::int64_t h = 0; h < tx.extent[2]; ++h)
          for (std::int64_t w = 0; w < tx.extent[3]; ++w)
            blend(ty.type, y, ty.at(k, c, h, w),
                  (load(tx.type, x, tx.at(k, c, h, w)) - mean) * inverse * load(pt, scale, c) + load(pt, bias, c), a, b);
      if (saved_mean) store(pt, saved_mean, c, mean), store(pt, saved_inverse, c, inverse);
      if (running_mean) {
        store(pt, running_mean, c, (1 - average) * load(pt, running_mean, c) + average * mean);
        store(pt, running_variance, c,
              (1 - average) * load(pt, running_variance, c) + average * variance * (n > 1 ? n / (n - 1) : 1));
      }
    }
  });
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
                                                const void* alpha, const void* beta, const void* alpha_parameters,
                                                const void* beta_parameters, const cudnnTensorDescriptor_t xd, const void* x,
                                                const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t dyd,
                                                const void* dy, const cudnnTensorDescriptor_t, void*,
                                                const cudnnTensorDescriptor_t dxd, void* dx, const cudnnTensorDescriptor_t pd,
                                                const void* scale, const void*, void* dscale, void* dbias, double epsilon,
                                                const void* saved_mean, const void* saved_inverse, cudnnActivationDescriptor_t,
                                                void* scratch, size_t bytes, void* reserve, size_t reserve_bytes) {
  const char* name = "cudnnBatchNormalizationBackwardEx";
  if (const cudnnStatus_t status = checked(handle, mode, ops, *xd, *pd)) return status;
  if (!xd->same(*dyd) || !xd->same(*dxd)) return refuse(CUDNN_STATUS_BAD_PARAM, "x, dy and dx differ");
  if (epsilon < CUDNN_BN_MIN_EPSILON || (saved_mean == nullptr) != (saved_inverse == nullptr) || !saved_mean)
    return refuse(CUDNN_STATUS_BAD_PARAM, "epsilon or saved values");
  std::size_t kept = 0;
  cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, mode, ops, nullptr, xd, &kept);
  if (bytes < scratch_of(*xd) || reserve_bytes < kept || (kept && !reserve))
    return refuse(CUDNN_STATUS_BAD_PARAM, "workspace or reserve is too small");
  const Tensor t = *xd;
  const cudnnDataType_t pt = parameter_type(t);
  const std::size_t parameter_bytes = static_cast<std::size_t>(t.extent[1]) * size_of(pt);
  for (const void* p : {scale, saved_mean, saved_inverse, static_cast<const void*>(dscale), static_cast<const void*>(dbias)})
    if (!reaches(handle, p, parameter_bytes, name)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!reaches(handle, x, t.bytes(), name) || !reaches(handle, dy, t.bytes(), name) || !reaches(handle, dx, t.bytes(), name) ||
      !reaches(handle, scratch, scratch_of(t), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  const double a = factor(t.type, alpha), b = factor(t.type, beta), ap = factor(t.type, alpha_parameters),
               bp = factor(t.type, beta_parameters);
  return launch(handle, name, [=] {
    std::memset(scratch, 0xFF, scratch_of(t));
    const double n = static_cast<double>(t.extent[0] * t.extent[2] * t.extent[3]);
    for (std::int64_t c = 0; c < t.extent[1]; ++c) {
      const double mean = load(pt, saved_mean, c), inverse = load(pt, saved_inverse, c), weight = load(pt, scale, c);
      double sum = 0, product = 0;
      each(t, c, [&](std::int64_t i) {
        sum += load(t.type, dy, i);
        product += load(t.type, dy, i) * (load(t.type, x, i) - mean) * inverse;
      });
      each(t, c, [&](std::int64_t i) {
        const double hat = (load(t.type, x, i) - mean) * inverse;
        blend(t.type, dx, i, weight * inverse * (load(t.type, dy, i) - sum / n - hat * product / n), a, b);
      });
      blend(pt, dscale, c, product, ap, bp);
      blend(pt, dbias, c, sum, ap, bp);
    }
  });
}

}  // extern "C"
