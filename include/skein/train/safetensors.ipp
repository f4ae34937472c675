// SPDX-License-Identifier: Apache-2.0
// The bodies of safetensors.hpp.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "../core/text.hpp"
#include "hash.hpp"
#include "safetensors.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = skein::detail::utf8_length(text);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (length == 0 || byte(0) < 0x20 || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0)) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace detail {

SKEIN_INLINE const char* safetensors_type(SectionType type) {
  constexpr const char* names[] = {"U8", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "BF16"};
  return names[static_cast<unsigned>(type)];
}

/// The name in the file: of an object with its prefix.
inline std::string name_in_file(const SectionInfo& info) {
  return (info.type == SectionType::object ? std::string(object_prefix) : std::string()) + info.name;
}
inline void append_string(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') to += '\\';
    to += c;
  }
  to += '"';
}
SKEIN_INLINE std::string hex(std::uint64_t value) {
  std::string digits(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) digits[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  return digits;
}
inline std::string length_in_front(std::string json) {
  json.resize(aligned(json.size() + 8) - 8, ' ');
  const std::uint64_t length = json.size();
  char bytes[8];
  std::memcpy(bytes, &length, sizeof bytes);
  return std::string(bytes, sizeof bytes) + json;
}

/// The text with a hash of zeros; `data` is where the header ends.
inline std::string header_text(const FileTable& table, std::uint64_t data) {
  std::string text(safetensors_begin);
  text.append(std::to_string(checkpoint_version)).append("\",").append(safetensors_hash).append(16, '0').append("\"");
  const auto fact = [&](std::string_view name, std::string_view value) {
    append_string(text += ',', name);
    append_string(text += ':', value);
  };
  fact("written_by", table.written_by);
  for (const auto& [name, value] : table.facts) fact(name, value);
  for (const SectionInfo& s : table.sections) fact(std::string(hash_prefix) + name_in_file(s), hex(s.hash));
  text += '}';
  for (const SectionInfo& s : table.sections) {
    append_string(text += ',', name_in_file(s));
    text.append(":{\"dtype\":\"").append(safetensors_type(s.type)).append("\",\"shape\":[").append(joined(s.extents, ","));
    text.append("],\"data_offsets\":[").append(joined(std::array{s.offset - data, s.offset - data + s.bytes}, ",")).append("]}");
  }
  return length_in_front(text + "}");
}
inline std::size_t place_of_hash(std::string_view header) {
  const std::size_t found = header.find(safetensors_hash);
  return found == header.npos ? header.npos : found + safetensors_hash.size();
}

SKEIN_INLINE std::uint64_t lay_out(FileTable& table) {
  std::uint64_t offset = 0;
  for (SectionInfo& s : table.sections) s.offset = std::exchange(offset, offset + s.bytes);
  const std::uint64_t bytes = header_text(table, 0).size();
  for (SectionInfo& s : table.sections) s.offset += bytes;
  return bytes;
}

SKEIN_INLINE std::string safetensors_header(const FileTable& table) {
  const std::uint64_t data = table.sections.empty() ? 0 : table.sections[0].offset;
  std::string header = header_text(table, data);
  const std::string digits = hex(hash_of_header(header));
  header.replace(place_of_hash(header), digits.size(), digits);
  return header;
}

SKEIN_INLINE std::uint64_t hash_of_header(std::string header) {
  if (const std::size_t at = place_of_hash(header); at != header.npos && at + 16 <= header.size())
    header.replace(at, 16, 16, '0');
  return hash64(header.data(), header.size());
}

SKEIN_INLINE bool hash_fits(std::string_view header) {
  const std::size_t at = place_of_hash(header);
  return at != header.npos && header.substr(at, 16) == hex(hash_of_header(std::string(header)));
}

/// The forms of JSON that a header has.
class HeaderText {
 public:
  HeaderText(std::string_view header, const std::string& path) : text_(header), path_(path) {}

  [[noreturn]] void refuse(const std::string& what) const { throw FileError(path_, static_cast<long long>(next_), what); }
  bool take(char c) {
    if (next_ >= text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  void demand(std::string_view words) {
    if (next_ > text_.size() || text_.substr(next_, words.size()) != words)
      refuse("the header has another text than `" + std::string(words) + "` here");
    next_ += words.size();
  }
  std::string string() {
    demand("\"");
    std::string found;
    while (!take('"')) {
      take('\\');
      if (next_ >= text_.size()) refuse("the header ends within a string");
      found += text_[next_++];
    }
    if (!is_plain_text(found)) refuse("a string of the header is no UTF-8, or has control characters");
    return found;
  }
  void skip(std::size_t count) { next_ += count; }
  std::uint64_t number() {
    if (next_ > text_.size()) refuse("the header ends here");
    std::uint64_t value = 0;
    const char* const begin = text_.data() + next_;
    const auto [end, fault] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (fault != std::errc() || value > std::uint64_t{1} << 62) refuse("the header has no number of this size here");
    next_ += static_cast<std::size_t>(end - begin);
    return value;
  }

 private:
  std::string_view text_;
  const std::string& path_;
  std::size_t next_ = 8;
};

inline std::uint64_t read_hex(const HeaderText& text, std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (fault != std::errc() || end != digits.data() + digits.size()) text.refuse("a hash has 16 digits of 0 to 9, a to f");
  return value;
}
/// Reads {"dtype":"F32","shape":[3,5],"data_offsets":[0,60]}.
inline SectionInfo read_section(HeaderText& text, std::uint64_t data) {
  SectionInfo info;
  info.name = text.string();
  text.demand(":{\"dtype\":");
  const std::string type = text.string();
  const bool object = info.name.starts_with(object_prefix);
  if (object) info.name.erase(0, object_prefix.size());
  int found = object ? 0 : 1;
  for (; value_bytes(static_cast<SectionType>(found)) > 0; ++found)
    if (type == safetensors_type(static_cast<SectionType>(found))) break;
  info.type = static_cast<SectionType>(found);
  if (value_bytes(info.type) == 0) text.refuse("section '" + info.name + "' holds values of an unknown type");
  text.demand(",\"shape\":[");
  if (!text.take(']')) {
    do info.extents.push_back(static_cast<std::int64_t>(text.number()));
    while (text.take(','));
    text.demand("]");
  }
  text.demand(",\"data_offsets\":[");
  const std::uint64_t begin = text.number();
  text.demand(",");
  const std::uint64_t end = text.number();
  text.demand("]}");
  if (end < begin) text.refuse("section '" + info.name + "' ends before it begins");
  info.offset = data + begin;
  info.bytes = end - begin;
  return info;
}

SKEIN_INLINE FileTable read_safetensors_header(std::string_view header, const std::string& path) {
  HeaderText text(header, path);
  FileTable table;
  std::vector<std::uint64_t> hashes;
  text.demand(skein::text("{}{}\",{}", safetensors_begin, checkpoint_version, safetensors_hash));
  text.skip(16);
  text.demand("\"");
  while (text.take(',')) {
    std::string name = text.string();
    text.demand(":");
    std::string value = text.string();
    if (name.starts_with(hash_prefix)) hashes.push_back(read_hex(text, value));
    else if (name == "written_by") table.written_by = std::move(value);
    else table.facts.insert_or_assign(std::move(name), std::move(value));
  }
  text.demand("}");
  while (text.take(',')) table.sections.push_back(read_section(text, header.size()));
  text.demand("}");
  if (hashes.size() != table.sections.size()) text.refuse("the header has not one hash for each section");
  for (std::size_t i = 0; i < hashes.size(); ++i) table.sections[i].hash = hashes[i];
  std::string again = header_text(table, header.size());
  if (again.size() == header.size()) again.replace(place_of_hash(again), 16, header.substr(place_of_hash(header), 16));
  if (again != header) text.refuse("the header is not as a writer makes it");  // another order, spaces, a name twice
  return table;
}

}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
