// SPDX-License-Identifier: Apache-2.0
// The manifest of a commit: a checkpoint file without tensors, whose header says which shards there are, and of each section
// where it is, with its hashes. All of that follows from the tables of the shards, so a reader makes the words again and
// compares.
#pragma once
#include <string>
#include <vector>

#include "checkpoint_writer.hpp"
#include "pieces.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

inline constexpr const char* manifest_name = "manifest.safetensors";
/// "rank_00002.safetensors".
std::string shard_name(int rank);

/// The sections of the shards, one a rank. Throws FileError where they are not whole.
std::vector<GatheredSection> sections_of(const std::vector<WrittenFile>& shards, const std::string& path);
/// The manifest of the shards, with more facts. Throws FileError where they do not make whole sections.
CheckpointWriter manifest_of(const std::vector<WrittenFile>& shards, const FileMetadata& facts, const std::string& path);
/// The number of shards that a manifest names. Throws FileError.
int ranks_of_manifest(const FileMetadata& manifest, const std::string& path);
/// Throws FileError where a manifest is of other shards than these, which have these sections.
void check_manifest(const FileMetadata& manifest, const std::vector<WrittenFile>& shards,
                    const std::vector<GatheredSection>& sections, const std::string& path);

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "manifest.ipp"
#endif
