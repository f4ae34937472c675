// SPDX-License-Identifier: Apache-2.0
// The bodies of npy_header.hpp.
#pragma once
#include <cstdio>

#include "npy_header.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE long long NpyHeader::count() const {
  long long n = 1;
  for (long e : extents) n *= e;
  return n;
}

}  // namespace skein::inline SKEIN_ABI

namespace skein::inline SKEIN_ABI::detail {

SKEIN_INLINE void NpyText::fail(const std::string& what) const {
  throw FileError(path_, base_ + static_cast<long long>(at_), "the .npy header " + what);
}

SKEIN_INLINE void NpyText::expect(char c) {
  if (!next(c)) fail(std::string("wants '") + c + "' here");
}

SKEIN_INLINE std::string NpyText::quoted() {
  skip();
  if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
    fail("wants a quoted word here (records are not supported)");
  const unsigned char quote = text_[at_++];
  std::string word;
  while (at_ < text_.size() && text_[at_] != quote) word += static_cast<char>(text_[at_++]);
  if (at_ == text_.size()) fail("ends within a quoted word");
  ++at_;
  return word;
}

SKEIN_INLINE long NpyText::number() {
  skip();
  const std::size_t first = at_;
  long n = 0;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    if (n > (1L << 59) / 10) fail("has an extent that no file can hold");
    n = n * 10 + (text_[at_] - '0');
  }
  if (at_ == first) fail("wants an extent here");
  return n;
}

SKEIN_INLINE void NpyText::end() {
  skip();
  if (at_ != text_.size()) fail("goes on after its dictionary");
}

SKEIN_INLINE void NpyText::skip() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
}

SKEIN_INLINE long long npy_header_bytes(std::span<const unsigned char> start, long long available, const std::string& path,
                                        long long base) {
  static constexpr unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (available < 10 || start.size() < 10)
    throw FileError(path, base + static_cast<long long>(start.size()), "ends within the .npy header");
  for (int i = 0; i < 6; ++i)
    if (start[static_cast<std::size_t>(i)] != magic[i])
      throw FileError(path, base + i, "is no .npy file: it must begin with \\x93NUMPY");
  const int version = start[6];
  if (version < 1 || version > 3)
    throw FileError(path, base + 6, skein::text("has .npy version {}: 1 to 3 are understood", version));
  if (version > 1 && start.size() < 12)
    throw FileError(path, base + static_cast<long long>(start.size()), "ends within the .npy header");
  long long text = start[8] | start[9] << 8;
  if (version > 1) text |= static_cast<long long>(start[10]) << 16 | static_cast<long long>(start[11]) << 24;
  const long long prefix = version > 1 ? 12 : 10;
  if (text > npy_header_limit)
    throw FileError(path, base + 8, skein::text("claims a .npy header of {} bytes: 1 MiB is the limit", text));
  if (text > available - prefix)
    throw FileError(path, base + 8,
                    skein::text("claims a .npy header of {} bytes, the file has {} left", text, available - prefix));
  return prefix + text;
}

SKEIN_INLINE NpyHeader parse_npy_header(std::span<const unsigned char> whole, long long available, const std::string& path,
                                        long long base) {
  NpyHeader h;
  h.bytes = npy_header_bytes(whole.first(whole.size() < 12 ? whole.size() : 12), available, path, base);
  const std::size_t prefix = whole[6] > 1 ? 12 : 10;
  NpyText text(whole.subspan(prefix, static_cast<std::size_t>(h.bytes) - prefix), path, base + static_cast<long long>(prefix));
  bool descr = false, order = false, shape = false;
  text.expect('{');
  while (!text.next('}')) {
    const std::string key = text.quoted();
    text.expect(':');
    if (key == "descr" && !descr) {
      descr = true;
      const std::string d = text.quoted();
      const bool good = d.size() == 3 && (d[0] == '<' || d[0] == '>' || d[0] == '|' || d[0] == '=') && d[2] >= '1' && d[2] <= '8';
      h.kind = good ? d[1] : '?';
      h.width = good ? d[2] - '0' : 0;
      const bool known = (h.kind == 'f' && (h.width == 4 || h.width == 8)) || (h.kind == 'b' && h.width == 1) ||
                         ((h.kind == 'i' || h.kind == 'u') && (h.width == 1 || h.width == 2 || h.width == 4 || h.width == 8));
      const bool half = d.ends_with("f2") || d.ends_with("V2");  // bfloat16 has no letter of its own
      if (!known)
        text.fail("has the type " + in_quotes(d) + ": floats of 4 and 8 bytes, integers and booleans are understood" +
                  (half ? "; save it as float32, array.astype(\"f4\")" : ""));
      h.swapped = h.width > 1 && d[0] == (std::endian::native == std::endian::little ? '>' : '<');
    } else if (key == "fortran_order" && !order) {
      order = true;
      h.fortran = text.boolean();
    } else if (key == "shape" && !shape) {
      shape = true;
      text.expect('(');
      while (!text.next(')')) {
        if (h.extents.size() == 32) text.fail("has more than 32 extents");
        h.extents.push_back(text.number());
        if (!text.next(',')) {
          text.expect(')');
          break;
        }
      }
    } else {
      text.fail("has the entry " + in_quotes(key) + " twice, or does not know it");
    }
    if (!text.next(',')) {
      text.expect('}');
      break;
    }
  }
  text.end();
  if (!descr || !order || !shape) text.fail("lacks one of descr, fortran_order and shape");
  const long long room = available - h.bytes;
  bool fits = true, nothing = false;
  for (long e : h.extents) nothing = nothing || e == 0;
  long long need = h.width;
  const long long most = nothing ? 1LL << 60 : room;  // of an array of nothing the other extents must be sizes, too
  for (long e : h.extents) {
    if (e == 0 || !fits) continue;
    if (need > most / e) fits = false;
    else need *= e;
  }
  if (nothing && fits) need = 0;
  if (!fits || need != room) {
    const std::string asked = fits ? std::to_string(need) : skein::text("more than {}", room);
    throw FileError(path, base + h.bytes,
                    skein::text("must hold {} bytes of values for shape {} of {}, it has {}", asked,
                                shape_text(h.extents.data(), static_cast<int>(h.extents.size())), h.type(), room));
  }
  return h;
}

SKEIN_INLINE std::string npy_header_text(char kind, int width, const long* extents, int rank) {
  const char order = width == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string shape;
  for (int i = 0; i < rank; ++i) shape += std::to_string(extents[i]) + (i + 1 < rank ? ", " : rank == 1 ? "," : "");
  std::string d = skein::text("{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }", order, kind, width, shape);
  d.append(63 - (10 + d.size()) % 64, ' ') += '\n';
  std::string h("\x93NUMPY\x01\x00", 8);
  h += static_cast<char>(d.size() & 0xff);
  h += static_cast<char>(d.size() >> 8);
  return h + d;
}

SKEIN_INLINE void throw_not_held(const std::string& path, long i, double value, char kind, int width) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  throw FileError(path, -1,
                  skein::text("value {} is {}, which {}{} cannot hold: load the array as a wider type", i, text, kind, width));
}

}  // namespace skein::inline SKEIN_ABI::detail

SKEIN_END_COLD
