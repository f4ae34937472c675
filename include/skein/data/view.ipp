// SPDX-License-Identifier: Apache-2.0
// The bodies of view.hpp.
#pragma once
#include "view.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE void DatasetView::check() const {
  if (size_ < 0) throw ArgumentError("a data set says that its size is negative");
  if (!sample_.positive())
    throw ArgumentError(
        "a data set's sample_extents() must have one to four positive extents, behind their count: {3, {28, 28, 1}}");
  if (target_.kind == TargetKind::label && !table_->labels)
    throw ArgumentError("a data set says that its targets are labels, but has no labels(data::Indices, std::int32_t*) const");
  if (target_.kind == TargetKind::label && target_.count < 0)
    throw ArgumentError(text(
        "a data set says that it has {} classes: data::Target::labels(classes) wants their number, or 0 where it is not known",
        target_.count));
  if (target_.kind == TargetKind::label && target_.each < 1)
    throw ArgumentError(text(
        "a data set says that a sample has {} labels: data::Target::labels(classes, each) wants at least one", target_.each));
  if (target_.kind == TargetKind::vector && !table_->targets)
    throw ArgumentError("a data set says that its targets are vectors, but has no targets(data::Indices, float*, long) const");
  if (target_.kind == TargetKind::vector && target_.count < 1)
    throw ArgumentError("a data set says that its targets are vectors, but gives no length: data::Target::vector(length)");
}

SKEIN_INLINE void DatasetView::refuse(const char* wanted) const {
  if (!table_) throw ArgumentError("there is no data set, of which samples are asked for: give one");
  throw ArgumentError("a data set has " + std::string(gives_numbers() ? "numbers" : "tokens") + ", and " + wanted +
                      " are asked for: moments, a Standardizer and what else computes with samples take numbers, a network of "
                      "sk::Tokens takes tokens");
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
