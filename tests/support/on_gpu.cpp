// SPDX-License-Identifier: Apache-2.0
// on_gpu PROGRAM [arguments]: runs it where there is a GPU, else says that it was skipped and returns 77.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  int devices = 0;
  if (argc < 2) return 2;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped %s: no GPU\n", argv[1]);
    return 77;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 1;
}
