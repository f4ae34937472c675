// SPDX-License-Identifier: Apache-2.0
// An illegal address is for good: every later call of the process answers with it. Who goes on after it sees failures that mean
// nothing.
#pragma once
#include <cuda_runtime_api.h>

/// What the current device answers again and again, whatever it is asked; cudaSuccess where the last error, if any, is forgotten.
/// Waits for the device.
inline cudaError_t lasting_error() {
  (void)cudaGetLastError();
  if (cudaDeviceSynchronize() == cudaSuccess) return cudaSuccess;
  (void)cudaGetLastError();
  return cudaDeviceSynchronize();
}
