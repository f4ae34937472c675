// SPDX-License-Identifier: Apache-2.0
// Any words as what a manifest says of the shards of a commit, line by line "name<tab>words": its number of ranks, and whether it
// fits the shards; and edits of a sound one. What is taken says the same as the sound one.
#include <skein/train/checkpoint_reader.hpp>
#include <skein/train/manifest.hpp>

#include "target.hpp"

namespace st = skein::train;

namespace {
std::vector<st::WrittenFile> shards() {
  std::vector<st::WrittenFile> all(2);
  for (std::uint64_t r = 0; r < 2; ++r) {
    st::SectionInfo piece;
    piece.name = r == 0 ? "0.weight[0:2 of 4]" : "0.weight[2:4 of 4]";
    piece.type = st::SectionType::float32;
    piece.extents = {2};
    piece.bytes = 8;
    piece.hash = r + 1;
    all[r] = {{"skein", {}, {piece}}, 512, 99 + r};
    all[r].bytes = st::detail::lay_out(all[r].table) + 64;
  }
  return all;
}
std::string sound() {
  fuzz::Folder folder;
  const std::string path = folder / st::manifest_name;
  st::manifest_of(shards(), {}, "fuzz").commit(path);
  std::string lines;
  const st::CheckpointReader manifest(path);
  for (const auto& [name, words] : manifest.facts()) lines.append(name).append("\t").append(words).append("\n");
  return lines;
}
st::FileMetadata facts_of(std::string_view lines) {
  st::FileMetadata facts;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::size_t tab = std::min(line.find('\t'), line.size());
    facts[std::string(line.substr(0, tab))] = std::string(line.substr(std::min(tab + 1, line.size())));
  }
  return facts;
}

void run(fuzz::Input data) {
  if (data.empty()) return;
  static const std::vector<st::WrittenFile> known = shards();
  static const std::vector<st::GatheredSection> sections = st::sections_of(known, "fuzz");
  static const std::string lines = sound();
  static const st::FileMetadata right = facts_of(lines);
  const bool edits = data[0] & 1;
  const fuzz::Bytes mended = fuzz::edited(fuzz::bytes_of(lines), data.subspan(1));
  const st::FileMetadata facts = facts_of(edits ? fuzz::words(mended) : fuzz::words(data.subspan(1)));
  try {
    if (st::ranks_of_manifest(facts, "fuzz") < 1) std::abort();
    st::check_manifest(facts, known, sections, "fuzz");
    for (const auto& [name, words] : right)
      if (const auto found = facts.find(name); found == facts.end() || found->second != words) std::abort();
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz") std::abort();
  }
}

std::vector<fuzz::Bytes> seeds() { return {fuzz::bytes_of(std::string(1, '\0') + sound()), {1, 0, 0, 'r'}, {1}}; }
}  // namespace

SKEIN_FUZZ_TARGET(manifest, run, seeds)
