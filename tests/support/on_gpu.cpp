// SPDX-License-Identifier: Apache-2.0
// on_gpu N PROGRAM [arguments]: runs it where there are N GPUs, else says that it was skipped and returns 77.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const int wanted = argc < 3 ? 0 : std::atoi(argv[1]);
  if (wanted < 1) {
    std::fprintf(stderr, "usage: on_gpu N PROGRAM [arguments]\n");
    return 2;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (devices < wanted) {
    std::printf("skipped %s: %d GPUs here, it takes %d\n", argv[2], devices, wanted);
    return 77;
  }
  execv(argv[2], argv + 2);
  std::perror(argv[2]);
  return 1;
}
