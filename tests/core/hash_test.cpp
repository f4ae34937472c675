// SPDX-License-Identifier: Apache-2.0
#include <skein/core/hash.hpp>

#include <string_view>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("FNV-1a has the published values") {
  const auto of = [](std::string_view s) { return sk::hash_bytes(s.data(), s.size()); };
  CHECK(of("") == 0xcbf29ce484222325ull);
  CHECK(of("a") == 0xaf63dc4c8601ec8cull);
  CHECK(of("foobar") == 0x85944171f73967e8ull);
}

TEST_CASE("FNV-1a of values is that of their bytes, computed while compiling, and tells where texts end") {
  constexpr std::uint64_t number = sk::Fnv1a{}.add(std::uint64_t{0x0807060504030201}).value();
  const unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 2, 0, 0, 0, 0, 0, 0, 0};
  CHECK(number == sk::hash_bytes(bytes, 8));
  CHECK(sk::Fnv1a{}.add("\1\2").value() == sk::Fnv1a{}.byte(1).byte(2).add(std::uint64_t{2}).value());
  CHECK(sk::Fnv1a{}.add(sk::Extents{2, {3, 5}}).value() ==
        sk::Fnv1a{}.add(std::uint64_t{2}).add(std::uint64_t{3}).add(std::uint64_t{5}).value());
  CHECK(sk::Fnv1a{}.add("ab").add("c").value() != sk::Fnv1a{}.add("a").add("bc").value());
}
