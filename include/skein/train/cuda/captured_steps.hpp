// SPDX-License-Identifier: Apache-2.0
// The steps of a training that a GPU has as CUDA graphs, and the kinds of steps that there have been. By the kinds all ranks
// decide alike whether a step is launched kernel by kernel, captured or replayed; the graphs are each rank's own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../device/cuda/captured_graph.hpp"
#include "../step/step_device.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Steps that are alike for all ranks.
struct KindOfStep {
  CapturedStepKey one{};  ///< of this rank's
  bool launched = false;  ///< one has been, kernel by kernel
  bool refused = false;   ///< they cannot be captured, by this rank or another one
  bool agreed = false;    ///< all ranks have captured one
  std::size_t bytes = 0;  ///< of the block of arguments
};

/// A step of one rank as a graph, which may be empty.
struct CapturedStep {
  CapturedStepKey key{};
  std::uint64_t used = 0;  ///< in which step last
  cuda::CapturedGraph graph{};
};

/// The kinds and the graphs of one rank.
class CapturedSteps {
 public:
  /// Null: there are too many.
  KindOfStep* kind_of(const CapturedStepKey& key) {
    for (KindOfStep& k : kinds_)
      if (k.one.alike(key)) return &k;
    if (kinds_.size() == most) return nullptr;
    return &kinds_.emplace_back(KindOfStep{.one = key});
  }
  /// The graph of such a step, which is the `step`-th; an empty one where it has none. Null where there are too many, and the
  /// step is this rank's alone: how many there are, it alone knows. Of an exchange the one that was used longest ago goes.
  CapturedStep* find(const CapturedStepKey& key, std::uint64_t step) {
    for (const auto& c : steps_)
      if (c->key == key) return c->used = step, c.get();
    if (steps_.size() == most) {
      if (!key.exchange) return nullptr;
      steps_.erase(std::min_element(steps_.begin(), steps_.end(), [](auto& a, auto& b) { return a->used < b->used; }));
      note_ = text(
          "steps are captured again and again, since there are more than {} kinds of them: set StepOptions::graph = false on all "
          "ranks",
          most);
    }
    steps_.push_back(std::make_unique<CapturedStep>(CapturedStep{key, step, {}}));
    return steps_.back().get();
  }
  /// The stages of a StepLaunch are captured. False where that is refused, by this rank or another one: a layer waits for the
  /// device, say. All ranks of an exchange launch graphs, or none does.
  template <class Launch> bool capture(CapturedStep& c, KindOfStep& kind, const Launch& launch) {
    std::string why;
    try {
      c.graph = cuda::CapturedGraph::capture([&] { launch.all_stages(); });
    } catch (const DeviceError& e) {
      why = e.what();
      if (kind.one.exchange && kind.agreed)
        throw DeviceError("a step that all ranks had captured cannot be captured again on this one: " + why +
                          "; set StepOptions::graph = false on all ranks");
    }
    if (kind.one.exchange && !kind.agreed) {
      const int rank = launch.first_refusing(!why.empty());
      kind.agreed = rank < 0;
      if (rank >= 0 && why.empty()) why = text("rank {}'s were refused", rank);
    }
    if (why.empty()) return true;
    kind.refused = true;
    c.graph = {};
    note_ = "steps are launched kernel by kernel, since they cannot be captured: " + why;
    return false;
  }
  /// Graphs are void; what the ranks have agreed on stays.
  void forget_graphs() { steps_.clear(); }
  void forget() { steps_.clear(), kinds_.clear(); }
  /// The block of arguments has moved: other graphs read the old one.
  void forget_all_but(const CapturedStep& one) {
    for (auto& c : steps_)
      if (c.get() != &one) c->graph = {};
  }
  /// Graphs that are there.
  std::size_t graphs() const {
    return static_cast<std::size_t>(std::count_if(steps_.begin(), steps_.end(), [](auto& c) { return bool{c->graph}; }));
  }
  /// Why steps are not captured, or too often; "".
  const std::string& note() const { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }

 private:
  static constexpr std::size_t most = 32;  // more are not steps that come again
  std::vector<KindOfStep> kinds_;
  std::vector<std::unique_ptr<CapturedStep>> steps_;
  std::string note_;
};

}  // namespace skein::inline SKEIN_ABI::train
