// SPDX-License-Identifier: Apache-2.0
// Every status of the CUDA runtime is looked at here: check(cudaMallocAsync(...), "cudaMallocAsync", details). The exception
// names the operation, the device, what it was asked to do (shapes, bytes) and the runtime's own words. Libraries have their own
// check in their own headers, made of failure().
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "../../core/error.hpp"
#include "../device.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// Nothing more to say about a call.
struct NoDetails {
  std::string operator()() const { return {}; }
};

/// Throws DeviceError: "cudaMallocAsync of 400 bytes on Cuda 1: out of memory (cudaErrorMemoryAllocation)". `name` and `words`
/// are the status as the library names and explains it; `hint` says how to mend it, where that is known.
[[noreturn]] SKEIN_NOINLINE inline void fail(const char* operation, const std::string& details, const std::string& name,
                                             const std::string& words, const std::string& hint = {},
                                             SourceLocation where = SourceLocation::current()) {
  int ordinal = -1;
  if (cudaGetDevice(&ordinal) != cudaSuccess) ordinal = -1;
  throw DeviceError(std::string(operation) + (details.empty() ? "" : " " + details) +
                        (ordinal >= 0 ? text(" on Cuda {}", ordinal) : "") + ": " + words + " (" + name + ")" +
                        (hint.empty() ? "" : ": " + hint),
                    where);
}

/// What a user can do about a status of the runtime; empty where nothing general can be said.
inline std::string hint_for(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "take a smaller batch, or a device with more memory";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      return "there is no GPU that this driver can use: nvidia-smi shows what there is";
    case cudaErrorInvalidDevice:
      return "that ordinal is not visible: CUDA_VISIBLE_DEVICES says which are";
    case cudaErrorNotSupported:
      return "this GPU or its driver does not do that: virtual GPUs and old MIG profiles lack memory pools (cudaMallocAsync)";
    case cudaErrorNoKernelImageForDevice:
      return "the program was not compiled for this GPU: add its architecture to CMAKE_CUDA_ARCHITECTURES";
    default:
      return {};
  }
}

/// Throws DeviceError unless `status` is success. `details()` is called only then: a string about sizes and shapes.
template <class Details = NoDetails>
void check(cudaError_t status, const char* operation, Details&& details = {}, SourceLocation where = SourceLocation::current()) {
  if (status == cudaSuccess) [[likely]]
    return;
  (void)cudaGetLastError();  // it is ours now; the next call does not find it again
  fail(operation, details(), cudaGetErrorName(status), cudaGetErrorString(status), hint_for(status), where);
}

/// What a release says goes no further: nobody can mend it, and the next call that looks must not find it.
inline void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess) (void)cudaGetLastError();
}

/// Details of a call about so many bytes.
struct Bytes {
  std::size_t count;
  std::string operator()() const { return text("of {} bytes", count); }
};

/// GPUs that this process sees; 0 where there is no driver.
inline int device_count() {
  int n = 0;
  if (cudaGetDeviceCount(&n) == cudaSuccess) return n;
  (void)cudaGetLastError();
  return 0;
}

/// Makes `device` the one that this thread's calls go to. Cheap where it is already.
inline void use(Cuda device) {
  int now = -1;
  if (cudaGetDevice(&now) == cudaSuccess && now == device.ordinal) return;
  check(cudaSetDevice(device.ordinal), "cudaSetDevice", [&] { return text("to Cuda {}", device.ordinal); });
}

/// The device that this thread's calls go to.
inline Cuda current_device() {
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "cudaGetDevice");
  return Cuda{ordinal};
}

/// Makes a device current for a scope. Two questions and no more where it is already.
class UseDevice {
 public:
  explicit UseDevice(Cuda device) : before_(current_device()) { use(device); }
  ~UseDevice() {
    int now = -1;
    if (cudaGetDevice(&now) != cudaSuccess || now != before_.ordinal) ignore(cudaSetDevice(before_.ordinal));
  }
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  Cuda before_;
};

}  // namespace skein::inline SKEIN_ABI::cuda
