// SPDX-License-Identifier: Apache-2.0
// Inside of the pretend CUDA runtime: a test double of cudart and of the libraries on it whose devices are parts of the host's
// memory. Nothing here is fast, and nothing that runs on it was run on a GPU. README.md says what is pretended.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace pretend {

inline constexpr int most_devices = 8;

/// How many devices there are: SKEIN_PRETEND_DEVICES, or 4.
int device_count();
/// The calling thread's device.
int current_device();
/// Notes `status` as the calling thread's last error, and returns it.
cudaError_t note(cudaError_t status);
/// Prints "pretend CUDA: ..." once for each fault: what a GPU would answer with a bare "illegal memory access".
void complain(const std::string& words);

// ---- memory
/// Makes the memory of some devices (a bit each) readable for the host while it lives: what runs "on the device" holds one.
/// Nests, over threads too. Without one a read by the host is a segmentation fault, unless SKEIN_PRETEND_OPEN=1.
class Open {
 public:
  explicit Open(unsigned devices);
  ~Open();
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  unsigned devices_;
};
inline unsigned bit(int device) { return 1u << device; }

/// What an address is.
struct Place {
  enum Kind { plain, pinned, device } kind = plain;
  int ordinal = -1;      // of the device
  std::size_t left = 0;  // bytes from the address to the end of its allocation
  void* base = nullptr;  // where the allocation begins
};
Place place_of(const void* p);

/// Whether a kernel of `device` may touch so many bytes there; if not, complains in the name of `what`.
bool on_device(const void* p, std::size_t bytes, int device, const char* what);
/// The device has failed for good: every later call says so, as after an illegal address on a GPU.
void fail_device(int device, cudaError_t status);
cudaError_t device_status(int device);

// ---- streams
/// What a stream does: a closure, run with the memory of `devices` open. It may run several times (in a graph).
struct Operation {
  std::function<void()> run;
  unsigned devices = 0;
  const char* name = "";
  bool blocks = false;  // it may wait for other streams: never run on the caller's thread
};
/// Gives the stream an operation. It is run at once where the stream has nothing to do; behind what blocks (a collective), and
/// always where SKEIN_PRETEND_STREAMS=async, the stream's own thread runs it; where the stream captures it becomes a node of a
/// graph.
cudaError_t submit(cudaStream_t stream, Operation operation);
/// cudaErrorStreamCaptureUnsupported where a capture forbids this thread calls that may synchronise (and breaks that capture),
/// else 0.
cudaError_t unsafe_call();
int device_of(cudaStream_t stream);
bool capturing(cudaStream_t stream);
/// The number of the capture that the stream is part of, from 1; 0: of none.
unsigned long long capture_number(cudaStream_t stream);
/// Blocks until the stream has done all that it was given.
void drain(cudaStream_t stream);
/// Counts for skein_pretend_allocations() and skein_pretend_waits().
/// True where a test has said that this allocation finds no room.
bool count_allocation();
void count_wait();

}  // namespace pretend

/// Calls so far, of all threads, that made memory (of devices, page-locked), and that blocked the host until something was done:
/// for tests of what must do neither.
extern "C" long skein_pretend_allocations();
extern "C" long skein_pretend_waits();
/// The n-th allocation from now on finds no room; 0: none.
extern "C" void skein_pretend_fail_allocation(long n);

/// A launch of a kernel: run(copy) now or in a graph, destroy(copy) at the end. include/skein/device/cuda/launch.hpp calls it.
extern "C" int skein_kernel_launch(cudaStream_t stream, void (*run)(void*), void* copy, void (*destroy)(void*));
