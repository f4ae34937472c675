// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job know each other: a key that each proves to have without saying it, by a challenge and an answer
// (HMAC-SHA256 over both sides' random numbers). The hash is written out here, seventy lines that FIPS 180-4 fixes and the tests
// compare with its vectors: OpenSSL's libcrypto would be a library to find and link for every program that includes this header,
// for four hashes a rank. What travels after the meeting is neither encrypted nor signed.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// A SHA-256.
using Digest = std::array<unsigned char, 32>;
/// A random number that is used once.
using Nonce = std::array<unsigned char, 16>;

/// The SHA-256 of the bytes (FIPS 180-4).
Digest sha256(std::string_view bytes);
/// HMAC-SHA256 (RFC 2104).
Digest hmac_sha256(std::string_view key, std::string_view bytes);
/// In a time that does not depend on where they differ.
bool equal(const Digest& a, const Digest& b);

/// 128 random bits of the kernel. Throws CommError where it gives none.
Nonce random_nonce();
/// "00ff...": 32 digits.
std::string to_hex(const Nonce& n);
/// The number of such a text; false where it is none.
bool from_hex(std::string_view text, Nonce& n);

/// What the ranks of one job have in common, and nobody else, as far as its secret is one.
struct JobKey {
  Digest bytes{};
  bool secret = false;  ///< it was made of one
  /// Tells jobs apart; says nothing of a secret of 128 random bits.
  std::uint64_t tag() const;
};
/// The key of a job's name and secret; each may be empty. Without a secret the key is as hard to guess as the name.
JobKey key_of(std::string_view job, std::string_view secret = {});
/// The key of the same job with one more secret in it.
JobKey with_secret(const JobKey& key, const Nonce& secret);

/// Who says Hello: the place that it claims, its job's tag, and a number that its process has drawn.
struct Hello {
  std::int32_t rank = -1, size = 0;
  std::uint64_t tag = 0;
  Nonce nonce{};
};
/// Which side of a meeting proves that it has the key.
enum class Side : char { coordinator = 'c', rank = 'r' };
/// The proof, of a Hello and the number with which the coordinator has answered it.
Digest proof_of(const JobKey& key, Side side, const Hello& hello, const Nonce& answer);

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "job_key.ipp"
#endif
