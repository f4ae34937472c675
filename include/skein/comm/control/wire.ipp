// SPDX-License-Identifier: Apache-2.0
// The bodies of wire.hpp.
#pragma once
#include <type_traits>

#include "wire.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE std::string encode(const Frame& f) {
  if (f.payload.size() > most_from_ranks)
    throw ArgumentError(
        text("the coordinator carries control values, at most 256 MiB at once; asked for {} bytes", f.payload.size()));
  const detail::Header h{
      detail::magic, f.group, detail::version, static_cast<std::uint16_t>(f.kind), static_cast<std::uint32_t>(f.payload.size()),
      f.number,      f.limit};
  std::string bytes(sizeof h, '\0');
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes += f.payload;
}

SKEIN_INLINE std::optional<Frame> FrameReader::next() {
  if (bytes_.size() - at_ < sizeof(detail::Header)) return std::nullopt;
  detail::Header h;
  std::memcpy(&h, bytes_.data() + at_, sizeof h);
  if (h.magic != detail::magic) throw CommError("the other side speaks something else than skein's coordinator");
  if (h.version != detail::version)
    throw CommError(text("the other side's coordinator has version {}, this one {}: build all ranks from one skein", h.version,
                         detail::version));
  if (h.kind < static_cast<std::uint16_t>(Kind::Hello) || h.kind > static_cast<std::uint16_t>(Kind::Goodbye))
    throw CommError(text("the other side sent a frame of an unknown kind, {}", h.kind));
  if (h.bytes > most_) throw CommError(text("the other side announces a frame of {} bytes, more than {}", h.bytes, most_));
  if (!(h.limit >= 0 && h.limit < 1e9)) throw CommError("the other side sent a time limit that is none");
  if (bytes_.size() - at_ - sizeof h < h.bytes) return std::nullopt;
  Frame f{static_cast<Kind>(h.kind), h.group, h.number, h.limit, bytes_.substr(at_ + sizeof h, h.bytes)};
  at_ += sizeof h + h.bytes;
  if (at_ == bytes_.size() || at_ > 65536) bytes_.erase(0, at_), at_ = 0;
  return f;
}

namespace detail {
template <class T> std::string bytes_of(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>, "padding would travel");
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T> std::optional<T> value_of(std::string_view bytes) {
  T value;
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
}  // namespace detail

SKEIN_INLINE std::string pack(const Hello& h) { return detail::bytes_of(h); }
SKEIN_INLINE std::optional<Hello> unpack_hello(std::string_view bytes) { return detail::value_of<Hello>(bytes); }
SKEIN_INLINE std::string pack(const Heard& h) { return detail::bytes_of(h); }
SKEIN_INLINE std::optional<Heard> unpack_heard(std::string_view bytes) { return detail::value_of<Heard>(bytes); }
SKEIN_INLINE std::string pack(const Digest& d) { return detail::bytes_of(d); }
SKEIN_INLINE std::optional<Digest> unpack_proof(std::string_view bytes) { return detail::value_of<Digest>(bytes); }

SKEIN_INLINE void append_part(std::string& whole, std::string_view part) {
  const std::uint64_t n = part.size();
  char count[sizeof n];
  std::memcpy(count, &n, sizeof n);
  whole.append(count, sizeof n).append(part);
}

SKEIN_INLINE std::string_view take_part(std::string_view& rest) {
  std::uint64_t n = 0;
  if (rest.size() < sizeof n) throw CommError("the coordinator's answer is cut off");
  std::memcpy(&n, rest.data(), sizeof n);
  if (n > rest.size() - sizeof n) throw CommError("the coordinator's answer is cut off");
  const std::string_view part = rest.substr(sizeof n, static_cast<std::size_t>(n));
  rest.remove_prefix(sizeof n + static_cast<std::size_t>(n));
  return part;
}

}  // namespace skein::inline SKEIN_ABI::comm::control
