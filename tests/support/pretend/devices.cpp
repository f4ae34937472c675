// SPDX-License-Identifier: Apache-2.0
// Devices and errors of the pretend runtime: SKEIN_PRETEND_DEVICES of them (4; 0 is a machine without a GPU), each with the
// compute capability 9.0.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace pretend {
namespace {
thread_local int device_now = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<int> failures[most_devices];

struct Words {
  cudaError_t status;
  const char *name, *words;
};
#define SKEIN_WORDS(name, words) \
  { name, #name, words }
constexpr Words all_words[] = {
    SKEIN_WORDS(cudaSuccess, "no error"),
    SKEIN_WORDS(cudaErrorInvalidValue, "invalid argument"),
    SKEIN_WORDS(cudaErrorMemoryAllocation, "out of memory"),
    SKEIN_WORDS(cudaErrorInitializationError, "initialization error"),
    SKEIN_WORDS(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    SKEIN_WORDS(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SKEIN_WORDS(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    SKEIN_WORDS(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SKEIN_WORDS(cudaErrorInvalidDevice, "invalid device ordinal"),
    SKEIN_WORDS(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    SKEIN_WORDS(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SKEIN_WORDS(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    SKEIN_WORDS(cudaErrorNotReady, "device not ready"),
    SKEIN_WORDS(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SKEIN_WORDS(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    SKEIN_WORDS(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    SKEIN_WORDS(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    SKEIN_WORDS(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    SKEIN_WORDS(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    SKEIN_WORDS(cudaErrorLaunchFailure, "unspecified launch failure"),
    SKEIN_WORDS(cudaErrorNotPermitted, "operation not permitted"),
    SKEIN_WORDS(cudaErrorNotSupported, "operation not supported"),
    SKEIN_WORDS(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    SKEIN_WORDS(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    SKEIN_WORDS(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    SKEIN_WORDS(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    SKEIN_WORDS(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    SKEIN_WORDS(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    SKEIN_WORDS(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"),
    SKEIN_WORDS(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    SKEIN_WORDS(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread"),
    SKEIN_WORDS(cudaErrorGraphExecUpdateFailure,
                "the graph update was not performed because it included changes which violated constraints specific to "
                "instantiated graph update"),
    SKEIN_WORDS(cudaErrorUnknown, "unknown error"),
};
#undef SKEIN_WORDS
const Words* words_of(cudaError_t status) {
  for (const Words& each : all_words)
    if (each.status == status) return &each;
  return nullptr;
}
}  // namespace

int device_count() {
  static const int count = [] {
    const char* value = std::getenv("SKEIN_PRETEND_DEVICES");
    return value ? std::clamp(std::atoi(value), 0, most_devices) : 4;
  }();
  return count;
}
int current_device() { return device_now; }
cudaError_t note(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}
void complain(const std::string& words) { std::fprintf(stderr, "pretend CUDA: %s\n", words.c_str()); }
void fail_device(int device, cudaError_t status) { failures[device] = status; }
cudaError_t device_status(int device) {
  return device_count() == 0 ? cudaErrorNoDevice : static_cast<cudaError_t>(failures[device].load());
}

}  // namespace pretend

using namespace pretend;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t status = last_error;
  last_error = cudaSuccess;
  return status;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t status) { return words_of(status) ? words_of(status)->name : "unrecognized error code"; }
const char* cudaGetErrorString(cudaError_t status) {
  return words_of(status) ? words_of(status)->words : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return note(device_count() ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  if (device_count() == 0) return note(cudaErrorNoDevice);
  *device = device_now;
  return note(cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  if (device_count() == 0) return note(cudaErrorNoDevice);
  if (device < 0 || device >= device_count()) return note(cudaErrorInvalidDevice);
  device_now = device;
  return note(cudaSuccess);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return note(device >= 0 && device < device_count() ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return note(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return note(cudaSuccess);
}
cudaError_t cudaDeviceReset() {
  drain_all();
  failures[device_now] = 0;
  return note(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int device) {
  if (!to || device < 0 || device >= device_count()) return note(cudaErrorInvalidDevice);
  std::memset(static_cast<void*>(to), 0, sizeof *to);
  std::snprintf(to->name, sizeof to->name, "pretend GPU %d (the host)", device);
  to->totalGlobalMem = bytes_there();
  to->sharedMemPerBlock = 48 << 10;
  to->regsPerBlock = 65536;
  to->warpSize = 32;
  to->maxThreadsPerBlock = 1024;
  to->maxThreadsDim[0] = to->maxThreadsDim[1] = 1024, to->maxThreadsDim[2] = 64;
  to->maxGridSize[0] = 2147483647, to->maxGridSize[1] = to->maxGridSize[2] = 65535;
  to->major = 9;
  to->multiProcessorCount = 4;
  to->concurrentKernels = 1;
  to->unifiedAddressing = 1;
  to->canMapHostMemory = 1;
  to->memoryBusWidth = 64;
  to->l2CacheSize = 1 << 20;
  to->maxThreadsPerMultiProcessor = 2048;
  to->memoryPoolsSupported = 1;
  to->pciBusID = device + 1;
  return note(cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value || device < 0 || device >= device_count()) return note(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      break;
    case cudaDevAttrL2CacheSize:
      *value = 1 << 20;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 2147483647;
      break;
    case cudaDevAttrPciBusId:
      *value = device + 1;
      break;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
      *value = 1;
      break;
    case cudaDevAttrMemoryClockRate:
      *value = 1000000;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 64;
      break;
    default:
      *value = 0;
  }
  return note(cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (device < 0 || peer < 0 || device >= device_count() || peer >= device_count()) return note(cudaErrorInvalidDevice);
  *can = 0;  // so that nobody leans on it
  return note(cudaSuccess);
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return note(cudaErrorNotSupported); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return note(cudaErrorPeerAccessNotEnabled); }
cudaError_t cudaDeviceGetPCIBusId(char* to, int length, int device) {
  if (device < 0 || device >= device_count()) return note(cudaErrorInvalidDevice);
  std::snprintf(to, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return note(cudaSuccess);
}

}  // extern "C"
