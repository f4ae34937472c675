// SPDX-License-Identifier: Apache-2.0
// Any text between the fixed words of a checkpoint's header, with the hash that fits: a table that has this one text, or a
// FileError.
#include <cstring>

#include <skein/train/pieces.hpp>
#include <skein/train/safetensors.hpp>

#include "target.hpp"

namespace st = skein::train;

namespace {
std::string begin() {
  return std::string(st::detail::safetensors_begin) + std::to_string(st::checkpoint_version) + "\"," +
         std::string(st::detail::safetensors_hash) + std::string(16, '0') + "\"";
}

void run(fuzz::Input data) {
  std::string text = begin().append(fuzz::words(data));
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  const std::uint64_t length = text.size();
  std::string header(8, '\0');
  std::memcpy(header.data(), &length, 8);
  header += text;
  const std::string digits = st::detail::hex(st::detail::hash_of_header(header));
  std::memcpy(header.data() + header.find(std::string(16, '0')), digits.data(), 16);
  if (!st::detail::hash_fits(header)) std::abort();
  try {
    st::FileTable table = st::detail::read_safetensors_header(header, "fuzz");
    const bool begins = table.sections.empty() || table.sections[0].offset == header.size();  // what check_layout demands
    if (begins && st::detail::safetensors_header(table) != header) std::abort();
    for (const st::SectionInfo& s : table.sections) (void)st::parse_piece(s.name);
    (void)st::gather_sections({table}, "fuzz");
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz") std::abort();
  }
}

std::vector<fuzz::Bytes> seeds() {
  const auto section = [](const char* name, st::SectionType type, std::vector<std::uint64_t> extents, std::uint64_t bytes) {
    st::SectionInfo s;
    s.name = name, s.type = type, s.bytes = bytes, s.hash = 77;
    s.extents.assign(extents.begin(), extents.end());
    return s;
  };
  std::vector<fuzz::Bytes> all;
  st::FileTable table{"skein", {{"ranks", "2"}}, {}};
  for (int n = 0; n < 3; ++n) {
    const std::string header = (st::detail::lay_out(table), st::detail::safetensors_header(table));
    all.push_back(fuzz::bytes_of(std::string_view(header).substr(8 + begin().size())));
    if (n == 0) table.sections.push_back(section("0.weight", st::SectionType::float32, {3, 5}, 60));
    else table.sections.push_back(section("1.bias[0:2 of 4]", st::SectionType::float64, {2}, 16));
  }
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(safetensors, run, seeds)
