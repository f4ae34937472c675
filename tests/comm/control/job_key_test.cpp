// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/control/job_key.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

namespace control = skein::comm::control;

namespace {
std::string hex(const control::Digest& d) {
  std::string text;
  for (const unsigned char c : d) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}
}  // namespace

TEST_CASE("SHA-256 gives the digests of FIPS 180-4, at every length around its blocks") {
  CHECK(hex(control::sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(control::sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(control::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(control::sha256(std::string(1000000, 'a'))) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // The hash of the hashes of 0 to 199 times "x", by Python's hashlib.
  std::string all;
  for (std::size_t n = 0; n < 200; ++n) all += hex(control::sha256(std::string(n, 'x')));
  CHECK(hex(control::sha256(all)) == "f61ffcc417e1f0e59eba2da7fa32fbe05b64e478b68c6bacf990455f00248b98");
}

TEST_CASE("HMAC-SHA256 gives the digests of RFC 4231") {
  CHECK(hex(control::hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(control::hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(control::hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("a proof is of one key, one side, one Hello and one answer") {
  const control::JobKey key = control::key_of("a job", "0123456789abcdef");
  const control::Hello hello{1, 3, key.tag(), control::random_nonce()};
  const control::Nonce answer = control::random_nonce();
  const control::Digest proof = control::proof_of(key, control::Side::rank, hello, answer);
  CHECK(control::equal(proof, control::proof_of(key, control::Side::rank, hello, answer)));
  CHECK_FALSE(control::equal(proof, control::proof_of(key, control::Side::coordinator, hello, answer)));
  CHECK_FALSE(control::equal(proof, control::proof_of(key, control::Side::rank, hello, hello.nonce)));
  for (const char* secret : {"", "0123456789abcdeg"}) {
    const control::JobKey other = control::key_of("a job", secret);
    CHECK_FALSE(control::equal(proof, control::proof_of(other, control::Side::rank, hello, answer)));
    CHECK(other.tag() != key.tag());
  }
  CHECK(control::key_of("a jo", "b0123456789abcdef").tag() != key.tag());
  control::Hello changed = hello;
  changed.rank = 2;
  CHECK_FALSE(control::equal(proof, control::proof_of(key, control::Side::rank, changed, answer)));
  CHECK(control::random_nonce() != control::random_nonce());
  control::Nonce back{};
  CHECK(control::from_hex(control::to_hex(answer), back));
  CHECK(back == answer);
  for (const char* wrong : {"", "00", "0000000000000000000000000000000g", "000000000000000000000000000000000"})
    CHECK_FALSE(control::from_hex(wrong, back));
}
