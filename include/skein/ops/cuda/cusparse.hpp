// SPDX-License-Identifier: Apache-2.0
// Calls of cuSPARSE: one handle a thread and device on that thread's stream, statuses checked, and descriptors that go with
// their scope. Descriptors are of the host and cheap: they are made for each call.
#pragma once
#include <cusparse.h>

#include <cstdint>
#include <type_traits>

#include "../../device/cuda/workspace.hpp"
#include "../../tensor/csr_view.hpp"

namespace skein::inline SKEIN_ABI::ops::cusparse {

/// Throws DeviceError unless `status` is success: "cusparseSpMV of (100, 80) with 500 entries on Cuda 0: ...".
template <class Details = skein::cuda::NoDetails> void check(cusparseStatus_t status, const char* operation,
                                                             Details&& details = {},
                                                             SourceLocation where = SourceLocation::current()) {
  if (status == CUSPARSE_STATUS_SUCCESS) [[likely]]
    return;
  const char* hint = "";
  if (status == CUSPARSE_STATUS_NOT_INITIALIZED) hint = "does the driver fit this CUDA toolkit? nvidia-smi shows its version";
  if (status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES) hint = "the device has no memory left for it";
  skein::cuda::fail(operation, details(), cusparseGetErrorName(status), cusparseGetErrorString(status), hint, where);
}

/// The library's state of one thread and device.
class Handle {
 public:
  Handle() { check(cusparseCreate(&handle_), "cusparseCreate"); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { (void)cusparseDestroy(handle_); }
  cusparseHandle_t get() const { return handle_; }

 private:
  cusparseHandle_t handle_ = nullptr;
};

/// The calling thread's handle for the current device, on its current stream.
inline cusparseHandle_t handle() {
  (void)skein::cuda::detail::thread_streams();  // made before, gone after: a handle knows its stream
  thread_local std::array<std::unique_ptr<Handle>, skein::cuda::detail::most_devices> all;
  std::unique_ptr<Handle>& mine = all[skein::cuda::detail::index_of(skein::cuda::current_device())];
  if (!mine) mine = std::make_unique<Handle>();
  check(cusparseSetStream(mine->get(), skein::cuda::stream()), "cusparseSetStream");
  return mine->get();
}

template <class Scalar> inline constexpr cudaDataType_t type_of = std::is_same_v<Scalar, double> ? CUDA_R_64F : CUDA_R_32F;
template <class Index> inline constexpr cusparseIndexType_t index_of = sizeof(Index) == 8 ? CUSPARSE_INDEX_64I
                                                                                          : CUSPARSE_INDEX_32I;
/// What the library multiplies; other matrices go through a kernel of our own.
template <class M, class Index>
inline constexpr bool supports = (std::is_same_v<M, float> || std::is_same_v<M, double>)&&std::is_signed_v<Index> &&
                                 sizeof(Index) >= 4;

/// What a call says of its matrix when it fails.
struct Of {
  long rows, columns, entries, n;
  std::string operator()() const {
    return text("of ({}, {}) with {} entries{}", rows, columns, entries, (n ? " by " + std::to_string(n) + " columns" : ""));
  }
};

// Descriptors: they go with their scope, and own no memory of the device.

/// A sparse matrix.
class Matrix {
 public:
  template <class M, class Index> explicit Matrix(const CsrView<M, Cuda, Index>& a) {
    check(cusparseCreateConstCsr(&descriptor_, a.rows, a.columns, a.entries, a.offsets, a.indices, a.values,
                                 index_of<CsrOffset<Index>>, index_of<Index>, CUSPARSE_INDEX_BASE_ZERO, type_of<M>),
          "cusparseCreateConstCsr", Of{a.rows, a.columns, a.entries, 0});
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { (void)cusparseDestroySpMat(descriptor_); }
  cusparseConstSpMatDescr_t get() const { return descriptor_; }

 private:
  cusparseConstSpMatDescr_t descriptor_ = nullptr;
};
/// A vector; of const values, one that is only read.
template <class S> class Vector {
 public:
  Vector(S* x, long n) {
    if constexpr (std::is_const_v<S>)
      check(cusparseCreateConstDnVec(&descriptor_, n, x, type_of<std::remove_const_t<S>>), "cusparseCreateConstDnVec");
    else check(cusparseCreateDnVec(&descriptor_, n, x, type_of<S>), "cusparseCreateDnVec");
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() { (void)cusparseDestroyDnVec(descriptor_); }
  auto get() const { return descriptor_; }

 private:
  std::conditional_t<std::is_const_v<S>, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t> descriptor_ = nullptr;
};
/// A dense matrix, row-major; of const values, one that is only read.
template <class S> class Dense {
 public:
  Dense(S* b, long rows, long columns, long pitch) {
    if constexpr (std::is_const_v<S>)
      check(cusparseCreateConstDnMat(&descriptor_, rows, columns, pitch, b, type_of<std::remove_const_t<S>>, CUSPARSE_ORDER_ROW),
            "cusparseCreateConstDnMat");
    else check(cusparseCreateDnMat(&descriptor_, rows, columns, pitch, b, type_of<S>, CUSPARSE_ORDER_ROW), "cusparseCreateDnMat");
  }
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
  ~Dense() { (void)cusparseDestroyDnMat(descriptor_); }
  auto get() const { return descriptor_; }

 private:
  std::conditional_t<std::is_const_v<S>, cusparseConstDnMatDescr_t, cusparseDnMatDescr_t> descriptor_ = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::ops::cusparse
