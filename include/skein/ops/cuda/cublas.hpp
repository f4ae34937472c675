// SPDX-License-Identifier: Apache-2.0
// Calls of cuBLASLt: every status looked at, names of scalar types, descriptors that destroy themselves. The products are in
// product.hpp.
#pragma once
#include <cublasLt.h>

#include <string>
#include <utility>

#include "../../core/half.hpp"
#include "../../device/cuda/status.hpp"

namespace skein::inline SKEIN_ABI::ops::cublas {

/// Throws DeviceError unless `status` is success: "cublasLtMatmul of (128, 84) x (84, 10), float, with bias on Cuda 0: ...".
template <class Details = skein::cuda::NoDetails> void check(cublasStatus_t status, const char* operation, Details&& details = {},
                                                             SourceLocation where = SourceLocation::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  const char* hint = "";
  if (status == CUBLAS_STATUS_NOT_INITIALIZED) hint = "does the driver fit this CUDA toolkit? nvidia-smi shows its version";
  if (status == CUBLAS_STATUS_ARCH_MISMATCH) hint = "this GPU is older than the type: take float";
  skein::cuda::fail(operation, details(), cublasLtGetStatusName(status), cublasLtGetStatusString(status), hint, where);
}

/// cuBLAS's name of a scalar type.
template <class Scalar> inline constexpr cudaDataType_t type_of = CUDA_R_32F;
template <> inline constexpr cudaDataType_t type_of<double> = CUDA_R_64F;
template <> inline constexpr cudaDataType_t type_of<bf16> = CUDA_R_16BF;
template <> inline constexpr cudaDataType_t type_of<fp16> = CUDA_R_16F;

/// Says the status that the library does not do what was asked? Which of the two it is, differs between its versions.
inline bool refused(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

/// Owns one descriptor.
template <class Raw, cublasStatus_t (*Destroy)(Raw)> class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(Descriptor&& o) noexcept : raw(std::exchange(o.raw, nullptr)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(raw, o.raw);
    return *this;
  }
  ~Descriptor() {
    if (raw) (void)Destroy(raw);
  }
  Raw raw = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::ops::cublas
