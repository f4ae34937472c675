// SPDX-License-Identifier: Apache-2.0
#include <skein/train/hash.hpp>

#include <catch2/catch.hpp>
#include <string>

namespace sk = skein;

TEST_CASE("XXH64 has the published values") {
  const auto of = [](const std::string& s) { return sk::train::hash64(s.data(), s.size()); };
  CHECK(of("") == 0xEF46DB3751D8E999ull);
  CHECK(of("a") == 0xD24EC4F1A98C6E5Bull);
  CHECK(of("abc") == 0x44BC2CF5AD770999ull);
  CHECK(of("Call me Ishmael. Some years ago--never mind how long precisely-") == 0x02A2E85470D6FD96ull);
}

TEST_CASE("XXH64 does not depend on how the bytes are cut") {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37);
  const auto whole = sk::train::hash64(text.data(), text.size());
  for (std::size_t a = 0; a <= text.size(); a += 3)
    for (std::size_t b = a; b <= text.size(); b += 11) {
      sk::train::Hash64 hash;
      hash.update(text.data(), a);
      hash.update(text.data() + a, b - a);
      hash.update(text.data() + b, text.size() - b);
      REQUIRE(hash.value() == whole);
    }
}
