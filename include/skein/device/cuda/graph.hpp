// SPDX-License-Identifier: Apache-2.0
// Work captured as a CUDA graph: what a function gives to the calling thread's stream (and to streams that events join to it) becomes
// one thing that is launched with one call. Capture is in thread-local mode: other threads (a loader, another rank) go on as ever.
#pragma once
#include <utility>

#include "stream.hpp"
#include "workspace.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// A captured piece of work, ready to be launched any number of times. Moves.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& o) noexcept : executable_(std::exchange(o.executable_, nullptr)), nodes_(std::exchange(o.nodes_, 0)) {}
  Graph& operator=(Graph&& o) noexcept {
    std::swap(executable_, o.executable_);
    std::swap(nodes_, o.nodes_);
    return *this;
  }
  ~Graph() { if (executable_) (void)cudaGraphExecDestroy(executable_); }

  /// Nothing of what f() launches runs now. The calling thread's workspace must not grow meanwhile. Throws what f throws, and
  /// DeviceError where f did what cannot be captured: waited for the device, say.
  template <class Function> static Graph capture(Function&& f) {
    cudaStream_t on = stream();
    check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    {
      const Sealed sealed;
      try {
        f();
      } catch (...) {
        (void)cudaStreamEndCapture(on, &graph);
        if (graph) (void)cudaGraphDestroy(graph);
        (void)cudaGetLastError();
        throw;
      }
    }
    check(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
    Graph made;
    std::size_t nodes = 0;
    const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes), status = cudaGraphInstantiate(&made.executable_, graph, 0);
    (void)cudaGraphDestroy(graph);
    check(counted, "cudaGraphGetNodes");
    check(status, "cudaGraphInstantiate", [&] { return "of " + std::to_string(nodes) + " nodes"; });
    made.nodes_ = nodes;
    return made;
  }
  explicit operator bool() const { return executable_ != nullptr; }
  /// Kernels, copies and whatever else was captured.
  std::size_t nodes() const { return nodes_; }
  /// On the calling thread's stream; does not wait.
  void launch() const { check(cudaGraphLaunch(executable_, stream()), "cudaGraphLaunch", [&] { return "of " + std::to_string(nodes_) + " nodes"; }); }

 private:
  struct Sealed {
    Sealed() { workspace().seal(true); }
    ~Sealed() { workspace().seal(false); }
    Sealed(const Sealed&) = delete;
  };
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::cuda
