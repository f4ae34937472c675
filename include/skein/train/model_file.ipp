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

template <class Scalar> void add_entries(CheckpointWriter& writer, const std::string& prefix,
                                         std::span<const plan::Entry> entries, std::span<const plan::PathPart> paths,
                                         const Scalar* data) {
  for (const plan::Entry& e : entries)
    writer.add(prefix + std::string(std::string_view(plan::name_of(paths, e))), e.extents, data + e.offset,
               row_pitch(e.extents.last()));
}
SKEIN_INLINE void add_array(CheckpointWriter& writer, const std::string& prefix, std::span<const plan::Entry> entries,
                            std::span<const plan::PathPart> paths, const float* data) {
  add_entries(writer, prefix, entries, paths, data);
}
SKEIN_INLINE void add_array(CheckpointWriter& writer, const std::string& prefix, std::span<const plan::Entry> entries,
                            std::span<const plan::PathPart> paths, const double* data) {
  add_entries(writer, prefix, entries, paths, data);
}

SKEIN_INLINE void check_loss(CheckpointReader& reader, const std::string& own) {
  std::string saved = own;  // of files of older versions: not known
  if (reader.contains("loss")) reader.read_object("loss", saved);
  if (saved == own) return;
  throw FileError(reader.path(), -1,
                  text("the file was saved with another loss ({}) than this training has ({}): go on with that one; "
                       "load_weights(path) takes the weights alone",
                       saved, own));
}

SKEIN_INLINE void fail_save(const std::string& path, const std::string& why) {
  if (!why.empty()) throw FileError(path, -1, "could not be saved: " + why);
  throw CommError("save: rank 0 could not write '" + path + "': see its message");
}

SKEIN_INLINE void add_records(CheckpointWriter& writer, const FileRecords& records) {
  writer.add_object("steps", records.steps);
  writer.add_object("optimizer", records.optimizer);
  writer.add_object("loss", records.loss);
  writer.add_object("layers", records.layers);
  writer.add_object("place", records.place);
  writer.add_object("history", records.history);
  writer.add_object("callbacks", records.callbacks);
  records.kept.write(writer);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
