// SPDX-License-Identifier: Apache-2.0
// WeightVersions: older versions of a stage's weights, with the copies that layers derive of them, for micro-batches whose
// forward has read those (PipeDream: Narayanan et al., SOSP 2019). A run reads the newest, or one of them.
#pragma once
#include <optional>
#include <vector>

#include "executor_memory.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// So many older versions of the weights of one executor's memory, which stays where it is.
template <class Memory_> class WeightVersions {
  using Scalar = typename Memory_::Scalar;
  using Activation = typename Memory_::Activation;
  using Device = typename Memory_::Device;
  using Run = typename Memory_::Run;
  static constexpr bool mixed = Memory_::mixed;

 public:
  WeightVersions(Memory_& memory, int versions) : memory_(&memory), newest_(memory.state(0).run) {
    const auto where = memory.model().where();
    for (int k = 0; k < versions; ++k) {
      parameters_.emplace_back(count(memory.sizes.stored), where);
      packed_.emplace_back(count(memory.sizes.packed_weights), where);
      converted_.emplace_back(newest_converted() ? count(memory.sizes.stored) : 0, where);
    }
  }

  /// Copies the newest weights into version k.
  void save(int k) {
    copy(parameters_[at(k)], newest_.parameters);
    copy(packed_[at(k)], newest_.packed_weights);
    if (newest_converted()) copy(converted_[at(k)], newest_converted());
  }
  /// The run reads version k; none: the newest.
  void select(Run& r, std::optional<int> k) {
    r.parameters = k ? parameters_[at(*k)].data() : newest_.parameters;
    r.packed_weights = k ? packed_[at(*k)].data() : newest_.packed_weights;
    if constexpr (mixed) r.weights = k ? converted_[at(*k)].data() : newest_.weights;
  }
  std::size_t bytes() const {
    std::size_t n = 0;
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      n += (parameters_[k].size() + packed_[k].size()) * sizeof(Scalar) + converted_[k].size() * sizeof(Activation);
    return n;
  }

 private:
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }
  static std::size_t count(long n) { return static_cast<std::size_t>(n); }
  const Activation* newest_converted() const {
    if constexpr (mixed) return newest_.weights;
    else return nullptr;
  }
  template <class T> void copy(Arena<T, Device>& to, const T* from) {
    if (to.size() > 0) Memory<Device>::copy(to.data(), from, to.size() * sizeof(T), memory_->model().where());
  }

  Memory_* memory_;
  Run newest_;
  std::vector<Arena<Scalar, Device>> parameters_, packed_;
  std::vector<Arena<Activation, Device>> converted_;
};

}  // namespace skein::inline SKEIN_ABI::nn
