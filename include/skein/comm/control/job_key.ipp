// SPDX-License-Identifier: Apache-2.0
// The bodies of job_key.hpp.
#pragma once
#include <sys/random.h>

#include <bit>
#include <cstring>

#include "job_key.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm::control {

namespace detail {
/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
// clang-format off
inline constexpr std::uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
// clang-format on

/// One block of 64 bytes.
inline void sha256_block(std::uint32_t (&state)[8], const unsigned char* block) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 | std::uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  std::uint32_t s[8];
  std::memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    const std::uint32_t one = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) + choice +
                              sha256_constants[i] + w[i],
                        two = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) + majority;
    std::memmove(s + 1, s, 7 * sizeof *s);
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

template <class T> std::string_view view_of(const T& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
}  // namespace detail

SKEIN_INLINE Digest sha256(std::string_view bytes) {
  std::uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(bytes);
  padded += '\x80';
  padded.resize((padded.size() + 8 + 63) / 64 * 64);
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) padded[padded.size() - 1 - i] = static_cast<char>(bits >> 8 * i & 255);
  for (std::size_t at = 0; at < padded.size(); at += 64)
    detail::sha256_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  Digest d;
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = static_cast<unsigned char>(state[i / 4] >> (24 - 8 * (i % 4)) & 255);
  return d;
}

SKEIN_INLINE Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  Digest hashed{};
  if (key.size() > 64) hashed = sha256(key), key = detail::view_of(hashed);
  std::string inner(64, '\x36'), outer(64, '\x5c');
  for (std::size_t i = 0; i < key.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ key[i]);
    outer[i] = static_cast<char>(outer[i] ^ key[i]);
  }
  const Digest first = sha256(inner.append(bytes));
  return sha256(outer.append(detail::view_of(first)));
}

SKEIN_INLINE bool equal(const Digest& a, const Digest& b) {
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned>(a[i] ^ b[i]);
  return different == 0;
}

SKEIN_INLINE Nonce random_nonce() {
  Nonce n{};
  if (::getrandom(n.data(), n.size(), 0) != static_cast<ssize_t>(n.size()))
    throw CommError("this machine gives no random numbers (getrandom): the ranks of a job cannot prove who they are");
  return n;
}

SKEIN_INLINE std::string to_hex(const Nonce& n) {
  std::string text;
  for (const unsigned char c : n) text += "0123456789abcdef"[c >> 4], text += "0123456789abcdef"[c & 15];
  return text;
}

SKEIN_INLINE bool from_hex(std::string_view text, Nonce& n) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (text.size() != 2 * n.size() || text.find_first_not_of(digits) != std::string_view::npos) return false;
  for (std::size_t i = 0; i < n.size(); ++i)
    n[i] = static_cast<unsigned char>(digits.find(text[2 * i]) << 4 | digits.find(text[2 * i + 1]));
  return true;
}

SKEIN_INLINE std::uint64_t JobKey::tag() const {
  const Digest d = hmac_sha256(detail::view_of(bytes), "skein: the tag of a job");
  std::uint64_t t = 0;
  std::memcpy(&t, d.data(), sizeof t);
  return t;
}

SKEIN_INLINE JobKey key_of(std::string_view job, std::string_view secret) {
  return {hmac_sha256(secret, std::string("skein: a job named ").append(job)), !secret.empty()};
}

SKEIN_INLINE JobKey with_secret(const JobKey& key, const Nonce& secret) {
  return key_of(detail::view_of(key.bytes), detail::view_of(secret));
}

SKEIN_INLINE Digest proof_of(const JobKey& key, Side side, const Hello& hello, const Nonce& answer) {
  std::string said("skein: a rank meets ");
  said += static_cast<char>(side);
  said.append(detail::view_of(hello.rank)).append(detail::view_of(hello.size)).append(detail::view_of(hello.tag));
  said.append(detail::view_of(hello.nonce)).append(detail::view_of(answer));
  return hmac_sha256(detail::view_of(key.bytes), said);
}

}  // namespace skein::inline SKEIN_ABI::comm::control

SKEIN_END_COLD
