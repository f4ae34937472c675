// SPDX-License-Identifier: Apache-2.0
// Objects that go into a training's files beside the model: what prepared the data, names of classes. They are bytes here, so
// that no trainer is compiled for their types.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "archive.hpp"
#include "checkpoint.hpp"

namespace skein::inline SKEIN_ABI::train {

/// An object that says by a number what it does, as a data::TableEncoder: fingerprint().
template <class T> concept HasFingerprint = requires(const T& object) {
  { object.fingerprint() } -> std::same_as<std::uint64_t>;
};

/// Objects by name, as bytes; in a file each is a section "kept/<name>", and its fingerprint, where it has one, a section
/// "fingerprint/<name>".
class KeptObjects {
 public:
  /// Throws ArgumentError for a name that no file can have: one of control characters, not of UTF-8, or of more than 500 bytes.
  template <class T> void set(const std::string& name, const T& object) {
    check_name(name);
    Object& kept = objects_[name];
    kept = {to_bytes(object), 0};
    if constexpr (HasFingerprint<T>) kept.fingerprint = object.fingerprint();
  }
  bool has(std::string_view name) const { return objects_.find(name) != objects_.end(); }
  /// The fingerprint of the object of that name; 0 where there is no such object, or it has none.
  std::uint64_t fingerprint(std::string_view name) const;
  /// Whether an object of that fingerprint is kept, under whatever name.
  bool has_fingerprint(std::uint64_t fingerprint) const;
  /// Those of `others` whose names are not here.
  void add_missing(const KeptObjects& others);
  /// Throws ArgumentError that lists the names there are.
  template <class T> T get(std::string_view name) const {
    T object;
    from_bytes(byte_span(bytes(name)), object, "the kept object \"" + std::string(name) + "\"");
    return object;
  }
  /// Into a file that is being written, out of one that is read; what there was before is forgotten.
  void write(CheckpointWriter& writer) const;
  void read(CheckpointReader& reader);

 private:
  static void check_name(const std::string& name);
  const std::vector<std::byte>& bytes(std::string_view name) const;

  struct Object {
    std::vector<std::byte> bytes;
    std::uint64_t fingerprint = 0;
  };
  std::map<std::string, Object, std::less<>> objects_;
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "kept_objects.ipp"
#endif
