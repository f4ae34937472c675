// SPDX-License-Identifier: Apache-2.0
// Model<Network, Input, Device, Precision>: a network for one input shape, with its weights, and gradients where it is trained:
// parameters, gradients, buffers, one array each. What it is made of is known at compile time; what is remembered between forward
// and backward belongs to nn/executor.hpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "../core/random.hpp"
#include "../device/memory.hpp"
#include "../plan/buckets.hpp"
#include "../tensor/view.hpp"
#include "check.hpp"
#include "fused_network.hpp"
#include "gradient_state.hpp"
#include "identity.hpp"
#include "load_options.hpp"
#include "precision.hpp"
#include "program.hpp"
#include "weights.hpp"

namespace skein::inline SKEIN_ABI {

/// The gradient arena ends with a few scalars that travel with the first bucket: sums of loss, weight and correct answers of the
/// batch.
inline constexpr long gradient_tail = 16;

/// Where a network stands in a larger one, whose initial values it has: the numbers of its first parameter and buffer in that
/// one's tables.
struct ModelPart {
  int parameter = 0, buffer = 0;
};

namespace nn {
namespace detail {
/// A view of a parameter in the arena, whose rows are padded.
template <int Rank, class Scalar, class Device>
TensorView<const Scalar, Rank, Device> view_of(const Scalar* first, const Extents& e, Device where) {
  Dims<Rank> extents, strides;
  long step = 1;
  for (int i = Rank - 1; i >= 0; --i) {
    extents[i] = e[i];
    strides[i] = step;
    step *= i == Rank - 1 ? row_pitch(e[i]) : e[i];
  }
  return {first, extents, strides, where};
}
/// What executes a network has no fault, and its parameters.
constexpr bool is_fused_well(const MemoryRequirements& fused, const MemoryRequirements& parts) {
  return fused.fault == Fault::none && fused.stored == parts.stored;
}
}  // namespace detail

/// Two tables of one network describe the same arrays.
constexpr bool same_arrays(std::span<const plan::Entry> a, std::span<const plan::Entry> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].offset != b[i].offset || !(a[i].extents == b[i].extents)) return false;
  return true;
}

template <class Number> inline constexpr bool is_a_seed = false;
template <class Model> inline constexpr bool is_copied = false;
template <class T> inline constexpr bool is_a_shape = requires { Extents(T::extents); };  // or Tokens
template <class T> inline constexpr bool is_a_device = DeviceTag<T>;  // a value: of a concept clang would explain every part
}  // namespace nn

/// Precision_: float or double for everything (float as it comes), or a Precision (nn/precision.hpp).
template <class Network, class Input, class Device_ = Cpu, class Precision_ = float> class Model {
  static_assert(nn::is_a_device<Device_>,
                "the third argument of a Model is its device, Cpu or Cuda; the type of its numbers is the fourth: "
                "sk::Model<Network, Input, sk::Cpu, double>");
  static_assert(sizeof(check::FirstFault<Network, Input>) > 0);
  using Device = std::conditional_t<DeviceTag<Device_>, Device_, Cpu>;

 public:
  using network = Network;
  using input = Input;
  using device = Device;
  using precision = typename detail::PrecisionOf<Precision_>::type;
  static_assert(detail::has_its_units<precision, Device>,
                "precision::tf32 is a mode of a GPU's matrix units: on the Cpu use precision::fp32");
  using Scalar = typename precision::master;          ///< the type of parameters, gradients, buffers, optimizer state and files
  using Activation = typename precision::activation;  ///< the type of the outputs of layers and of their gradients
  using Element = std::conditional_t<is_tokens<Input>, std::int32_t, Scalar>;  ///< of samples
  /// May gradients of activations be too small for their type, so that the loss is scaled up: 16-bit ones.
  static constexpr bool scales_loss = is_half<Activation>;

  /// The plan of the network: layers, shapes, offsets, flops. A constant.
  static constexpr nn::MemoryRequirements sizes = nn::analyze<Network>(Input::extents);
  /// The network with fused layers, as it is executed; of one that is refused none, so that no further error follows.
  using fused = typename nn::detail::ExecutedNetwork<Network, Device, sizes.fault == nn::Fault::none>::type;
  static constexpr const auto& program = nn::program<Network, Input>;
  static constexpr Extents output_extents = sizes.output;
  static constexpr long parameter_count = sizes.parameters;  ///< without padding
  static constexpr long flops = sizes.flops;                 ///< of forward, for one sample
  static_assert(sizes.fault != nn::Fault::none || nn::detail::is_fused_well(nn::analyze<fused>(Input::extents), sizes),
                "a fused layer must have the parameters of its parts, and fit where they do");

  /// A hash of shapes, names and offsets, by which ranks compare their models.
  static constexpr std::uint64_t fingerprint = plan::fingerprint(nn::program<Network, Input>);

  /// Initial values depend on the seed and on each parameter's place in the table, never on threads or ranks.
  /// Without `where` the model is made on the current device: the rank's own GPU.
  explicit Model(Seed seed = {}, Device where = Memory<Device>::here(), ModelPart part = {})
      : weights_(std::make_shared<Weights<Scalar, Device>>(arena_size(), static_cast<std::size_t>(sizes.buffers), where)),
        seed_(seed) {
    initialize(part);
  }

  /// A number that is no Seed is refused.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit Model(Number) : Model() {
    static_assert(nn::is_a_seed<Number>, "the seed of a model is a Seed: sk::Model<...> model{sk::Seed{42}}");
  }
  /// A copy is refused: a model can be moved.
  Model(const Model&) : Model() {
    static_assert(
        nn::is_copied<Model>,
        "a model is not copied, since nobody could tell which of the two is trained: take it as Model&, or std::move it; "
        "a second model takes its weights from a file, save_weights and load");
  }
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  /// The same weights for samples of another shape: `auto longer = model.with_input<Shape<128>>();`. Both read and write one
  /// Weights, which lives as long as one of them; each has gradients of its own. The network's parameters must be the same there.
  template <class Other> Model<Network, Other, Device, Precision_> with_input() {
    using Same = Model<Network, Other, Device, Precision_>;
    static_assert(nn::same_arrays(program.parameters(), Same::program.parameters()) &&
                      nn::same_arrays(program.buffers(), Same::program.buffers()),
                  "with_input: for that input the network has other parameters, so that it cannot use these weights");
    (void)own();
    return Same(weights_, seed_);
  }

  /// All parameters in one array, padding included, read-only.
  DeviceSpan<const Scalar, Device> parameters() const { return own().read(); }
  /// The right to write to it, while the lease lives: model.modify()[i] = 1. Copies that layers derive of the weights are made
  /// anew after it has ended.
  [[nodiscard]] typename Weights<Scalar, Device>::Lease modify() { return own().modify(); }
  Weights<Scalar, Device>& weights() { return own(); }
  const Weights<Scalar, Device>& weights() const { return own(); }
  DeviceSpan<Scalar, Device> buffers() { return own().buffers(); }
  DeviceSpan<const Scalar, Device> buffers() const { return own().buffers(); }

  /// The gradients, allocated at the first call: a model that only predicts has none.
  DeviceSpan<Scalar, Device> gradients() {
    gradient_state_ = nn::GradientState::made;  // they may be written
    handed_out_ = true;
    return gradient_arena().sub(0, static_cast<std::size_t>(sizes.stored));
  }
  DeviceSpan<const Scalar, Device> gradients() const {
    if (!handed_out_) handed_out_ = true;
    return {placed_ ? placed_.get() : gradients_.data(), has_gradients() ? static_cast<std::size_t>(sizes.stored) : 0};
  }
  /// They are there: somebody has asked for them, or placed them.
  bool has_gradients() const { return placed_ || gradients_.size() > 0; }
  /// They are, or will be, in memory of the model's own: nobody has placed them.
  bool owns_gradients() const { return !placed_; }
  /// What they are to a loop by hand: Executor and BoundOptimizer say so.
  nn::GradientState gradient_state() const {
    return gradient_state_ == nn::GradientState::part && handed_out_ ? nn::GradientState::made : gradient_state_;
  }
  void set_gradient_state(nn::GradientState state) { gradient_state_ = state; }
  /// Gives gradients that nobody has asked for yet a place in memory of another owner: `memory` has room for gradient_arena(),
  /// zeroed and aligned to 64 bytes, and lives as long as the model has it. Else they are where they were.
  void place_gradients(std::shared_ptr<Scalar> memory) {
    if (!has_gradients()) placed_ = std::move(memory);
  }
  /// Gradients and the sums of the batch behind them, as one array, for an all-reduce.
  DeviceSpan<Scalar, Device> gradient_arena() {
    constexpr auto size = static_cast<std::size_t>(sizes.stored + gradient_tail);
    if (placed_) return {placed_.get(), size};
    if (gradients_.size() == 0) gradients_ = Arena<Scalar, Device>(size, where());
    return gradients_.span();
  }
  /// Takes the weights of a file that a trainer, or train::save_weights, has written: parameters and buffers, without optimizer
  /// and place. Throws FileError, with all names that do not match, for a file of another network; nothing is changed then. Needs
  /// skein/train/weights_file.hpp, which skein/skein.hpp has.
  void load(const std::string& path, const LoadOptions& options = {}) { load_into(*this, path, options); }

  /// A count of changes of the parameters.
  std::uint64_t version() const { return own().version(); }
  Device where() const { return own().where(); }
  Seed seed() const { return seed_; }

  /// Calls visit(name, view) for each parameter: a TensorView<const Scalar, R, Device> of its logical extents, without the
  /// padding of rows, R from 1 to 4. `model.for_each_parameter([](std::string_view name, auto view) { ... });`
  template <class Visit> void for_each_parameter(Visit&& visit) const {
    for (const plan::Entry& e : program.parameters()) {
      const auto view = [&]<int Rank>(std::integral_constant<int, Rank>) {
        if (e.extents.rank == Rank)
          visit(std::string_view(program.name(e)), nn::detail::view_of<Rank>(parameters().data + e.offset, e.extents, where()));
      };
      view(std::integral_constant<int, 1>{}), view(std::integral_constant<int, 2>{});
      view(std::integral_constant<int, 3>{}), view(std::integral_constant<int, 4>{});
    }
  }

  /// The table's row of a parameter by its name, "0.weight": checked at compile time where the name is a constant.
  static consteval plan::Entry parameter(std::string_view name) {
    for (const plan::Entry& e : nn::program<Network, Input>.parameters())
      if (nn::program<Network, Input>.name(e) == name) return e;
    throw "this model has no parameter of that name";
  }

 private:
  template <class, class, class, class> friend class Model;
  Model(std::shared_ptr<Weights<Scalar, Device>> weights, Seed seed) : weights_(std::move(weights)), seed_(seed) {}
  /// The weights of a model that is there.
  Weights<Scalar, Device>& own() const {
    if (!weights_) [[unlikely]]
      skein::detail::refuse_moved("the model");
    return *weights_;
  }
  static constexpr std::size_t arena_size() { return static_cast<std::size_t>(sizes.stored); }
  void initialize(ModelPart part) {
    Arena<Scalar, Cpu> host;
    Scalar* p = nullptr;
    if constexpr (std::same_as<Device, Cpu>) {
      p = own().unguarded().data;
    } else {
      host = Arena<Scalar, Cpu>(arena_size());
      p = host.data();
    }
    fill(program.parameters(), p, part.parameter);
    if constexpr (!std::same_as<Device, Cpu>)
      Memory<Device>::from_host(own().unguarded().data, p, arena_size() * sizeof(Scalar), where());
    const auto own = weights_->buffers();
    const std::size_t n = own.size;
    if (n == 0) return;
    if constexpr (std::same_as<Device, Cpu>) {
      fill(program.buffers(), own.data, part.buffer);
    } else {
      Arena<Scalar, Cpu> b(n);
      fill(program.buffers(), b.data(), part.buffer);
      Memory<Device>::from_host(own.data, b.data(), n * sizeof(Scalar), where());
    }
  }
  void fill(std::span<const plan::Entry> entries, Scalar* to, int first) const {
    const std::uint64_t key = random_key(seed_.value, 0x6d6f64656c);  // "model"
    std::uint64_t stream = static_cast<std::uint64_t>(first);
    for (const plan::Entry& e : entries)
      nn::initialize(to + e.offset, e.extents, static_cast<nn::Init>(e.init), e.fan_in, e.fan_out, key, stream++);
  }

  std::shared_ptr<Weights<Scalar, Device>> weights_;
  Arena<Scalar, Device> gradients_;
  std::shared_ptr<Scalar> placed_;  // gradients elsewhere, with their owner
  nn::GradientState gradient_state_ = nn::GradientState::none;
  mutable bool handed_out_ = false;  // the gradients, to whoever may use them
  Seed seed_;
};

/// What stands for a model whose second argument is no shape: one error, and none that follows from it.
template <class Network, class Input, class Device_, class Precision_>
requires(!nn::is_a_shape<Input>) class Model<Network, Input, Device_, Precision_> : public Model<nn::Identity, Shape<1>> {
  static_assert(nn::is_a_shape<Input>,
                "the second argument of a Model is the shape of a sample, and the first is the network: "
                "sk::Model<Network, sk::Shape<28, 28, 1>>, or sk::Tokens<T>");

 public:
  using Model<nn::Identity, Shape<1>>::Model;
};

}  // namespace skein::inline SKEIN_ABI
