// SPDX-License-Identifier: Apache-2.0
// The bodies of kept_objects.hpp.
#pragma once
#include <utility>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "kept_objects.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

inline constexpr std::string_view kept_prefix = "kept/", fingerprint_prefix = "fingerprint/";  // of sections

SKEIN_INLINE void KeptObjects::check_name(const std::string& name) {
  constexpr std::size_t most = detail::longest_section_name - fingerprint_prefix.size();
  if (!name.empty() && name.size() <= most && is_plain_text(name)) return;
  throw ArgumentError(text("keep: {} is no name of an object in a file: give 1 to {} bytes of UTF-8 without control characters",
                           in_quotes(name), most));
}

SKEIN_INLINE void KeptObjects::write(CheckpointWriter& writer) const {
  for (const auto& [name, object] : objects_) {
    writer.add_object(std::string(kept_prefix) + name,
                      std::string(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()));
    if (object.fingerprint != 0) writer.add_object(std::string(fingerprint_prefix) + name, object.fingerprint);
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
    if (section.name.starts_with(fingerprint_prefix))
      reader.read_object(section.name, found[section.name.substr(fingerprint_prefix.size())].fingerprint);
    if (!section.name.starts_with(kept_prefix)) continue;
    std::string text;
    reader.read_object(section.name, text);
    const auto bytes = byte_span(text);
    found[section.name.substr(kept_prefix.size())].bytes.assign(bytes.begin(), bytes.end());
  }
  objects_ = std::move(found);
}

SKEIN_INLINE const std::vector<std::byte>& KeptObjects::bytes(std::string_view name) const {
  const auto found = objects_.find(name);
  if (found != objects_.end()) return found->second.bytes;
  TextList names;
  for (const auto& [known, ignored] : objects_) names.add(known);
  throw ArgumentError("no object \"" + std::string(name) + "\" is kept beside this model; kept are: " + names.or_words("none") +
                      ". trainer.keep(...) puts one there, and into the files that the trainer saves afterwards; a predictor has "
                      "those of the file that it was given by load()");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
