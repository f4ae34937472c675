// SPDX-License-Identifier: Apache-2.0
// Objects that go into a training's files beside the model: what prepared the data, names of classes. They are bytes here, so
// that no trainer is compiled for their types.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "archive.hpp"
#include "checkpoint.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Objects by name, as bytes; in a file each is a section "kept/<name>".
class KeptObjects {
 public:
  template <class T> void set(const std::string& name, const T& object) { bytes_[name] = to_bytes(object); }
  bool has(std::string_view name) const { return bytes_.find(name) != bytes_.end(); }
  /// Throws ArgumentError that lists the names there are.
  template <class T> T get(std::string_view name) const {
    T object;
    from_bytes(bytes(name), object, "the kept object \"" + std::string(name) + "\"");
    return object;
  }
  /// Into a file that is being written, out of one that is read; what there was before is forgotten.
  void write(CheckpointWriter& writer) const;
  void read(CheckpointReader& reader);

 private:
  const std::vector<std::byte>& bytes(std::string_view name) const;

  std::map<std::string, std::vector<std::byte>, std::less<>> bytes_;
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "kept_objects.ipp"
#endif
