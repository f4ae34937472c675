// SPDX-License-Identifier: Apache-2.0
// Does a batch, or a data set, have what a network and its loss take: extents of samples, labels or target vectors. Asked before
// a call, since a kernel reads as many values as the network wants: a few comparisons a batch, and a pass over the targets of a
// loss that does not take every number. The sentences of Trainer::fit too.
#pragma once
#include <concepts>
#include <string>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "../device/batch_view.hpp"
#include "check_tokens.hpp"
#include "loss/check_targets.hpp"
#include "loss/loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// "Shape<28, 28, 1>", "Tokens<16>".
std::string shape_text(const Extents& e);
/// Throws ShapeError where samples of these extents are not what a model takes. Those of a flat model may have any extents, which
/// are read in their order, and a last extent of 1 may be left out; else they are compared one by one. `whose` samples: "the
/// training data set's samples"; `how` the extents of flat ones are said: what stands before them.
void check_extents(const Extents& given, const Extents& wanted, const std::string& whose, const char* how);
/// Throws the ArgumentError of a loss that compares with labels (or with numbers), and gets something else. `of`: "the training
/// data set"; `length` of the vectors.
[[noreturn]] void refuse_targets(TargetKind wanted, TargetKind given, const std::string& of, long length);
/// Throws the ShapeError of target vectors of another length.
[[noreturn]] void refuse_target_length(long given, long wanted, long outputs, const std::string& of);

namespace detail {
/// A batch that says the extents of a sample, and the length of a target: a loader's.
template <class T> concept SaysExtents = requires(const T& b) {
  { b.sample } -> std::convertible_to<const Extents&>;
  { b.target_length } -> std::convertible_to<long>;
};
/// A batch whose memory may have got other samples meanwhile: a loader's.
template <class T> concept ChecksItsMemory = requires(const T& b) { b.check_current(); };
/// What messages call a batch: its data set, where it says one.
std::string batch_text(const char* set);
template <class Input> constexpr bool same_extents(const Extents& e) {
  bool same = e.rank == Input::rank;
  for (int i = 0; i < Input::rank; ++i) same = same && e.e[i] == Input::extents.e[i];
  return same;
}
[[noreturn]] void refuse_null();
[[noreturn]] void refuse_count(long count);
[[noreturn]] void refuse_unreserved();
void check_batch_extents(const Extents& given, const Extents& wanted, const char* set);
[[noreturn]] void refuse_pitch(long pitch, const char* member, long wanted, const char* of);
}  // namespace detail

/// Throws ArgumentError where the executor of a step has not been made.
inline void check_reserved(const void* executor) {
  if (!executor) [[unlikely]]
    detail::refuse_unreserved();
}
/// Throws where a batch, as it was given, has other samples than the model takes, or other targets than the loss compares with.
/// (On the host also targets that are none for the loss.) `training`: there must be targets; else they may be missing, and only
/// outputs are made. A batch without samples has nothing to compare.
template <class Model, class Loss, class Given> SKEIN_ALWAYS_INLINE void check_batch(const Given& b, bool training) {
  if (b.count <= 0) [[unlikely]]
    return b.count < 0 ? detail::refuse_count(b.count) : void();
  if constexpr (detail::ChecksItsMemory<Given>) b.check_current();
  constexpr bool wants_labels = Loss::target == TargetKind::label;
  if constexpr (detail::SaysExtents<Given>)
    if (!detail::same_extents<typename Model::input>(b.sample) && b.sample.rank > 0) [[unlikely]]
      detail::check_batch_extents(b.sample, Model::input::extents, names_of(b).set);
  if constexpr (!is_tokens<typename Model::input>) {
    if (!b.x) [[unlikely]]
      detail::refuse_null();
    if (b.pitch < Model::input::count) [[unlikely]]
      detail::refuse_pitch(b.pitch, ".pitch", Model::input::count, "the network's input");
  }
  if (wants_labels ? b.labels == nullptr : b.targets == nullptr) [[unlikely]] {
    const bool other = wants_labels ? b.targets != nullptr : b.labels != nullptr;
    if (training || other)
      refuse_targets(Loss::target,
                     !other         ? TargetKind::none
                     : wants_labels ? TargetKind::vector
                                    : TargetKind::label,
                     detail::batch_text(names_of(b).set), b.target_pitch);
    return;
  }
  if constexpr (!wants_labels) {
    constexpr long length = target_length<Loss>(Model::sizes.output.count());
    if constexpr (detail::SaysExtents<Given>)
      if (b.target_length != length && b.target_length > 0) [[unlikely]]
        refuse_target_length(b.target_length, length, Model::sizes.output.count(), detail::batch_text(names_of(b).set));
    if (b.target_pitch < length) [[unlikely]]
      detail::refuse_pitch(b.target_pitch, ".target_pitch", length, "a target of the loss");
    if constexpr (ChecksTargets<Loss> && on_host<DeviceOf<Given>>)
      check_targets<Loss>(static_cast<const typename Model::Scalar*>(b.targets), b.target_pitch, length, b.count, names_of(b));
  }
}

/// Throws for a batch whose labels are not one for each position of the network's outputs, and for the first that is no class.
/// A batch without labels has none to check; those that are on a device are their owner's care.
template <class Model, class Loss, class Batch>
void check_batch_labels(const Loss& loss, const Batch& batch, const SampleNames& names) {
  constexpr long each = labels_each(Model::output_extents);
  if (!batch.labels) return;
  check_labels_each(batch.labels_each, each);
  if constexpr (on_host<DeviceOf<Batch>>)
    check_labels(batch.labels, batch.count * each, Model::output_extents.count() / each, ignored_label(loss), 0, each, names);
}

/// All that is asked of a batch before a pass, so that a wrong one changes nothing: as check_batch, and throws for tokens, labels
/// and class numbers that the network does not have. `batch`: what is computed with of `given`; what of it is on a device already
/// is its owner's care.
template <class Model, class Loss, class Given, class View>
inline void check_given(const Loss& loss, const Given& given, const View& batch, bool training) {
  // inline, since it is a part of each step: a small one has 17 instructions of 1,612 less.
  check_batch<Model, Loss>(given, training);
  check_tokens<Model>(batch, names_of(given));
  if constexpr (Loss::target == TargetKind::label) {
    check_batch_labels<Model>(loss, batch, names_of(given));
  } else if constexpr (ChecksClassNumbers<Loss, typename Model::Scalar> && on_host<DeviceOf<View>>) {
    if (batch.targets) loss.check_class_numbers(batch.targets, batch.target_pitch, batch.count, names_of(given));
  }
}

}  // namespace skein::inline SKEIN_ABI::nn

#if !SKEIN_COMPILED
#include "check_batch.ipp"
#endif
