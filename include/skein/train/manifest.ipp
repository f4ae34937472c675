// SPDX-License-Identifier: Apache-2.0
// The bodies of manifest.hpp.
#pragma once
#include <charconv>
#include <vector>

#include "../core/text.hpp"
#include "manifest.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string shard_name(int rank) {
  const std::string digits = std::to_string(rank);
  return "rank_" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits + ".safetensors";
}

namespace detail {
inline bool is_of_shards(std::string_view fact) {
  return fact == "ranks" || fact.starts_with("shard/") || fact.starts_with("section/");
}
/// What a manifest says of the shards.
inline FileMetadata describe_shards(const std::vector<WrittenFile>& shards, const std::vector<GatheredSection>& sections) {
  FileMetadata facts{{"ranks", std::to_string(shards.size())}};
  for (std::size_t r = 0; r < shards.size(); ++r)
    facts["shard/" + shard_name(static_cast<int>(r))] =
        text("{} bytes, header xxh64 {}", shards[r].bytes, hex(shards[r].header_hash));
  for (const GatheredSection& section : sections) {
    std::string& words = facts["section/" + section.info.name];
    words = section.info.text();
    for (const SectionPiece& p : section.pieces)
      words += text(", {} bytes in {} xxh64 {}", p.bytes, shard_name(static_cast<int>(p.file)), hex(p.hash));
  }
  return facts;
}
}  // namespace detail

SKEIN_INLINE std::vector<GatheredSection> sections_of(const std::vector<WrittenFile>& shards, const std::string& path) {
  std::vector<FileTable> tables;
  for (const WrittenFile& shard : shards) tables.push_back(shard.table);
  return gather_sections(tables, path);
}

SKEIN_INLINE CheckpointWriter manifest_of(const std::vector<WrittenFile>& shards, const FileMetadata& facts,
                                          const std::string& path) {
  CheckpointWriter manifest;
  for (const auto& [name, words] : detail::describe_shards(shards, sections_of(shards, path))) manifest.add_fact(name, words);
  for (const auto& [name, words] : facts) manifest.add_fact(name, words);
  return manifest;
}

SKEIN_INLINE int ranks_of_manifest(const FileMetadata& manifest, const std::string& path) {
  const auto found = manifest.find("ranks");
  int ranks = 0;
  if (found != manifest.end()) (void)std::from_chars(found->second.data(), found->second.data() + found->second.size(), ranks);
  if (ranks < 1 || ranks > 1'000'000 || found->second != std::to_string(ranks))
    throw FileError(path, -1, "says of no number of shards that there are: it is no manifest");
  return ranks;
}

SKEIN_INLINE void check_manifest(const FileMetadata& manifest, const std::vector<WrittenFile>& shards,
                                 const std::vector<GatheredSection>& sections, const std::string& path) {
  const FileMetadata expected = detail::describe_shards(shards, sections);
  std::size_t count = 0;
  for (const auto& [name, words] : manifest) {
    if (!detail::is_of_shards(name)) continue;
    ++count;
    const auto found = expected.find(name);
    if (found == expected.end() || found->second != words)
      throw FileError(path, -1, "its manifest does not fit its shards: '" + name + "' is said to be " + words);
  }
  if (count != expected.size()) throw FileError(path, -1, "its shards have sections that its manifest does not name");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
