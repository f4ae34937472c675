// SPDX-License-Identifier: Apache-2.0
// An array of weights or of an optimizer's state as files have it: a section for each row of its table, by the row's name, of
// logical values, so that padding is no part of a file.
#pragma once
#include <span>
#include <string>

#include "../plan/program.hpp"
#include "checkpoint_writer.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// An array of a training, by the rows of its table: "parameters/", "buffers/", "optimizer/0/".
struct SavedArray {
  std::string prefix;
  std::span<const plan::Entry> entries;
  std::span<const plan::PathPart> paths;
  SectionType type;
};

namespace detail {
/// The section of a row: "parameters/0.weight".
std::string section_of(const SavedArray& array, const plan::Entry& e);
/// Adds what of an array stands in `range`; the first value is at `values`, which must live until the file is written.
void add_array(CheckpointWriter& writer, const SavedArray& array, plan::Range range, const void* values);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "saved_array.ipp"
#endif
