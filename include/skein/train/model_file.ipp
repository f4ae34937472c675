// SPDX-License-Identifier: Apache-2.0
// The bodies of model_file.hpp.
#pragma once
#include "model_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Whose values these are, "ClipNorm, Sgd, the chain": of lines as NamedValues makes them.
SKEIN_INLINE std::string owners_of(std::string_view lines) {
  std::string owners, last;
  while (!lines.empty()) {
    const std::string_view name = lines.substr(0, std::min(lines.find('\t'), lines.size()));
    const std::size_t of = name.find(" of ");
    const std::string owner(of == name.npos ? name : name.substr(of + 4));
    if (owner != last) owners.append(owners.empty() ? "" : ", ").append(owner);
    last = owner;
    const std::size_t end = lines.find('\n');
    lines.remove_prefix(end == lines.npos ? lines.size() : end + 1);
  }
  return owners;
}

SKEIN_INLINE void check_optimizer(CheckpointReader& reader, const std::string& own, int arrays) {
  std::string saved;  // of files of older versions: not known
  if (reader.contains("optimizer")) reader.read_object("optimizer", saved);
  const std::string theirs = owners_of(saved), ours = owners_of(own);
  int there = 0;
  for (const SectionInfo& s : reader.sections())
    while (s.name.starts_with(state_prefix(there))) ++there;
  if ((saved.empty() || theirs == ours) && there == arrays) return;
  throw FileError(reader.path(), -1,
                  text("the file was saved with another optimizer ({} and {} arrays of state a parameter) than this training has "
                       "({} and {}): go on with that one; load_weights(path) takes the weights alone",
                       saved.empty() ? "another" : std::string_view(theirs), there, ours, arrays));
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
