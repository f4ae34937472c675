// SPDX-License-Identifier: Apache-2.0
// What travels between a coordinator and its ranks: frames of a fixed header and a payload. Whoever connects is hostile until its
// Hello has been checked: magic, version, kind and length are looked at before anything is kept, and memory grows with the bytes
// that came, never with the length that was claimed.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

enum class Kind : std::uint16_t { Hello = 1, Heard, Welcome, Exchange, Gathered, Open, Overdue, Query, State, Fail, Goodbye };

/// One message. `number`: of the exchange, the call or the question; `limit`: seconds that the sender would wait.
struct Frame {
  Kind kind{};
  std::uint32_t group = 0;
  std::uint64_t number = 0;
  double limit = 0;
  std::string payload{};
};

namespace detail {
inline constexpr std::uint32_t magic = 0x31484b53;  // "SKH1"; another byte order reads otherwise
inline constexpr std::uint16_t version = 1;
struct Header {
  std::uint32_t magic, group;
  std::uint16_t version, kind;
  std::uint32_t bytes;
  std::uint64_t number;
  double limit;
};
static_assert(sizeof(Header) == 32);
}  // namespace detail

/// Bytes of a payload: before a Hello was accepted, and after.
inline constexpr std::size_t most_from_strangers = 256, most_from_ranks = std::size_t{1} << 28;

/// The bytes of a frame: header, then payload. Throws ArgumentError beyond 256 MiB.
inline std::string encode(const Frame& f) {
  if (f.payload.size() > most_from_ranks)
    throw ArgumentError("the coordinator carries control values, at most 256 MiB at once; asked for " +
                        std::to_string(f.payload.size()) + " bytes");
  const detail::Header h{
      detail::magic, f.group, detail::version, static_cast<std::uint16_t>(f.kind), static_cast<std::uint32_t>(f.payload.size()),
      f.number,      f.limit};
  std::string bytes(sizeof h, '\0');
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes += f.payload;
}

/// Makes frames of the bytes that come. Throws CommError for bytes that are none; then the connection is to be closed.
class FrameReader {
 public:
  void add(const char* data, std::size_t n) { bytes_.append(data, n); }
  /// From now on as a rank of this job.
  void trust() { most_ = most_from_ranks; }
  std::optional<Frame> next() {
    if (bytes_.size() - at_ < sizeof(detail::Header)) return std::nullopt;
    detail::Header h;
    std::memcpy(&h, bytes_.data() + at_, sizeof h);
    if (h.magic != detail::magic) throw CommError("the other side speaks something else than skein's coordinator");
    if (h.version != detail::version)
      throw CommError("the other side's coordinator has version " + std::to_string(h.version) + ", this one " +
                      std::to_string(detail::version) + ": build all ranks from one skein");
    if (h.kind < static_cast<std::uint16_t>(Kind::Hello) || h.kind > static_cast<std::uint16_t>(Kind::Goodbye))
      throw CommError("the other side sent a frame of an unknown kind, " + std::to_string(h.kind));
    if (h.bytes > most_)
      throw CommError("the other side announces a frame of " + std::to_string(h.bytes) + " bytes, more than " +
                      std::to_string(most_));
    if (!(h.limit >= 0 && h.limit < 1e9)) throw CommError("the other side sent a time limit that is none");
    if (bytes_.size() - at_ - sizeof h < h.bytes) return std::nullopt;
    Frame f{static_cast<Kind>(h.kind), h.group, h.number, h.limit, bytes_.substr(at_ + sizeof h, h.bytes)};
    at_ += sizeof h + h.bytes;
    if (at_ == bytes_.size() || at_ > 65536) bytes_.erase(0, at_), at_ = 0;
    return f;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0, most_ = most_from_strangers;
};

/// Who says Hello.
struct Hello {
  std::int32_t rank = -1, size = 0;
  std::uint64_t key = 0;
};
/// The bytes of a Hello.
inline std::string pack(const Hello& h) {
  std::string bytes(sizeof h, '\0');
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes;
}
/// A Hello from bytes that a stranger has sent; nothing where their length is wrong.
inline std::optional<Hello> unpack_hello(std::string_view bytes) {
  Hello h;
  if (bytes.size() != sizeof h) return std::nullopt;
  std::memcpy(&h, bytes.data(), sizeof h);
  return h;
}

/// Several payloads as one: a count of bytes before each.
inline void append_part(std::string& whole, std::string_view part) {
  const std::uint64_t n = part.size();
  char count[sizeof n];
  std::memcpy(count, &n, sizeof n);
  whole.append(count, sizeof n).append(part);
}
/// The next part, which is cut off `rest`. Throws CommError where it is shorter than it says.
inline std::string_view take_part(std::string_view& rest) {
  std::uint64_t n = 0;
  if (rest.size() < sizeof n) throw CommError("the coordinator's answer is cut off");
  std::memcpy(&n, rest.data(), sizeof n);
  if (n > rest.size() - sizeof n) throw CommError("the coordinator's answer is cut off");
  const std::string_view part = rest.substr(sizeof n, static_cast<std::size_t>(n));
  rest.remove_prefix(sizeof n + static_cast<std::size_t>(n));
  return part;
}

}  // namespace skein::inline SKEIN_ABI::comm::control
