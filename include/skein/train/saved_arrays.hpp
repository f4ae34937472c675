// SPDX-License-Identifier: Apache-2.0
// The arrays of a train step as files have them: all of a training on rank 0, or a share on each rank; and back into a train
// step, all or nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../optim/loss_scaler.hpp"
#include "../optim/transform/transform.hpp"
#include "../parallel/concepts.hpp"
#include "archive.hpp"
#include "host_copy.hpp"
#include "own_arrays.hpp"
#include "saved_training.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Refers to the train step, and keeps copies of a device's arrays while they are written.
template <class TrainStep> class SavedArrays : public OwnArrays<TrainStep> {
  using Base = OwnArrays<TrainStep>;
  using typename Base::Model, typename Base::Scalar, typename Base::Device, typename Base::PolicyState, typename Base::Entries;
  using Base::train_step_, Base::own_, Base::own_buffers_, Base::has_own, Base::drifts, Base::array, Base::write,
      Base::own_prefix, Base::has_own_buffers, Base::each_buffer_part, Base::keep_own_buffers, Base::write_buffers,
      Base::own_arrays;

 public:
  explicit SavedArrays(TrainStep& train_step) : Base(train_step) {}

  /// `kept`: copies of parameters and buffers that a callback has asked for, or nothing.
  using Kept = std::vector<std::vector<Scalar>>;
  void save_to(SectionSink& sink, bool whole, const Kept& kept) {
    auto& state = train_step_.policy_state();
    const bool own = !whole && has_own_buffers();
    if (own) keep_own_buffers();
    state.average_buffers();
    state.before_save();
    const bool drifted = has_own && drifts();
    whole = whole || drifted;
    if (whole) {
      train_step_.gather_state();
      if (state.rank() == 0) save_whole(sink);
      const auto all = [](Entries, std::size_t n) { return plan::Range{0, static_cast<long>(n)}; };
      if constexpr (parallel::SharesBatches<PolicyState>) gather_kept(kept);
      if (state.rank() == 0) save_kept(sink, parallel::SharesBatches<PolicyState> ? gathered_ : kept, all);
    } else {
      if constexpr (parallel::SharesBatches<PolicyState>) save_stages(sink, kept);
      else save_shares(sink, kept);
      if constexpr (detail::keeps_curvature<TrainStep>) train_step_.gather_curvature();
    }
    if (state.rank() == 0) save_objects(sink);
    if (own) save_own(sink, drifted);
  }
  /// Buffers are each rank's own again, so that commits change nothing of a training.
  void saved() {
    train_step_.drop_state();
    memory_.clear();
    gathered_.clear();
    if (!own_buffers_.empty()) write_buffers(own_buffers_.data());
    own_buffers_.clear();
  }

  void load_from(SectionSource& source, Kept& kept) {
    std::vector<std::byte> bytes, policy, kind;  // of a training by another policy: left alone
    source.object("policy", policy);
    source.object("policy_kind", kind);
    [[maybe_unused]] const bool scaled = source.object("loss_scaler", bytes);  // the weights are the same in any precision
    optim::LossScaler scaler;
    if constexpr (Model::scales_loss) {
      scaler = train_step_.loss_scaler();
      if (scaled) from_bytes(byte_span(bytes), scaler, source.path(), -1);
    }
    auto curvature = curvature_of(source);
    const std::string mine = own_prefix();
    const bool drifted = has_own && drifts() && source.has(array(mine + "parameters/", Model::program.parameters()));
    std::vector<std::byte> own_policy;
    if (drifted) {
      source.object((mine + "policy").c_str(), own_policy);
      if (Model::scales_loss && source.object((mine + "loss_scaler").c_str(), bytes))
        from_bytes(byte_span(bytes), scaler, source.path(), -1);
      curvature = curvature_of(source, mine);
    }
    std::vector<Arena<Scalar>> staged;  // first into memory of our own, so that a file of another network changes nothing
    const auto stage = [&](std::size_t size, const std::string& prefix, Entries entries) {
      staged.emplace_back(size);
      source.array(array(prefix, entries), staged.back().data());
    };
    detail::for_each_arena(train_step_,
                           [&](auto arena, const char* prefix, Entries entries) { stage(arena.size, prefix, entries); });
    for (int k = 0; k < train_step_.optimizer().arrays(); ++k)
      stage(static_cast<std::size_t>(Model::sizes.stored), detail::state_prefix(k), Model::program.parameters());
    Kept copies;
    detail::for_each_arena(train_step_, [&](auto arena, const char* prefix, Entries entries) {
      copies.emplace_back(arena.size);
      if (const SavedArray a = array(kept_prefix + prefix, entries); source.has(a)) source.array(a, copies.back().data());
      else if (!entries.empty()) copies.clear();
    });
    std::vector<Arena<Scalar>> own = own_arrays(source, mine, drifted);
    source.leave("rank_");
    source.finish();
    own_ = std::move(own);
    if (copies.size() == 2) take_kept(kept, std::move(copies));
    else kept.clear();
    if constexpr (detail::policy_keeps_state<TrainStep>) {
      load_policy(policy, kind, source.path());
      load_policy(own_policy, kind, source.path());
    }
    [[maybe_unused]] const auto lease = train_step_.model().modify();
    auto next = staged.begin();
    detail::for_each_arena(train_step_, [&](auto arena, const char*, Entries) {
      HostCopy<Scalar, Device>::write(arena.data, (next++)->data(), arena.size, train_step_.model().where());
    });
    for (int k = 0; k < train_step_.optimizer().arrays(); ++k) train_step_.set_state(k, (next++)->data());
    if constexpr (detail::keeps_curvature<TrainStep>) train_step_.curvature().take(std::move(curvature));
    train_step_.scatter();
    if constexpr (Model::scales_loss) train_step_.loss_scaler() = scaler;
  }

 private:
  inline static const std::string kept_prefix = "kept_weights/";
  static std::size_t size(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }
  const Scalar* read(const Scalar* from, std::size_t n) {
    if constexpr (on_host<Device>) return from;
    Copy<Cpu, Device>::run(memory_.emplace_back(n).data(), from, n * sizeof(Scalar), Cpu{}, train_step_.model().where());
    return memory_.back().data();
  }
  void save_whole(SectionSink& sink) {
    const auto save = [&](auto arena, const std::string& prefix, Entries entries) {
      sink.array(array(prefix, entries), {0, static_cast<long>(arena.size)}, read(arena.data, arena.size));
    };
    detail::for_each_arena(train_step_, save);
    for (int k = 0; k < train_step_.optimizer().arrays(); ++k)
      save(train_step_.state(k), detail::state_prefix(k), Model::program.parameters());
  }
  /// Whole parameters and buffers, of which this process keeps what it has.
  void take_kept(Kept& kept, Kept&& whole) {
    if constexpr (parallel::SharesBatches<PolicyState>) {
      kept.clear();
      train_step_.each_weight_range([&](std::size_t a, plan::Range range, bool) {
        kept.emplace_back(whole[a].begin() + range.begin, whole[a].begin() + range.end);
      });
    } else {
      kept = std::move(whole);
    }
  }
  /// All ranks: brings the stages' copies together, by sums of 32 bits of their values and zeros of the others, which are exact.
  void gather_kept(const Kept& kept) {
    if (kept.empty()) return;
    gathered_ = {std::vector<Scalar>(static_cast<std::size_t>(Model::sizes.stored)),
                 std::vector<Scalar>(static_cast<std::size_t>(Model::sizes.buffers))};
    auto next = kept.begin();
    train_step_.each_weight_range([&](std::size_t a, plan::Range range, bool writes) {
      const auto& values = *next++;
      if (writes) std::copy_n(values.begin(), size(range), gathered_[a].begin() + range.begin);
    });
    constexpr std::size_t each = sizeof(Scalar) / sizeof(std::uint32_t), most = 32 * 1024;
    for (auto& whole : gathered_)
      for (std::size_t at = 0; at < whole.size(); at += most / each) {
        std::vector<std::uint32_t> words(std::min(most / each, whole.size() - at) * each);
        std::memcpy(words.data(), whole.data() + at, words.size() * sizeof(std::uint32_t));
        std::vector<double> sums(words.begin(), words.end());
        train_step_.policy_state().reduce(sums);
        std::transform(sums.begin(), sums.end(), words.begin(), [](double s) { return static_cast<std::uint32_t>(s); });
        std::memcpy(whole.data() + at, words.data(), words.size() * sizeof(std::uint32_t));
      }
  }
  void save_stages(SectionSink& sink, const Kept& kept) {
    for (int a = 0; a < 2 + train_step_.optimizer().arrays(); ++a)
      train_step_.each_own_part(a, [&](plan::Range range, const Scalar* values) {
        const std::string prefix = a == 0 ? "parameters/" : a == 1 ? "buffers/" : detail::state_prefix(a - 2);
        sink.array(array(prefix, a == 1 ? Model::program.buffers() : Model::program.parameters()), range,
                   read(values, size(range)));
      });
    if (kept.empty()) return;
    auto next = kept.begin();
    train_step_.each_weight_range([&](std::size_t a, plan::Range range, bool writes) {
      const auto& values = *next++;
      if (writes && size(range) > 0)
        sink.array(array(kept_prefix + (a == 0 ? "parameters/" : "buffers/"),
                         a == 0 ? Model::program.parameters() : Model::program.buffers()),
                   range, values.data());
    });
  }
  template <class Share> void save_kept(SectionSink& sink, const Kept& kept, const Share& share) {
    if (kept.empty()) return;
    auto next = kept.begin();
    detail::for_each_arena(train_step_, [&](auto, const char* prefix, Entries entries) {
      const auto& values = *next++;
      const plan::Range range = share(entries, values.size());
      sink.array(array(kept_prefix + prefix, entries), range, values.data() + range.begin);
    });
  }
  void save_shares(SectionSink& sink, const Kept& kept_weights) {
    const auto& state = train_step_.policy_state();
    const auto share = [&](Entries entries, std::size_t stored) {
      return sink.share(entries, static_cast<long>(stored), state.ranks(), state.rank());
    };
    detail::for_each_arena(train_step_, [&](auto arena, const char* prefix, Entries entries) {
      const plan::Range range = share(entries, arena.size);
      sink.array(array(prefix, entries), range, read(arena.data + range.begin, size(range)));
    });
    save_kept(sink, kept_weights, share);
    auto& optimizer = train_step_.optimizer();
    const Entries entries = Model::program.parameters();
    const plan::Range range = train_step_.slices_state() ? optimizer.owned()
                                                         : share(entries, static_cast<std::size_t>(Model::sizes.stored)),
                      all = optimizer.kept();
    const plan::Range kept{std::clamp(all.begin, range.begin, range.end), std::clamp(all.end, range.begin, range.end)};
    for (int k = 0; k < optimizer.arrays(); ++k) {
      const Scalar* values = read(optimizer.array(k).data + (kept.begin - all.begin), size(kept));
      if (size(kept) < size(range)) {  // the state of frozen parameters is zeros
        Arena<Scalar>& padded = memory_.emplace_back(size(range));
        std::copy_n(values, size(kept), padded.data() + (kept.begin - range.begin));
        values = padded.data();
      }
      sink.array(array(detail::state_prefix(k), entries), range, values);
    }
  }
  /// The buffers before they were averaged; where ranks drift, all of a rank but 0, whose weights are those of the file.
  void save_own(SectionSink& sink, bool drifted) {
    const std::string mine = own_prefix();
    each_buffer_part([&](plan::Range range, const Scalar*) {
      sink.array(array(mine + "buffers/", Model::program.buffers()), range, own_buffers_.data() + range.begin);
    });
    if constexpr (has_own) {
      if (!drifted || train_step_.policy_state().rank() == 0) return;
      const auto save = [&](auto arena, const std::string& prefix) {
        sink.array(array(mine + prefix, Model::program.parameters()), {0, static_cast<long>(arena.size)},
                   read(arena.data, arena.size));
      };
      save(train_step_.whole_parameters(), "parameters/");
      for (int k = 0; k < train_step_.optimizer().arrays(); ++k) save(train_step_.state(k), detail::state_prefix(k));
      save_objects(sink, mine);
    }
  }
  void save_objects([[maybe_unused]] SectionSink& sink, const std::string& prefix = {}) {
    const auto save = [&](const char* name, std::vector<std::byte>&& bytes) {
      sink.object((prefix + name).c_str(), std::move(bytes));
    };
    if constexpr (Model::scales_loss) save("loss_scaler", to_bytes(train_step_.loss_scaler()));
    if constexpr (detail::keeps_curvature<TrainStep>) {
      const auto saved = train_step_.curvature().saved();
      save("curvature", to_bytes(saved));
      save("curvature_kind", to_bytes(saved.kind));
    }
    if constexpr (detail::policy_keeps_state<TrainStep>) {
      const std::vector<std::byte> bytes = to_bytes(train_step_.policy_state());
      if (prefix.empty()) save("policy_kind", to_bytes(train_step_.policy_state().saved_as()));
      save("policy", to_bytes(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    }
  }
  auto curvature_of([[maybe_unused]] SectionSource& source, [[maybe_unused]] const std::string& prefix = {}) {
    if constexpr (detail::keeps_curvature<TrainStep>) {
      auto saved = train_step_.curvature().saved();
      const auto own = saved;
      std::vector<std::byte> bytes;
      if (!source.object((prefix + "curvature").c_str(), bytes))
        throw FileError(source.path(), -1, "has no section 'curvature' (Kfac)");
      from_bytes(byte_span(bytes), saved, source.path(), -1);
      if (source.object((prefix + "curvature_kind").c_str(), bytes)) from_bytes(byte_span(bytes), saved.kind, source.path(), -1);
      if (!saved.same_sizes(own))
        throw FileError(
            source.path(), -1,
            "its factors of layers (Kfac) have other sizes: it is of another .inverse_rank or .unit_wise, or damaged");
      return saved;
    } else {
      return 0;
    }
  }
  void load_policy(const std::vector<std::byte>& policy, const std::vector<std::byte>& kind, const std::string& path) {
    std::string state, saved_as;
    if (!policy.empty()) from_bytes(byte_span(policy), state, path, -1);
    if (!kind.empty()) from_bytes(byte_span(kind), saved_as, path, -1);
    if (!state.empty() && saved_as == train_step_.policy_state().saved_as())
      from_bytes(byte_span(state), train_step_.policy_state(), path, 0);
  }

  std::vector<Arena<Scalar>> memory_;
  Kept gathered_;  // where stages have parts of it
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
