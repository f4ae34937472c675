// SPDX-License-Identifier: Apache-2.0
// The bodies of callback.hpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../core/text.hpp"
#include "callback.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE AnyCallback& AnyCallback::operator=(AnyCallback other) noexcept {
  held_.swap(other.held_);
  return *this;
}

SKEIN_INLINE Callbacks::Callbacks(std::initializer_list<AnyCallback> all) : all_(all) {}
SKEIN_INLINE Callbacks::Callbacks(const Callbacks&) = default;
SKEIN_INLINE Callbacks::Callbacks(Callbacks&&) noexcept = default;
SKEIN_INLINE Callbacks& Callbacks::operator=(const Callbacks&) = default;
SKEIN_INLINE Callbacks& Callbacks::operator=(Callbacks&&) noexcept = default;
SKEIN_INLINE Callbacks::~Callbacks() = default;

SKEIN_INLINE void Callbacks::add(AnyCallback callback) { all_.push_back(std::move(callback)); }

SKEIN_INLINE bool Callbacks::wants_steps() const {
  for (const AnyCallback& callback : all_)
    if (callback.wants_steps()) return true;
  return false;
}

SKEIN_INLINE void Callbacks::check(const EpochRecord& measured) {
  bool more = false;  // names of a callback's own, which those behind it may watch
  for (AnyCallback& each : all_) {
    each.check_options();
    more = more || each.adds_scores();
    const std::string name = each.saved_as();
    if (const Watch* const watch = each.watch()) check_watch(measured, *watch, name.empty() ? "a callback" : name.c_str(), more);
  }
}

template <class Hook> void Callbacks::each(FitControl& control, const Hook& hook) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    running_ = control.keeps_weights() ? 0 : i + 1;
    hook(all_[i]);  // it may save the training, or throw, behind its request
    if (running_ != 0 && control.keeps_weights()) keeper_ = all_[i].saved_as();
    running_ = 0;
  }
}

SKEIN_INLINE std::string Callbacks::keeper() { return running_ != 0 ? all_[running_ - 1].saved_as() : keeper_; }

SKEIN_INLINE void Callbacks::on_fit_begin(FitControl& control) {
  each(control, [&](AnyCallback& own) { own.on_fit_begin(control); });
}

SKEIN_INLINE void Callbacks::on_fit_end(const History& history) {
  for (auto& each : all_) each.on_fit_end(history);
}

SKEIN_INLINE void Callbacks::on_epoch_begin(int epoch, FitControl& control) {
  each(control, [&](AnyCallback& own) { own.on_epoch_begin(epoch, control); });
}

SKEIN_INLINE void Callbacks::on_epoch_end(EpochRecord& record, FitControl& control) {
  each(control, [&](AnyCallback& own) { own.on_epoch_end(record, control); });
}

SKEIN_INLINE void Callbacks::on_step_end(const StepRecord& record, FitControl& control) {
  each(control, [&](AnyCallback& own) { own.on_step_end(record, control); });
}

SKEIN_INLINE void Callbacks::serialize(OutArchive& archive, unsigned) {
  (archive & std::uint64_t{all_.size()});
  for (AnyCallback& each : all_) (archive & each.saved_as() & to_bytes(each));
}

SKEIN_INLINE void Callbacks::serialize(InArchive& archive, unsigned version) {
  constexpr const char* remedy =
      "give fit the callbacks of the training that was saved, in the same order; or begin anew: in another .checkpoint.folder, "
      "or "
      "with its weights by a new Trainer, and load_weights(path)";
  std::uint64_t count = 0;
  (archive & count);
  if (count != all_.size())
    archive.refuse(text("holds the state of {} callbacks, but this training has {}: {}", count, all_.size(), remedy));
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (version == 0) {  // one state behind the other, without names
      (archive & all_[i]);
      continue;
    }
    std::string saved;
    std::vector<std::byte> state;
    (archive & saved & state);
    const std::string own = all_[i].saved_as(), place = text("callback {} of {}", i + 1, count);
    const auto named = [](const std::string& name) { return name.empty() ? "one without a name" : name; };
    if (saved != own) archive.refuse(text("{} was {}, and is {} now: {}", place, named(saved), named(own), remedy));
    try {
      from_bytes(byte_span(state), all_[i], own.empty() ? place : text("{}, {}", place, own));
    } catch (const VersionError&) { throw; } catch (const FileError& e) {
      archive.refuse(text("{}: {}", e.what(), remedy));
    }
  }
}

SKEIN_INLINE std::vector<std::string> Callbacks::load_by_name(std::span<const std::byte> bytes, const std::string& path) {
  InArchive archive(bytes, path, 0);
  std::uint32_t version = 0;
  std::uint64_t count = 0;
  (archive & version & count);
  std::vector<std::pair<std::string, std::vector<std::byte>>> saved;
  for (std::uint64_t i = 0; version == archive_version && i < count; ++i) {
    saved.emplace_back();
    (archive & saved.back().first & saved.back().second);
  }
  const auto has_name = [](const auto& state, AnyCallback& own) { return state.first == own.saved_as(); };
  if (version != archive_version || std::equal(saved.begin(), saved.end(), all_.begin(), all_.end(), has_name)) {
    from_bytes(bytes, *this, path);
    return {};
  }
  std::vector<std::string> left;
  for (AnyCallback& own : all_) {
    const std::string name = own.saved_as();
    const auto found = std::find_if(saved.begin(), saved.end(), [&](const auto& state) { return state.first == name; });
    if (name.empty()) continue;
    if (found == saved.end()) {
      left.push_back(name);
      continue;
    }
    from_bytes(byte_span(found->second), own, name + " of " + path);
    saved.erase(found);
  }
  return left;
}

SKEIN_INLINE bool Callbacks::keeps_weights_of(const std::string& name) {
  for (AnyCallback& own : all_)
    if (own.keeps_weights_of(name)) return true;
  return false;
}

SKEIN_INLINE std::uint64_t Callbacks::saved_in(std::span<const std::byte> bytes) {
  InArchive archive(bytes, "the callbacks of the loaded training", 0);
  std::uint32_t version = 0;
  std::uint64_t count = 0;
  (archive & version & count);
  return count;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
