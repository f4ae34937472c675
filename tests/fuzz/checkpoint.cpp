// SPDX-License-Identifier: Apache-2.0
// Any bytes as a checkpoint, and as an archive: a FileError or a value, never a crash, never more memory than the file and a
// budget. Some inputs are edits of a sound
// file and get hashes that fit, as an attacker would make them: else the fuzzer would not get past those.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <skein/train/checkpoint.hpp>
#include <skein/train/history.hpp>

#include "target.hpp"

namespace st = skein::train;

namespace {
struct Everything {
  bool flag = false;
  std::string text;
  std::vector<bool> bits;
  std::vector<std::vector<std::string>> nested;
  std::map<std::string, std::optional<double>> map;
  std::tuple<char, std::array<short, 3>> tuple;
  std::vector<Everything> children;
  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & flag & text & bits & nested & map & tuple & children);
  }
};

/// An object has one form. One of an older archive version is written in today's, which is then the one.
template <class T> void read_archive(std::span<const std::byte> bytes, bool has_versions = false) {
  T object, same;
  try {
    st::from_bytes(bytes, object, "fuzzed");
  } catch (const skein::FileError&) { return; }
  std::vector<std::byte> again = st::to_bytes(object);
  if (has_versions) {
    const std::vector<std::byte> today = again;
    st::from_bytes(std::span<const std::byte>(today), same, "written");
    again = st::to_bytes(same);
    if (again != today) std::abort();
    return;
  }
  if (again.size() != bytes.size() || (!again.empty() && std::memcmp(again.data(), bytes.data(), again.size()) != 0))
    std::abort();
}

void seal_format_1(std::vector<std::byte>& bytes) {
  if (bytes.size() < 64) return;
  std::memcpy(bytes.data(), st::detail::checkpoint_magic, 8);
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 40, &size, 8);
  std::uint64_t table = 0;
  std::memcpy(&table, bytes.data() + 24, 8);
  if (table <= size - 64) {
    const std::uint64_t hash = st::hash64(bytes.data() + 64, table);
    std::memcpy(bytes.data() + 32, &hash, 8);
  }
  const std::uint64_t hash = st::hash64(bytes.data(), 56);
  std::memcpy(bytes.data() + 56, &hash, 8);
}
void seal(std::vector<std::byte>& bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < 8) return;
  std::memcpy(&length, bytes.data(), 8);
  if (length > bytes.size() - 8) return;
  const std::string header(reinterpret_cast<const char*>(bytes.data()), 8 + length);
  const std::size_t at = header.find(st::detail::safetensors_hash) + st::detail::safetensors_hash.size();
  const std::string digits = st::detail::hex(st::detail::hash_of_header(header));
  if (at >= st::detail::safetensors_hash.size() && at + 16 <= header.size()) std::memcpy(bytes.data() + at, digits.data(), 16);
}
void read_checkpoint(std::span<const std::byte> bytes, st::Verify verify) {
  try {
    st::CheckpointReader reader(skein::InputFile(bytes, "fuzzed"), verify);
    for (const st::SectionInfo& info : reader.sections()) {
      try {
        float values[64];
        if (info.type == st::SectionType::object) {
          Everything object;
          reader.read_object(info.name, object);
        } else {
          const long n = info.extents.empty() ? 1 : static_cast<long>(info.extents.back());
          if (n >= 0 && n <= 64) reader.read(info.name, std::span<float>(values, static_cast<std::size_t>(n)));
        }
      } catch (const skein::FileError&) {}
    }
    reader.finish();
  } catch (const skein::FileError&) {}
}
/// A small checkpoint with a section of each kind.
fuzz::Bytes sound_file() {
  fuzz::Folder folder;
  const std::string path = folder / "c";
  const std::vector<float> values(24, 1.5f);
  Everything object;
  object.children.resize(2);
  object.children[1].map["key"] = 0.5;
  st::CheckpointWriter writer;
  writer.add("0.weight", skein::Extents{2, {3, 5}}, values.data(), 8);
  writer.add("flat", std::span<const float>(values));
  writer.add_object("object", object);
  writer.commit(path);
  return fuzz::read_file(path);
}

std::span<const std::byte> as_bytes(fuzz::Input bytes) { return std::as_bytes(bytes); }

void run(fuzz::Input data) {
  if (data.empty()) return;
  static const fuzz::Bytes sound = sound_file();
  const fuzz::Input bytes = data.subspan(1);
  switch (data[0] % 6) {
    case 0:
      return read_archive<Everything>(as_bytes(bytes));
    case 1:
      return read_archive<skein::History>(as_bytes(bytes), true);
    case 2:
      return read_checkpoint(as_bytes(bytes), st::Verify::Whole);
    default: {
      const fuzz::Bytes whole = data[0] % 6 == 3 ? fuzz::edited(sound, bytes) : fuzz::Bytes(bytes.begin(), bytes.end());
      const std::span<const std::byte> view = as_bytes(whole);
      std::vector<std::byte> sealed(view.begin(), view.end());
      if (data[0] % 6 == 5) seal_format_1(sealed);
      else seal(sealed);
      read_checkpoint(sealed, st::Verify::Table);
    }
  }
}

std::vector<fuzz::Bytes> seeds() {
  std::vector<fuzz::Bytes> all{{3, 100, 0, 'x'}};
  Everything object;
  object.children.resize(1);
  const std::vector<std::byte> archive = st::to_bytes(object), history = st::to_bytes(skein::History{});
  const fuzz::Bytes file = sound_file();
  const auto add = [&](std::uint8_t kind, const auto& bytes) {
    all.push_back({kind});
    for (const auto b : bytes) all.back().push_back(static_cast<std::uint8_t>(b));
  };
  add(0, archive);
  add(1, history);
  add(2, file);
  add(4, file);
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(checkpoint, run, seeds)
