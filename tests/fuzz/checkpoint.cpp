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

#include "replay.hpp"

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

template <class T> void read_archive(std::span<const std::byte> bytes) {
  T object;
  try {
    st::from_bytes(bytes, object, "fuzzed");
  } catch (const skein::FileError&) { return; }
  const std::vector<std::byte> again = st::to_bytes(object);  // each object has one form
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
/// Any text between the fixed words of a header: what it means has one text.
void read_header(std::span<const std::byte> bytes) {
  std::string text(st::detail::safetensors_begin);
  text +=
      std::to_string(st::checkpoint_version) + "\"," + std::string(st::detail::safetensors_hash) + std::string(16, '0') + "\"";
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  std::uint64_t length = text.size();
  std::string header(8, '\0');
  std::memcpy(header.data(), &length, 8);
  header += text;
  try {
    st::FileTable table = st::detail::read_safetensors_header(header, "fuzzed");
    for (const st::SectionInfo& s : table.sections) (void)st::parse_piece(s.name);
    (void)st::gather_sections(std::span<const st::FileTable>(&table, 1), "fuzzed");
  } catch (const skein::FileError&) {}
}

void read_checkpoint(std::span<const std::byte> bytes, st::Verify verify) {
  try {
    st::CheckpointReader reader(st::InputFile(bytes, "fuzzed"), verify);
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
std::vector<std::byte> sound_file() {
  char folder[] = "/tmp/skein-fuzz-XXXXXX";
  if (!mkdtemp(folder)) std::abort();
  const std::string path = std::string(folder) + "/c";
  const std::vector<float> values(24, 1.5f);
  Everything object;
  object.children.resize(2);
  object.children[1].map["key"] = 0.5;
  st::CheckpointWriter writer;
  writer.add("0.weight", skein::Extents{2, {3, 5}}, values.data(), 8);
  writer.add("flat", std::span<const float>(values));
  writer.add_object("object", object);
  writer.commit(path);
  const st::InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes.data(), bytes.size());
  ::unlink(path.c_str());
  ::rmdir(folder);
  return bytes;
}

/// The sound file with three bytes an edit: where (two), what.
std::vector<std::byte> edited(std::span<const std::byte> edits) {
  static const std::vector<std::byte> sound = sound_file();
  std::vector<std::byte> bytes = sound;
  for (; edits.size() >= 3; edits = edits.subspan(3))
    bytes[(std::to_integer<std::size_t>(edits[0]) | std::to_integer<std::size_t>(edits[1]) << 8) % bytes.size()] = edits[2];
  return bytes;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      read_archive<Everything>(bytes);
      break;
    case 1:
      read_archive<skein::History>(bytes);
      break;
    case 2:
      read_checkpoint(bytes, st::Verify::Whole);
      break;
    case 3:
      read_header(bytes);
      break;
    default: {
      std::vector<std::byte> sealed = data[0] % 7 == 4 ? edited(bytes) : std::vector<std::byte>(bytes.begin(), bytes.end());
      if (data[0] % 7 == 6) seal_format_1(sealed);
      else seal(sealed);
      read_checkpoint(sealed, st::Verify::Table);
    }
  }
  return 0;
}
