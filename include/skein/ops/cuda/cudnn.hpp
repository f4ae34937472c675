// SPDX-License-Identifier: Apache-2.0
// Calls of cuDNN 9: one handle a thread and device, which follows the thread's stream; descriptors that destroy themselves;
// every status looked at, with cuDNN's own explanation in the exception.
#pragma once
#include <cudnn.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "../../core/environment.hpp"
#include "../../core/half.hpp"
#include "../../core/text.hpp"
#include "../../device/cuda/stream.hpp"

namespace skein::inline SKEIN_ABI::ops::cudnn {

/// Throws DeviceError unless `status` is success: "cudnnConvolutionForward of 32 x 28 x 28 x 1 ... on Cuda 0: <cuDNN's words>".
template <class Details = skein::cuda::NoDetails> void check(cudnnStatus_t status, const char* operation, Details&& details = {},
                                                             SourceLocation where = SourceLocation::current()) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  char words[1024] = "";
  cudnnGetLastErrorString(words, sizeof words);
  const char* hint = "";
  if (status == CUDNN_STATUS_NOT_INITIALIZED) hint = "does the driver fit this CUDA toolkit? nvidia-smi shows its version";
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED)
    hint = "this version of cuDNN has no kernel for it on this GPU";
  skein::cuda::fail(operation, details(), cudnnGetErrorString(status), *words ? words : "cuDNN refuses", hint, where);
}

/// Whether cuDNN does what was asked: false where it has no kernel for it on this GPU. Throws as check() does for all else.
template <class Details = skein::cuda::NoDetails> bool supported(cudnnStatus_t status, const char* operation,
                                                                 Details&& details = {},
                                                                 SourceLocation where = SourceLocation::current()) {
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return false;
  check(status, operation, details, where);
  return true;
}

/// cuDNN's name of a scalar type.
template <class Scalar> inline constexpr cudnnDataType_t type_of = CUDNN_DATA_FLOAT;
template <> inline constexpr cudnnDataType_t type_of<double> = CUDNN_DATA_DOUBLE;
template <> inline constexpr cudnnDataType_t type_of<bf16> = CUDNN_DATA_BFLOAT16;
template <> inline constexpr cudnnDataType_t type_of<fp16> = CUDNN_DATA_HALF;

/// The blend factors of a call are doubles for doubles, floats for all else.
struct Factor {
  float single;
  double twice;
  explicit constexpr Factor(double value) : single(static_cast<float>(value)), twice(value) {}
  const void* as(cudnnDataType_t type) const { return type == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&twice) : &single; }
};
inline constexpr Factor one{1}, zero{0};

/// May products of floats be taken in TensorFloat-32 (10 bits of mantissa, on tensor cores)?
enum class MathMode { full, tf32 };

/// The most bytes of workspace that a convolution's algorithm may want where another wants less: the heuristics name fast ones
/// that copy all they read (environment: SKEIN_CUDNN_WORKSPACE, in MiB; 1024 without it). A constant, not a share of what is
/// free: with another algorithm the bits are others. Set it before plans are made.
inline std::atomic<std::size_t>& workspace_limit_setting() {
  static std::atomic<std::size_t> limit = [] {
    return static_cast<std::size_t>(
               environment_number("SKEIN_CUDNN_WORKSPACE", 1024, {"whole mebibytes, 1 or more", 1, 1e6, true}))
           << 20;
  }();
  return limit;
}
/// The limit that holds now, in bytes.
inline std::size_t workspace_limit() { return workspace_limit_setting(); }
/// Sets the limit for plans that are made from now on, on all threads.
inline void set_workspace_limit(std::size_t bytes) { workspace_limit_setting() = bytes; }

/// Owns one descriptor of the classic interface.
template <class Raw, cudnnStatus_t (*Create)(Raw*), cudnnStatus_t (*Destroy)(Raw)> class Descriptor {
 public:
  Descriptor() { check(Create(&raw_), "cuDNN's creation of a descriptor"); }
  ~Descriptor() { (void)Destroy(raw_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Raw get() const { return raw_; }

 private:
  Raw raw_{};
};
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;

namespace detail {
/// One thread's handle of one device.
struct Handle {
  cudnnHandle_t raw = nullptr;
  cudaStream_t stream = nullptr;
  Handle() { check(cudnnCreate(&raw), "cudnnCreate"); }
  ~Handle() { (void)cudnnDestroy(raw); }
  Handle(const Handle&) = delete;
};
}  // namespace detail

/// The calling thread's handle of the current device, set to the thread's stream.
inline cudnnHandle_t handle() {
  (void)skein::cuda::detail::thread_streams();  // made before, gone after: a handle knows its stream
  thread_local std::array<std::unique_ptr<detail::Handle>, skein::cuda::detail::most_devices> all;
  const Cuda device = skein::cuda::current_device();
  std::unique_ptr<detail::Handle>& mine = all[skein::cuda::detail::index_of(device)];
  if (!mine) mine = std::make_unique<detail::Handle>();
  if (cudaStream_t stream = skein::cuda::stream(device); stream != mine->stream) {
    check(cudnnSetStream(mine->raw, stream), "cudnnSetStream");
    mine->stream = stream;
  }
  return mine->raw;
}

/// "32 x 28 x 28 x 6".
inline std::string shape(std::initializer_list<long> extents) { return joined(extents, " x "); }

}  // namespace skein::inline SKEIN_ABI::ops::cudnn
