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
#include "../optim/state_updates.hpp"
#include "../optim/transform/transform.hpp"
#include "../parallel/concepts.hpp"
#include "archive.hpp"
#include "host_copy.hpp"
#include "own_arrays.hpp"
#include "saved_training.hpp"
#include "weights_copy.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Refers to the train step, and keeps copies of a device's arrays while they are written.
template <class TrainStep> class SavedArrays : public OwnArrays<TrainStep> {
  using Base = OwnArrays<TrainStep>;
  using typename Base::Model, typename Base::Scalar, typename Base::Device, typename Base::PolicyState, typename Base::Entries;
  using Base::train_step_, Base::own_, Base::own_buffers_, Base::has_own, Base::drifts, Base::section, Base::entries, Base::size,
      Base::own_prefix, Base::has_own_buffers, Base::keep_own_buffers, Base::own_arrays, Base::parameters, Base::buffers;

 public:
  explicit SavedArrays(TrainStep& train_step) : Base(train_step) {}

  /// `kept`: copies of parameters and buffers that a callback has asked for, or nothing.
  using Kept = WeightsCopy<TrainStep>;
  void save_to(SectionSink& sink, bool whole, const Kept& kept) {
    auto& state = train_step_.policy_state();
    const bool own = !whole && has_own_buffers();
    if (own) keep_own_buffers();
    state.average_buffers();
    state.before_save();
    if constexpr (parallel::ServesUpdates<PolicyState>) train_step_.model().weights().changed();  // they may have come
    const bool drifted = has_own && drifts();
    whole = whole || drifted;
    if (whole) {
      train_step_.arrays().gather();
      if (state.rank() == 0) save_whole(sink);
      const auto all = [](Entries, std::size_t n) { return plan::Range{0, static_cast<long>(n)}; };
      if constexpr (parallel::SplitsModel<PolicyState>) gather_kept(kept);
      if (state.rank() == 0 && !kept.empty())
        save_kept(sink, parallel::SplitsModel<PolicyState> ? gathered_ : kept.arrays(), all);
    } else {
      if constexpr (parallel::SplitsModel<PolicyState>) save_stages(sink, kept);
      else save_shares(sink, kept);
      if constexpr (detail::keeps_curvature<TrainStep>) train_step_.arrays().gather_curvature();
    }
    if (state.rank() == 0) save_objects(sink);
    if (own) save_own(sink, drifted);
  }
  /// Buffers are each rank's own again, so that commits change nothing of a training.
  void saved() {
    train_step_.arrays().drop();
    memory_.clear();
    gathered_.clear();
    if (!own_buffers_.empty()) train_step_.arrays().set(buffers, own_buffers_.data());
    own_buffers_.clear();
  }

  void load_from(SectionSource& source, Kept& kept) {
    std::vector<std::byte> bytes, policy, kind;  // of a training by another policy: left alone
    source.object("policy", policy), source.object("policy_kind", kind);
    [[maybe_unused]] const bool scaled = source.object("loss_scaler", bytes);  // the weights are the same in any precision
    optim::LossScaler scaler;
    if constexpr (Model::scales_loss) {
      scaler = train_step_.loss_scaler();
      if (scaled) from_bytes(byte_span(bytes), scaler, source.path(), -1);
    }
    const optim::StateUpdates updates = updates_of(source);
    auto curvature = curvature_of(source);
    const std::string mine = own_prefix();
    const bool drifted = has_own && drifts() && source.has(section(parameters, mine));
    std::vector<std::byte> own_policy;
    if (drifted) {
      source.object((mine + "policy").c_str(), own_policy);
      if (Model::scales_loss && source.object((mine + "loss_scaler").c_str(), bytes))
        from_bytes(byte_span(bytes), scaler, source.path(), -1);
      curvature = curvature_of(source, mine);
    }
    std::vector<Arena<Scalar>> staged;  // first into memory of our own, so that a file of another network changes nothing
    for (int a = 0; a < train_step_.arrays().count(); ++a) source.array(section(a), staged.emplace_back(size(a)).data());
    const Arrays copies = kept_of(source);
    std::vector<Arena<Scalar>> own = own_arrays(source, mine, drifted);
    source.leave("rank_");
    source.finish();
    if constexpr (detail::policy_keeps_state<TrainStep>) {           // before all that is replaced: it may refuse the file
      const bool of_all = load_policy(policy, kind, source.path());  // has what was gathered of all ranks, as residuals
      const bool of_rank = load_policy(own_policy, kind, source.path());
      if (!of_all && !of_rank) train_step_.policy_state().forget();
    }
    own_ = std::move(own);
    if (copies.size() == 2) kept.take(train_step_, copies);
    else kept = {};
    [[maybe_unused]] const auto lease = train_step_.model().modify();
    for (std::size_t a = 0; a < staged.size(); ++a) train_step_.arrays().set(static_cast<int>(a), staged[a].data());
    train_step_.arrays().set_updates(updates);
    if constexpr (detail::keeps_curvature<TrainStep>) train_step_.curvature().take(std::move(curvature));
    if constexpr (Model::scales_loss) train_step_.loss_scaler() = scaler;
  }

 private:
  using Arrays = typename Kept::Arrays;
  inline static const std::string kept_prefix = "kept_weights/";
  static std::size_t length(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }
  const Scalar* read(const Scalar* from, std::size_t n) {
    if constexpr (on_host<Device>) return from;
    Copy<Cpu, Device>::run(memory_.emplace_back(n).data(), from, n * sizeof(Scalar), Cpu{}, train_step_.model().where());
    return memory_.back().data();
  }
  void save_whole(SectionSink& sink) {
    for (int a = 0; a < train_step_.arrays().count(); ++a) {
      const auto whole = train_step_.arrays().whole(a);
      sink.array(section(a), {0, static_cast<long>(whole.size)}, read(whole.data, whole.size));
    }
  }
  /// Whole parameters and buffers, or nothing.
  static Arrays kept_of(SectionSource& source) {
    Arrays copies;
    for (int a : {parameters, buffers}) {
      copies.emplace_back(size(a));
      if (const SavedArray s = section(a, kept_prefix); source.has(s)) source.array(s, copies.back().data());
      else if (!entries(a).empty()) copies.clear();
    }
    return copies;
  }
  /// All ranks: brings the stages' copies together, by sums of 32 bits of their values and zeros of the others, which are exact.
  void gather_kept(const Kept& kept) {
    if (kept.empty()) return;
    gathered_ = {std::vector<Scalar>(size(parameters)), std::vector<Scalar>(size(buffers))};
    auto next = kept.arrays().begin();
    Kept::each_part(train_step_, [&](int a, plan::Range range, const Scalar*) {
      const auto& values = *next++;
      if (train_step_.arrays().writes_parts())
        std::copy_n(values.begin(), length(range), gathered_[static_cast<std::size_t>(a)].begin() + range.begin);
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
    if (!train_step_.arrays().writes_parts()) return;
    for (int a = 0; a < train_step_.arrays().count(); ++a)
      train_step_.arrays().each_part(
          a, [&](plan::Range range, const Scalar* values) { sink.array(section(a), range, read(values, length(range))); });
    if (kept.empty()) return;
    auto next = kept.arrays().begin();
    Kept::each_part(train_step_, [&](int a, plan::Range range, const Scalar*) {
      sink.array(section(a, kept_prefix), range, (next++)->data());
    });
  }
  template <class Share> void save_kept(SectionSink& sink, const Arrays& kept, const Share& share) {
    for (int a : {parameters, buffers}) {
      const auto& values = kept[static_cast<std::size_t>(a)];
      const plan::Range range = share(entries(a), values.size());
      sink.array(section(a, kept_prefix), range, values.data() + range.begin);
    }
  }
  void save_shares(SectionSink& sink, const Kept& kept) {
    const auto& state = train_step_.policy_state();
    const auto share = [&](Entries all, std::size_t stored) {
      return sink.share(all, static_cast<long>(stored), state.ranks(), state.rank());
    };
    for (int a : {parameters, buffers}) {
      const plan::Range range = share(entries(a), size(a));
      sink.array(section(a), range, read(train_step_.arrays().whole(a).data + range.begin, length(range)));
    }
    if (!kept.empty()) save_kept(sink, kept.arrays(), share);
    const plan::Range of_weights = share(entries(parameters), size(parameters));
    const plan::Range range = train_step_.slices_state() ? train_step_.optimizer().owned() : of_weights;
    for (int a = parallel::training_arrays::optimizer; a < train_step_.arrays().count(); ++a)
      train_step_.arrays().each_part(a, [&](plan::Range all, const Scalar* values) { save_part(sink, a, range, all, values); });
  }
  /// A range of an array, of which the optimizer keeps the values of the range `all`: those of frozen parameters are zeros.
  void save_part(SectionSink& sink, int array, plan::Range range, plan::Range all, const Scalar* values) {
    const plan::Range kept{std::clamp(all.begin, range.begin, range.end), std::clamp(all.end, range.begin, range.end)};
    values = read(values + (kept.begin - all.begin), length(kept));
    if (length(kept) < length(range)) {
      Arena<Scalar>& padded = memory_.emplace_back(length(range));
      std::copy_n(values, length(kept), padded.data() + (kept.begin - range.begin));
      values = padded.data();
    }
    sink.array(section(array), range, values);
  }
  /// The buffers before they were averaged; where ranks drift, all of a rank but 0, whose weights are those of the file.
  void save_own(SectionSink& sink, bool drifted) {
    const std::string mine = own_prefix();
    train_step_.arrays().each_part(buffers, [&](plan::Range range, const Scalar*) {
      sink.array(section(buffers, mine), range, own_buffers_.data() + range.begin);
    });
    if constexpr (has_own) {
      if (!drifted || train_step_.policy_state().rank() == 0) return;
      for (int a = 0; a < train_step_.arrays().count(); ++a) {
        if (a == buffers) continue;
        const auto whole = train_step_.arrays().whole(a);
        sink.array(section(a, mine), {0, static_cast<long>(whole.size)}, read(whole.data, whole.size));
      }
      save_objects(sink, mine);
    }
  }
  void save_objects([[maybe_unused]] SectionSink& sink, const std::string& prefix = {}) {
    const auto save = [&](const char* name, std::vector<std::byte>&& bytes) {
      sink.object((prefix + name).c_str(), std::move(bytes));
    };
    if constexpr (Model::scales_loss)
      if (train_step_.loss_scaler().active()) save("loss_scaler", to_bytes(train_step_.loss_scaler()));
    if (prefix.empty())
      if (const auto updates = train_step_.arrays().updates_after(train_step_.steps()); !updates.all_steps())
        save("state_updates", to_bytes(updates));  // something was frozen
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
  /// Those of all steps where the file says nothing: nothing was frozen, or it is of an older version.
  static optim::StateUpdates updates_of(SectionSource& source) {
    optim::StateUpdates updates;
    std::vector<std::byte> bytes;
    if (source.object("steps", bytes)) from_bytes(byte_span(bytes), updates.steps, source.path(), -1);
    const std::int64_t steps = updates.steps;
    if (source.object("state_updates", bytes)) from_bytes(byte_span(bytes), updates, source.path(), -1);
    if (updates.steps != steps || !updates.fits(entries(parameters).size()))
      throw FileError(source.path(), -1, "its 'state_updates' are not those of its parameters and steps: it is damaged");
    return updates;
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
            "its factors of layers (Kfac) have other sizes: it is of another .inverse_rank or .unit_wise, or damaged: go on with "
            "those; load_weights(path) takes the weights alone");
      return saved;
    } else {
      return 0;
    }
  }
  /// False where the file has no state of this policy.
  bool load_policy(const std::vector<std::byte>& policy, const std::vector<std::byte>& kind, const std::string& path) {
    std::string state, saved_as;
    if (!policy.empty()) from_bytes(byte_span(policy), state, path, -1);
    if (!kind.empty()) from_bytes(byte_span(kind), saved_as, path, -1);
    if (state.empty() || saved_as != train_step_.policy_state().saved_as()) return false;
    from_bytes(byte_span(state), train_step_.policy_state(), path, 0);
    return true;
  }

  std::vector<Arena<Scalar>> memory_;
  Arrays gathered_;  // where stages have parts of it
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
