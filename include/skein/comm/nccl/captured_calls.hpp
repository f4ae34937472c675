// SPDX-License-Identifier: Apache-2.0
// The CUDA graphs that have captured calls of a communicator. NCCL ends a communicator only when no graph knows it any more, and
// waits for that without a limit; so whoever ends it releases them first.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "../../core/error.hpp"
#include "../../device/cuda/captured_graph.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Asks whether a call may be made while the calling thread's stream is being captured. Throws ArgumentError where the capture
/// is not the library's, and DeviceError where this communicator's calls are not to be captured.
inline void check_capture(bool may_capture) {
  if (!cuda::CapturedGraph::being_captured())
    throw ArgumentError(
        "calls of NcclComm are captured by cuda::CapturedGraph::capture, whose graphs are released when the communicator ends: "
        "NCCL would wait for any other graph without a limit");
  if (!may_capture)
    throw DeviceError(
        "calls of an NcclComm whose ranks share a process are not captured: NCCL warns that this may deadlock. A process for "
        "each GPU captures; NcclOptions::capture_in_one_process tries it here");
}

/// Graphs with calls of one communicator in them. Not guarded: the engine's lock is around each call.
class CapturedCalls {
 public:
  /// The graph that is being captured has a call of the communicator from now on.
  void note() {
    const std::shared_ptr<cuda::CapturedGraph::Executable> graph = cuda::CapturedGraph::being_captured();
    std::erase_if(graphs_, [&](const auto& g) { return g.expired() || g.lock() == graph; });
    graphs_.push_back(graph);
  }
  /// Graphs that live.
  std::size_t count() const {
    return static_cast<std::size_t>(std::count_if(graphs_.begin(), graphs_.end(), [](const auto& g) { return !g.expired(); }));
  }
  void release() {
    for (const auto& g : graphs_)
      if (const auto graph = g.lock()) graph->release();
    graphs_.clear();
  }

 private:
  std::vector<std::weak_ptr<cuda::CapturedGraph::Executable>> graphs_;
};

}  // namespace skein::inline SKEIN_ABI::comm
