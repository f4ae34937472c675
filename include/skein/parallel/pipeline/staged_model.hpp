// SPDX-License-Identifier: Apache-2.0
// StagedModel: the network of a pipeline, of which this process holds its own stages and nothing else: no arena of a neighbour's.
// Names, table, hash and initial values are those of the whole network in one Model of the same seed.
#pragma once
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "../../nn/stage_executor.hpp"
#include "../../plan/placement.hpp"
#include "stages.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// A stage's part of the whole network's tables, as an optimizer binds to it.
template <class Program> struct StageTable {
  const Program* whole = nullptr;
  std::vector<plan::Entry> entries{};  ///< offsets count from the stage's first
  long stored_parameters = 0;
  std::span<const plan::Entry> parameters() const { return entries; }
  std::span<const plan::PathPart> parts() const { return whole->parts(); }
  plan::Name name(const plan::Entry& e) const { return whole->name(e); }
};

/// Pipeline: Pipeline<Stages...>; the rest as for Model. Made from the pipeline, which knows which stages this process has.
template <class Pipeline, class Input, class Device = Cpu, class Precision_ = float> class StagedModel {
 public:
  using network = typename Pipeline::network;
  static_assert(sizeof(check::FirstFault<network, Input>) > 0);
  using input = Input;
  using device = Device;
  using precision = typename skein::detail::PrecisionOf<Precision_>::type;
  using Scalar = typename precision::master;
  using Activation = typename precision::activation;
  using Element = std::conditional_t<is_tokens<Input>, std::int32_t, Scalar>;  ///< of samples
  using Stage = nn::AnyStage<Scalar, Activation, Device>;
  static constexpr bool scales_loss = is_half<Activation>;
  static constexpr nn::MemoryRequirements sizes = nn::analyze<network>(Input::extents);
  static constexpr const auto& program = nn::program<network, Input>;
  static constexpr Extents output_extents = sizes.output;
  static constexpr long parameter_count = sizes.parameters;
  static constexpr long flops = sizes.flops;
  static constexpr std::uint64_t fingerprint = plan::fingerprint(nn::program<network, Input>);
  static constexpr int stages = Pipeline::stage_count;

  explicit StagedModel(const Pipeline& pipeline, Seed seed = {}) : seed_(seed) {
    each([&]<int I>(std::integral_constant<int, I>) {
      if (pipeline.holds(I)) std::get<I>(held_) = std::make_unique<StageModel<I>>(seed, where_, part_of(I));
    });
  }

  bool holds(int stage) const {
    bool held = false;
    each([&]<int I>(std::integral_constant<int, I>) { held = held || (I == stage && std::get<I>(held_)); });
    return held;
  }
  /// Which stage has which scalars of the whole network's arena.
  static constexpr plan::Placement placement() {
    std::vector<plan::Range> parts;
    each([&]<int I>(std::integral_constant<int, I>) {
      const long begin = place<I>().parameter;
      parts.push_back({begin, begin + nn::analyze<StageNet<I>>(StageInput<I>::extents).stored});
    });
    return plan::Placement::staged(std::move(parts));
  }
  /// Which stage has which scalars of the whole network's buffers.
  static constexpr plan::Placement buffer_placement() {
    std::vector<plan::Range> parts;
    each([&]<int I>(std::integral_constant<int, I>) {
      const long begin = place<I>().buffer;
      parts.push_back({begin, begin + nn::analyze<StageNet<I>>(StageInput<I>::extents).buffers});
    });
    return plan::Placement::staged(std::move(parts));
  }
  /// What of them a stage has.
  static constexpr plan::Range range(int stage) { return placement().part(stage); }
  static constexpr plan::Range buffer_range(int stage) { return buffer_placement().part(stage); }
  /// The arena of a stage that this process holds; empty for another. Whoever writes to it has a lease.
  DeviceSpan<Scalar, Device> parameters(int stage) {
    DeviceSpan<Scalar, Device> s;
    each([&]<int I>(std::integral_constant<int, I>) {
      if (I == stage && std::get<I>(held_)) s = std::get<I>(held_)->weights().unguarded();
    });
    return s;
  }
  DeviceSpan<Scalar, Device> gradients(int stage) {
    DeviceSpan<Scalar, Device> s;
    each([&]<int I>(std::integral_constant<int, I>) {
      if (I == stage && std::get<I>(held_)) s = std::get<I>(held_)->gradients();
    });
    return s;
  }
  DeviceSpan<Scalar, Device> buffers(int stage) {
    DeviceSpan<Scalar, Device> s;
    each([&]<int I>(std::integral_constant<int, I>) {
      if (I == stage && std::get<I>(held_)) s = std::get<I>(held_)->buffers();
    });
    return s;
  }
  /// Bytes of parameters and gradients of this process.
  std::size_t bytes() {
    std::size_t n = 0;
    for (int s = 0; s < stages; ++s) n += (parameters(s).size + gradients(s).size) * sizeof(Scalar);
    return n;
  }
  Device where() const { return where_; }
  Seed seed() const { return seed_; }
  /// While it lives, the weights of the stages that are held may change, and no pass begins (nn/weights.hpp); copies of them are
  /// made anew after it.
  class [[nodiscard]] Lease {
   public:
    explicit Lease(StagedModel& model) {
      leases_.reserve(static_cast<std::size_t>(stages));
      each([&]<int I>(std::integral_constant<int, I>) {
        if (std::get<I>(model.held_)) leases_.push_back(std::get<I>(model.held_)->weights().modify());
      });
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    /// Nothing was written after all: copies stay good.
    void unchanged() {
      for (auto& lease : leases_) lease.unchanged();
    }

   private:
    std::vector<typename Weights<Scalar, Device>::Lease> leases_;
  };
  Lease modify() { return Lease(*this); }

  /// What runs a stage that is held; the loss is the last one's.
  template <class Loss> std::unique_ptr<Stage> executor(int stage, const Loss& loss) {
    std::unique_ptr<Stage> made;
    each([&]<int I>(std::integral_constant<int, I>) {
      if (I != stage || !std::get<I>(held_)) return;
      if constexpr (I + 1 == stages) made = std::make_unique<nn::StageExecutor<StageModel<I>, Loss>>(*std::get<I>(held_), loss);
      else made = std::make_unique<nn::StageExecutor<StageModel<I>, nn::NoLoss>>(*std::get<I>(held_), nn::NoLoss{});
    });
    return made;
  }
  /// Layers before the stage, as they are counted for random numbers.
  static constexpr int ordinal(int stage) {
    int n = 0;
    each([&]<int I>(std::integral_constant<int, I>) {
      if (I == stage) n = place<I>().ordinal;
    });
    return n;
  }
  /// The stage's rows of the parameter table.
  static auto table(int stage) {
    const plan::Range r = range(stage), rows = plan::rows_within(program.parameters(), r);
    StageTable<std::remove_cvref_t<decltype(program)>> t{&program, {}, r.end - r.begin};
    for (long k = rows.begin; k < rows.end; ++k) {
      t.entries.push_back(program.parameters()[static_cast<std::size_t>(k)]);
      t.entries.back().offset -= r.begin;
    }
    return t;
  }

 private:
  using StageList = typename Pipeline::stages;
  template <int I> using StageNet =
      typename parallel::detail::Joined<typename parallel::detail::ChildrenOf<TypeAt<StageList, I>>::type>::type;
  template <int I> static constexpr nn::ArenaOffsets place() {
    nn::ArenaOffsets at{};
    Extents in = Input::extents;
    each([&]<int K>(std::integral_constant<int, K>) {
      if (K >= I) return;
      const nn::MemoryRequirements s = nn::analyze<StageNet<K>>(in);
      at = at + nn::ArenaOffsets::after(s);
      in = s.output;
    });
    return at;
  }
  template <int I> static constexpr Extents input_of() {
    Extents in = Input::extents;
    each([&]<int K>(std::integral_constant<int, K>) {
      if (K < I) in = nn::analyze<StageNet<K>>(in).output;
    });
    return in;
  }
  template <int I> struct InputShape {
    static constexpr Extents e = input_of<I>();
    using type = typename MakeEdge<e.tokens, e.rank, e.e[0], e.e[1], e.e[2], e.e[3]>::type;
  };
  template <int I> using StageInput = typename InputShape<I>::type;
  template <int I> using StageModel = Model<StageNet<I>, StageInput<I>, Device, Precision_>;

  template <class F, int... I> static constexpr void each(F&& f, std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  template <class F> static constexpr void each(F&& f) { each(f, std::make_integer_sequence<int, stages>{}); }
  template <class Indices> struct LocalStages;
  template <int... I> struct LocalStages<std::integer_sequence<int, I...>> {
    using type = std::tuple<std::unique_ptr<StageModel<I>>...>;
  };

  /// Initial values are those of the stage's rows in the whole network's tables.
  static ModelPart part_of(int stage) {
    return {static_cast<int>(plan::rows_within(program.parameters(), range(stage)).begin),
            static_cast<int>(plan::rows_within(program.buffers(), buffer_range(stage)).begin)};
  }

  Seed seed_;
  Device where_ = Memory<Device>::here();
  typename LocalStages<std::make_integer_sequence<int, stages>>::type held_{};
};

}  // namespace skein::inline SKEIN_ABI::parallel
