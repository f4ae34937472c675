// SPDX-License-Identifier: Apache-2.0
// The bodies of kept_objects.hpp.
#pragma once
#include <utility>

#include "kept_objects.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void KeptObjects::write(CheckpointWriter& writer) const {
  for (const auto& [name, bytes] : bytes_)
    writer.add_object("kept/" + name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (const auto& [name, number] : fingerprints_) writer.add_object("fingerprint/" + name, number);
}

SKEIN_INLINE std::uint64_t KeptObjects::fingerprint(std::string_view name) const {
  const auto found = fingerprints_.find(name);
  return found == fingerprints_.end() ? 0 : found->second;
}

SKEIN_INLINE bool KeptObjects::has_fingerprint(std::uint64_t fingerprint) const {
  for (const auto& [name, number] : fingerprints_)
    if (number == fingerprint) return true;
  return false;
}

SKEIN_INLINE void KeptObjects::add_missing(const KeptObjects& others) {
  for (const auto& [name, bytes] : others.bytes_)
    if (!has(name)) {
      bytes_[name] = bytes;
      if (const std::uint64_t number = others.fingerprint(name); number != 0) fingerprints_[name] = number;
    }
}

SKEIN_INLINE void KeptObjects::read(CheckpointReader& reader) {
  decltype(bytes_) found;
  decltype(fingerprints_) numbers;
  for (const SectionInfo& section : reader.sections()) {
    if (section.name.starts_with("fingerprint/")) reader.read_object(section.name, numbers[section.name.substr(12)]);
    if (!section.name.starts_with("kept/")) continue;
    std::string text;
    reader.read_object(section.name, text);
    const auto bytes = std::as_bytes(std::span(text));
    found[section.name.substr(5)].assign(bytes.begin(), bytes.end());
  }
  bytes_ = std::move(found);
  fingerprints_ = std::move(numbers);
}

SKEIN_INLINE const std::vector<std::byte>& KeptObjects::bytes(std::string_view name) const {
  const auto found = bytes_.find(name);
  if (found != bytes_.end()) return found->second;
  std::string names;
  for (const auto& [known, ignored] : bytes_) names += (names.empty() ? "" : ", ") + known;
  throw ArgumentError("no object \"" + std::string(name) +
                      "\" is kept beside this model; kept are: " + (names.empty() ? "none" : names) +
                      ". trainer.keep(...) puts one there, and into the files that the trainer saves afterwards; a predictor has "
                      "those of the file that it was given by load()");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
