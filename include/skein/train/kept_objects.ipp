// SPDX-License-Identifier: Apache-2.0
// The bodies of kept_objects.hpp.
#pragma once
#include <utility>

#include "kept_objects.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void KeptObjects::write(CheckpointWriter& writer) const {
  for (const auto& [name, object] : objects_) {
    writer.add_object("kept/" + name, std::string(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()));
    if (object.fingerprint != 0) writer.add_object("fingerprint/" + name, object.fingerprint);
  }
}

SKEIN_INLINE std::uint64_t KeptObjects::fingerprint(std::string_view name) const {
  const auto found = objects_.find(name);
  return found == objects_.end() ? 0 : found->second.fingerprint;
}

SKEIN_INLINE bool KeptObjects::has_fingerprint(std::uint64_t fingerprint) const {
  for (const auto& [name, object] : objects_)
    if (object.fingerprint == fingerprint) return true;
  return false;
}

SKEIN_INLINE void KeptObjects::add_missing(const KeptObjects& others) {
  for (const auto& [name, object] : others.objects_)
    if (!has(name)) objects_[name] = object;
}

SKEIN_INLINE void KeptObjects::read(CheckpointReader& reader) {
  decltype(objects_) found;
  for (const SectionInfo& section : reader.sections()) {
    if (section.name.starts_with("fingerprint/")) reader.read_object(section.name, found[section.name.substr(12)].fingerprint);
    if (!section.name.starts_with("kept/")) continue;
    std::string text;
    reader.read_object(section.name, text);
    const auto bytes = byte_span(text);
    found[section.name.substr(5)].bytes.assign(bytes.begin(), bytes.end());
  }
  objects_ = std::move(found);
}

SKEIN_INLINE const std::vector<std::byte>& KeptObjects::bytes(std::string_view name) const {
  const auto found = objects_.find(name);
  if (found != objects_.end()) return found->second.bytes;
  std::string names;
  for (const auto& [known, ignored] : objects_) names += (names.empty() ? "" : ", ") + known;
  throw ArgumentError("no object \"" + std::string(name) +
                      "\" is kept beside this model; kept are: " + (names.empty() ? "none" : names) +
                      ". trainer.keep(...) puts one there, and into the files that the trainer saves afterwards; a predictor has "
                      "those of the file that it was given by load()");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
