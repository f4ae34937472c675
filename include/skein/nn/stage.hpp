// SPDX-License-Identifier: Apache-2.0
// A stage of a pipeline whatever its network: what the interpreter of a schedule sees of nn::StageExecutor. Which stages a
// process has is known when it runs.
#pragma once
#include <cstdint>
#include <optional>

#include "../core/workers.hpp"
#include "../device/batch_view.hpp"
#include "../device/span.hpp"
#include "layer.hpp"
#include "loss/loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// One forward of a stage.
struct StageCall {
  int slot = 0;
  Phase phase = Phase::training;
  double scale = 1;       ///< factor of the loss's gradient
  double loss_scale = 1;  ///< another, of models that scale their loss
  std::uint64_t key = 0;
  std::optional<int> version{};  ///< the saved weights that it reads; none: the model's
};

/// What a StageExecutor is made for.
struct StageOptions {
  long batch = 0;       ///< most samples of a micro-batch
  int slots = 1;        ///< micro-batches in flight
  int versions = 0;     ///< of the weights that may be saved
  bool halves = false;  ///< will backward come in two halves
  bool first = true;    ///< nobody wants the gradient of its input
  int ordinal = 0;      ///< layers before it, as they are executed
};

/// A stage whatever its network, on a device. Rows of arrays are a pitch apart.
template <class Scalar, class Activation, class Device> class AnyStage {
 public:
  virtual ~AnyStage() = default;
  /// Makes all memory.
  virtual void reserve(Workers& workers, const StageOptions& options) = 0;
  virtual void prepare(long count) = 0;

  virtual long input_pitch() const = 0;
  virtual long output_pitch() const = 0;
  virtual Activation* input(int slot) = 0;   ///< (batch, input_pitch), to be written before forward
  virtual Activation* output(int slot) = 0;  ///< (batch, output_pitch), after forward; stays until the slot's next
  /// (batch, output_pitch) and room for gradient_tail scalars: to be written before backward (the last stage does it itself).
  virtual Activation* gradient(int slot) = 0;
  virtual Activation* input_gradient(int slot) = 0;  ///< (batch, input_pitch) and room likewise, after backward
  /// (batch, output_pitch) of the last stage: what its loss has read in the last forward of the slot.
  virtual const Scalar* outputs(int slot) = 0;

  /// Runs forward for one micro-batch. The first stage reads its x (null elsewhere: the others read input()); the last compares
  /// with its labels or targets, if it has such.
  virtual void forward(const StageCall& call, const BatchView<Scalar, Device>& batch) = 0;
  virtual LossSums sums(int slot) const = 0;  ///< of the last stage's forward
  /// `accumulate`: adds to the gradients that are there.
  virtual void backward(int slot, bool accumulate) = 0;
  virtual void backward_input(int slot, bool accumulate) = 0;
  virtual void backward_parameters(int slot, bool accumulate) = 0;
  /// All of the gradients are in gradients() afterwards.
  virtual void reduce_workers() = 0;
  /// Copies the weights; the slots that have read them go on with the copy.
  virtual void save_version(int version) = 0;

  /// To be written without a lease, between two passes; weights_changed() goes with it.
  virtual DeviceSpan<Scalar, Device> unguarded_parameters() = 0;
  virtual void weights_changed() = 0;                  ///< the next pass makes copies of them anew
  virtual DeviceSpan<Scalar, Device> gradients() = 0;  ///< with the tail
  virtual long bytes() const = 0;                      ///< of what grows with micro-batches and slots
};

}  // namespace skein::inline SKEIN_ABI::nn
