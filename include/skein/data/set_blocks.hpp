// SPDX-License-Identifier: Apache-2.0
// A data set block by block, in the form in which files keep it: what to_npy and to_hdf5 write.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "view.hpp"

namespace skein::inline SKEIN_ABI::data {

/// How samples are kept in a file. bytes: those that are served as byte / 255, as images are; floats: as they are served; tokens:
/// as 32-bit integers.
enum class PackedAs { bytes, floats, tokens };

/// The samples of a set, in its order, some at a time.
class SetBlocks {
 public:
  /// `caller` is the name of the function in messages. Throws ArgumentError where the set does not give what is asked for, or has
  /// targets that are not `with_targets`, or has none.
  SetBlocks(std::string caller, const DatasetView& set, PackedAs as, bool with_targets);

  /// The next samples; false where there are none any more. Throws ArgumentError for bytes of a value that is no byte / 255, and
  /// as a Loader does for labels that the set leaves out and for values that are infinite or not a number.
  bool next();
  std::int64_t first() const { return indices_.front(); }
  std::int64_t count() const { return static_cast<std::int64_t>(indices_.size()); }
  /// Their values, and their targets: class numbers as std::int32_t, vectors as float.
  std::span<const unsigned char> samples() const;
  std::span<const unsigned char> targets() const;

  /// (samples, extents of one), and of the targets (samples) or (samples, n).
  std::vector<long> extents() const;
  std::vector<long> target_extents() const;
  PackedAs as() const { return as_; }
  bool labels() const { return set_.target().kind == TargetKind::label; }

 private:
  template <class Scalar> void serve(std::vector<Scalar>& x);
  /// Throws ArgumentError for a label that the set has left out, and for a value that is no finite number and not wanted as such.
  void check_written() const;
  long each() const { return labels() ? set_.target().each : set_.target().count; }

  std::string caller_;
  DatasetView set_;
  PackedAs as_;
  std::vector<std::int64_t> indices_;
  std::vector<float> numbers_, vectors_;
  std::vector<std::int32_t> tokens_, labels_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "set_blocks.ipp"
#endif
