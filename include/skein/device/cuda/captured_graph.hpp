// SPDX-License-Identifier: Apache-2.0
// Work captured as a CUDA graph: what a function gives to the calling thread's stream (and to streams that events join to it)
// becomes one thing that is launched with one call. Capture is in thread-local mode: other threads (a loader, another rank) go on
// as ever.
#pragma once
#include <memory>
#include <utility>

#include "stream.hpp"
#include "workspace.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// A captured piece of work, ready to be launched any number of times. Moves.
class CapturedGraph {
 public:
  /// The graph as the runtime has it. What a capture uses and cannot outlive (a communicator of NCCL) keeps a weak pointer to
  /// this, and releases it when it goes: the CapturedGraph is empty then.
  struct Executable {
    cudaGraphExec_t raw = nullptr;
    std::shared_ptr<const void> workspace{};  // that its kernels use, though the thread's grows meanwhile
    Executable() = default;
    Executable(const Executable&) = delete;
    ~Executable() { release(); }
    void release() noexcept {
      if (raw) ignore(cudaGraphExecDestroy(std::exchange(raw, nullptr)));
    }
  };
  /// The graph that the calling thread is capturing; null: none.
  static std::shared_ptr<Executable> being_captured() { return current(); }

  CapturedGraph() = default;
  CapturedGraph(CapturedGraph&& o) noexcept : executable_(std::move(o.executable_)), nodes_(std::exchange(o.nodes_, 0)) {}
  CapturedGraph& operator=(CapturedGraph&& o) noexcept {
    std::swap(executable_, o.executable_);
    std::swap(nodes_, o.nodes_);
    return *this;
  }

  /// Nothing of what f() launches runs now. The calling thread's workspace must not grow meanwhile. Throws what f throws, and
  /// DeviceError where f did what cannot be captured: waited for the device, say.
  template <class Function> static CapturedGraph capture(Function&& f) {
    cudaStream_t on = stream();
    check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    CapturedGraph made;
    made.executable_ = std::make_shared<Executable>();
    made.executable_->workspace = workspace().hold();
    {
      const Sealed sealed(made.executable_);
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
    std::size_t nodes = 0;
    const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes),
                      status = cudaGraphInstantiate(&made.executable_->raw, graph, 0);
    ignore(cudaGraphDestroy(graph));
    check(counted, "cudaGraphGetNodes");
    check(status, "cudaGraphInstantiate", [&] { return text("of {} nodes", nodes); });
    made.nodes_ = nodes;
    return made;
  }
  /// False too where it has been released by what it was captured with.
  explicit operator bool() const { return executable_ && executable_->raw; }
  /// Kernels, copies and whatever else was captured.
  std::size_t nodes() const { return nodes_; }
  /// On the calling thread's stream; does not wait. Throws DeviceError where there is nothing to launch.
  void launch() const {
    if (!*this) throw DeviceError("this graph is empty: it was never captured, or the communicator that it uses has ended");
    check(cudaGraphLaunch(executable_->raw, stream()), "cudaGraphLaunch", [&] { return text("of {} nodes", nodes_); });
  }

 private:
  static std::shared_ptr<Executable>& current() {
    thread_local std::shared_ptr<Executable> executable;
    return executable;
  }
  struct Sealed {
    explicit Sealed(std::shared_ptr<Executable> made) {
      current() = std::move(made);
      workspace().seal(true);
    }
    ~Sealed() {
      workspace().seal(false);
      current() = nullptr;
    }
    Sealed(const Sealed&) = delete;
  };
  std::shared_ptr<Executable> executable_;
  std::size_t nodes_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::cuda
