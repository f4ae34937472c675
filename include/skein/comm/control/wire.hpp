// SPDX-License-Identifier: Apache-2.0
// What travels between a coordinator and its ranks: frames of a fixed header and a payload. Whoever connects is hostile until its
// proof has been checked: magic, version, kind and length are looked at before anything is kept, and memory grows with the bytes
// that came, never with the length that was claimed.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "../../core/error.hpp"
#include "job_key.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// Left is of a rank that will make no call of a group any more, and then, with its place in it, of the coordinator to the
/// others. A meeting is: Hello, Heard (the coordinator's number and proof), Proof (the rank's), and Welcome when all have come.
enum class Kind : std::uint16_t {
  Hello = 1,
  Heard,
  Proof,
  Welcome,
  Exchange,
  Gathered,
  Open,
  Overdue,
  Query,
  State,
  Fail,
  Left,
  Goodbye
};

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
inline constexpr std::uint16_t version = 3;
struct Header {
  std::uint32_t magic, group;
  std::uint16_t version, kind;
  std::uint32_t bytes;
  std::uint64_t number;
  double limit;
};
static_assert(sizeof(Header) == 32);
}  // namespace detail

/// Bytes of a payload: before a rank was admitted, and after.
inline constexpr std::size_t most_from_strangers = 256, most_from_ranks = std::size_t{1} << 28;

/// The bytes of a frame: header, then payload. Throws ArgumentError beyond 256 MiB.
std::string encode(const Frame& f);

/// Makes frames of the bytes that come. Throws CommError for bytes that are none; then the connection is to be closed.
class FrameReader {
 public:
  void add(const char* data, std::size_t n) { bytes_.append(data, n); }
  /// From now on as a rank of this job.
  void trust() { most_ = most_from_ranks; }
  std::optional<Frame> next();

 private:
  std::string bytes_;
  std::size_t at_ = 0, most_ = most_from_strangers;
};

/// The bytes of a Hello.
std::string pack(const Hello& h);
/// A Hello from bytes that a stranger has sent; nothing where their length is wrong.
std::optional<Hello> unpack_hello(std::string_view bytes);
/// The coordinator's answer to a Hello: its own number, and the proof that it has the key.
struct Heard {
  Nonce nonce{};
  Digest proof{};
};
std::string pack(const Heard& h);
/// A Heard from bytes; nothing where their length is wrong.
std::optional<Heard> unpack_heard(std::string_view bytes);
/// The bytes of a proof.
std::string pack(const Digest& d);
/// A proof from bytes; nothing where their length is wrong.
std::optional<Digest> unpack_proof(std::string_view bytes);

/// Several payloads as one: a count of bytes before each.
void append_part(std::string& whole, std::string_view part);
/// The next part, which is cut off `rest`. Throws CommError where it is shorter than it says.
std::string_view take_part(std::string_view& rest);

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "wire.ipp"
#endif
