// SPDX-License-Identifier: Apache-2.0
#include <skein/train/archive.hpp>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#if __has_include(<boost/serialization/version.hpp>)
#include <boost/serialization/access.hpp>
#include <boost/serialization/nvp.hpp>
#include <boost/serialization/split_member.hpp>
#include <boost/serialization/version.hpp>
#define HAS_BOOST 1
#endif

namespace sk = skein;
using sk::train::from_bytes;
using sk::train::to_bytes;

namespace user {
enum class Colour : std::uint8_t { Red = 1, Blue = 200 };
struct Inner {
  int a = 0;
  std::vector<std::string> names;
  template <class Archive> void serialize(Archive& ar, const unsigned int) { ar& a& names; }
  bool operator==(const Inner&) const = default;
};
struct Everything {
  bool flag = false;
  char c = 0;
  std::int8_t i8 = 0;
  std::uint16_t u16 = 0;
  long l = 0;
  unsigned long long ull = 0;
  float f = 0;
  double d = 0;
  Colour colour = Colour::Red;
  std::string text;
  std::vector<double> numbers;
  std::vector<bool> bits;
  std::vector<std::vector<int>> nested;
  std::array<short, 3> array{};
  int plain[2] = {0, 0};
  std::pair<int, std::string> pair;
  std::tuple<char, double> tuple;
  std::map<std::string, std::vector<int>> map;
  std::optional<Inner> full, empty;
  Inner inner;
  std::vector<Inner> many;
  template <class Archive> void serialize(Archive& ar, unsigned) {
    ar& flag& c& i8& u16& l& ull& f& d& colour& text& numbers& bits& nested& array& plain& pair& tuple& map& full& empty& inner&
        many;
  }
  bool operator==(const Everything& o) const {
    return to_bytes(*this) == to_bytes(o) && text == o.text && numbers == o.numbers && bits == o.bits && nested == o.nested &&
           map == o.map && full == o.full && empty == o.empty && inner == o.inner && many == o.many && pair == o.pair;
  }
};
Everything everything() {
  Everything e;
  e.flag = true, e.c = 'x', e.i8 = -5, e.u16 = 65535, e.l = std::numeric_limits<long>::min(), e.ull = ~0ull;
  e.f = -0.0f, e.d = 5e-324, e.colour = Colour::Blue, e.text = std::string("a\0b", 3), e.numbers = {1, 2.5, -3e300};
  e.bits = {true, false, true}, e.nested = {{1, 2}, {}, {3}}, e.array = {1, -2, 3}, e.plain[0] = 7, e.plain[1] = -7;
  e.pair = {4, "four"}, e.tuple = {'t', 0.1}, e.map = {{"", {}}, {"k", {1, 2, 3}}}, e.full = Inner{3, {"x", ""}};
  e.inner = {9, {"y"}}, e.many = {{1, {}}, {2, {"z"}}};
  return e;
}

/// Version 1 had no `added`.
struct Grown {
  static constexpr unsigned archive_version = 2;
  int kept = 0, added = 0;
  template <class Archive> void serialize(Archive& ar, unsigned version) {
    ar& kept;
    if (version >= 2) ar& added;
  }
};
struct Later {
  static constexpr unsigned archive_version = 3;
  int kept = 5;
  template <class Archive> void serialize(Archive& ar, unsigned) { ar& kept; }
};
struct Earlier {
  int kept = 5;
  template <class Archive> void serialize(Archive& ar, unsigned) { ar& kept; }
};
struct Free {
  int x = 0;
};
template <class Archive> void serialize(Archive& ar, Free& free, const unsigned int) { ar& free.x; }
struct Tree {
  std::vector<Tree> children;
  template <class Archive> void serialize(Archive& ar, unsigned) { ar& children; }
};
#ifdef HAS_BOOST
class Boosted {
 public:
  explicit Boosted(int value = 0) : value_(value) {}
  int value() const { return value_; }

 private:
  friend class boost::serialization::access;
  template <class Archive> void serialize(Archive& ar, const unsigned int version) {
    ar& BOOST_SERIALIZATION_NVP(value_);
    if (version < 4) value_ = -1;
  }
  int value_;
};
struct Split {
  int x = 0;
  template <class Archive> void save(Archive& ar, const unsigned int) const { ar << x; }
  template <class Archive> void load(Archive& ar, const unsigned int) {
    ar >> x;
    x += 1000;
  }
  BOOST_SERIALIZATION_SPLIT_MEMBER()
};
#endif
}  // namespace user
#ifdef HAS_BOOST
BOOST_CLASS_VERSION(user::Boosted, 4)
#endif

namespace {
std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}
template <class T> std::string fault(const std::vector<std::byte>& bytes) {
  T object{};
  try {
    from_bytes(bytes, object, "f", 100);
  } catch (const sk::FileError& error) { return error.what(); }
  return "";
}
}  // namespace

TEST_CASE("all types come back") {
  const user::Everything before = user::everything();
  const auto bytes = to_bytes(before);
  user::Everything after;
  after.bits = {false}, after.map = {{"old", {1}}}, after.empty = user::Inner{};  // what was there goes
  from_bytes(bytes, after);
  CHECK(after == before);
  CHECK(std::signbit(after.f));
  CHECK_FALSE(after.empty.has_value());
  CHECK(after.tuple == before.tuple);
  CHECK(after.plain[1] == -7);
}

TEST_CASE("the bytes are little-endian, with fixed widths") {
  CHECK(to_bytes(std::uint32_t{0x01020304}) == raw({4, 3, 2, 1}));
  CHECK(to_bytes(std::string("ab")) == raw({2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}));
  CHECK(to_bytes(1.0f) == raw({0, 0, 0x80, 0x3f}));
  CHECK(to_bytes(std::optional<short>{-2}) == raw({1, 0xfe, 0xff}));
  CHECK(to_bytes(user::Earlier{}) == raw({0, 0, 0, 0, 5, 0, 0, 0}));
}

TEST_CASE("cut at every length: a FileError, never a crash") {
  const auto bytes = to_bytes(user::everything());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    user::Everything object;
    REQUIRE_THROWS_AS(from_bytes(std::span(bytes).first(n), object), sk::FileError);
  }
}

TEST_CASE("each bit flipped: another value or a FileError, never a crash") {
  const auto bytes = to_bytes(user::everything());
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    user::Everything object;
    try {
      from_bytes(flipped, object);
      REQUIRE(to_bytes(object) == flipped);  // each object has one form
    } catch (const sk::FileError&) { ++refused; }
  }
  CHECK(refused > 1000);
}

TEST_CASE("hostile counts are refused before anything is allocated, with the byte") {
  const auto huge = raw({0, 0, 0, 0, 0, 0, 0, 0x10, 1, 2, 3});
  CHECK(fault<std::string>(huge) ==
        "f (byte 108): a count of 1152921504606846976 elements needs at least 1 bytes each, but only 3 bytes are left");
  CHECK(fault<std::vector<double>>(raw({1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3})) ==
        "f (byte 108): a count of 1 elements needs at least 8 bytes each, but only 3 bytes are left");
  CHECK(fault<std::vector<user::Inner>>(huge) != "");
  CHECK(fault<std::map<int, user::Inner>>(huge) != "");
  CHECK(fault<std::vector<bool>>(huge) != "");
  CHECK(fault<std::vector<std::vector<std::string>>>(raw({1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255})) !=
        "");
}

namespace {
/// Four bytes in an archive, a megabyte in memory.
struct Bulky {
  std::array<double, 131072> values{};
  template <class Archive> void serialize(Archive&, unsigned) {}
};
}  // namespace

TEST_CASE("few bytes cannot claim much memory") {
  std::vector<std::byte> bytes(8 + 4 * 1000);
  bytes[0] = std::byte{0xe8}, bytes[1] = std::byte{3};  // 1000 elements of a megabyte
  CHECK(fault<std::vector<Bulky>>(bytes) ==
        "f (byte 108): a count of 1000 elements would take more memory than an archive of 4008 bytes may ask for");
}

TEST_CASE("what no reader would take is not written") {
  CHECK_NOTHROW(to_bytes(std::vector<Bulky>(64)));
  CHECK_THROWS_WITH(to_bytes(std::vector<Bulky>(65)),
                    "the object cannot be written: its 268 bytes stand for 68157440 bytes of memory, more than readers allow "
                    "(64 MiB beyond the bytes): store large data as tensor sections");
}

TEST_CASE("truth values, leftovers, keys out of order") {
  CHECK(fault<bool>(raw({2})) == "f (byte 101): a truth value is 0 or 1, here it is 2");
  CHECK(fault<std::optional<char>>(raw({3, 1})) != "");
  CHECK(fault<char>(raw({1, 2, 3})) == "f (byte 101): 2 bytes are left over: this is another object than the one that is read");
  CHECK(fault<std::map<char, char>>(raw({2, 0, 0, 0, 0, 0, 0, 0, 'b', 1, 'b', 2})) ==
        "f (byte 111): the keys of a map do not ascend");
}

TEST_CASE("versions: an earlier one is handed to serialize, a later one is a VersionError") {
  user::Grown grown;
  from_bytes(raw({1, 0, 0, 0, 42, 0, 0, 0}), grown);
  CHECK((grown.kept == 42 && grown.added == 0));
  user::Earlier earlier;
  const auto bytes = to_bytes(user::Later{});
  CHECK_THROWS_AS(from_bytes(bytes, earlier), sk::train::VersionError);
  CHECK_THROWS_WITH(
      from_bytes(bytes, earlier, "f", 0),
      "f (byte 0): an object of version 3, but this program knows its class up to version 0: it was written by a later "
      "program (or is another object)");
}

TEST_CASE("objects nested too deeply are refused on both sides, not a stack that overflows") {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 100000; ++i) {
    const auto level = raw({0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
    bytes.insert(bytes.end(), level.begin(), level.end());
  }
  CHECK(fault<user::Tree>(bytes).find("objects are nested deeper than 64") != std::string::npos);
  user::Tree tree, *leaf = &tree;
  for (int i = 1; i < 64; ++i) leaf = &leaf->children.emplace_back();
  user::Tree back;
  from_bytes(to_bytes(tree), back);
  CHECK(to_bytes(back) == to_bytes(tree));
  leaf->children.emplace_back();
  CHECK_THROWS_AS(to_bytes(tree), sk::ArgumentError);
}

TEST_CASE("a serialize function beside the class") {
  user::Free free{17}, back;
  from_bytes(to_bytes(free), back);
  CHECK(back.x == 17);
}

#ifdef HAS_BOOST
TEST_CASE("types written for Boost.Serialization: private serialize, names, versions, save and load apart") {
  static_assert(sk::train::archive_version<user::Boosted> == 4);
  user::Boosted back;
  const auto bytes = to_bytes(user::Boosted{12});
  CHECK(bytes == raw({4, 0, 0, 0, 12, 0, 0, 0}));
  from_bytes(bytes, back);
  CHECK(back.value() == 12);
  user::Split split{5}, loaded;
  from_bytes(to_bytes(split), loaded);
  CHECK(loaded.x == 1005);
}
#endif
