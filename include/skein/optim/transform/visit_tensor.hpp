// SPDX-License-Identifier: Apache-2.0
// One row of an optimizer's table as a transform of tensors is given it (TensorUpdate), once the summed gradient is one array;
// and which worker is given which row.
#pragma once
#include "../../core/workers.hpp"
#include "../state.hpp"
#include "tensor_update.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Is a parameter of the part `own` of the arena this worker's? It is one worker's, whole: that one's in whose share of the part
/// its middle lies.
constexpr bool is_of_worker(const plan::Entry& e, const plan::Range& own, const Worker& w) {
  return (e.offset - own.begin + e.stored / 2) * w.count / (own.end - own.begin) == w.index;
}

/// visit(parameter) for row k of the optimizer's table; nothing where it is frozen. `parameters` and `gradients` are arenas, on
/// the device `where`.
template <class O, class Scalar, class Device, class Visit>
void visit_tensor(const BoundOptimizer<O, Scalar, Device>& optimizer, std::size_t k, const StepCall<Scalar>& call,
                  Scalar* parameters, Scalar* gradients, const Visit& visit, Device where = {}) {
  const plan::Entry& e = optimizer.entries()[k];
  const long columns = e.extents.last(), rows = columns > 0 ? e.extents.count() / columns : 0;
  const auto whole = optimizer.complete(parameters, call, e.offset, e.offset + e.stored);
  for_each_range(optimizer.ranges(), whole, [&](const auto& part) {
    TensorUpdate<Scalar, Device> t;
    t.name = optimizer.name(k);
    t.extents = e.extents;
    t.decay = e.decay;
    t.lr = part.lr;
    t.step = part.step;
    t.gradient = {gradients + e.offset, {rows, columns}, {row_pitch(columns), 1}, where};
    t.value = {parameters + e.offset, {rows, columns}, {row_pitch(columns), 1}, where};
    t.state_arrays = part.state;
    t.offset = e.offset;
    const ParameterGroupRange own = range_at(optimizer.ranges(), e.offset);
    t.lr_factor = own.lr_factor, t.decay_factor = own.decay_factor;
    visit(t);
  });
}

}  // namespace skein::inline SKEIN_ABI::optim
