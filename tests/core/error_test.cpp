// SPDX-License-Identifier: Apache-2.0
#include <skein/core/error.hpp>

#include <cerrno>
#include <string>

#include <catch2/catch.hpp>

namespace sk = skein;

namespace {
template <class E> [[noreturn]] void fail() { throw E("what failed: how to mend it"); }
}  // namespace

TEMPLATE_TEST_CASE("every kind is an Error with its message and place", "", sk::ShapeError, sk::ArgumentError, sk::CommError,
                   sk::DeviceError) {
  try {
    fail<TestType>();
  } catch (const sk::Error& e) {
    CHECK(std::string(e.what()) == "what failed: how to mend it");
    CHECK(std::string(e.where().file).find("error_test.cpp") != std::string::npos);
    CHECK(e.where().line == 12);
    CHECK(std::string(e.where().function).find("fail") == 0);
    return;
  }
  FAIL("not caught as an Error");
}

TEST_CASE("a FileError names path, byte and reason") {
  const sk::FileError at("data/x.idx", 16, "ends within its header");
  CHECK(std::string(at.what()) == "data/x.idx (byte 16): ends within its header");
  CHECK(at.path() == "data/x.idx");
  CHECK(at.offset() == 16);
  const sk::FileError whole("x", -1, "cannot be opened");
  CHECK(std::string(whole.what()) == "x: cannot be opened");
  CHECK_THROWS_AS(throw whole, std::runtime_error);
  const sk::FileError none("", -1, "cannot be opened", ENOENT);
  CHECK(std::string(none.what()) == "an empty path, which names no file: cannot be opened: No such file or directory");
  CHECK(none.path().empty());
}

TEST_CASE("a setting with a number that is no value of its enumeration is refused, with the words that there are", "[core]") {
  enum class Way { near, far };
  for (const Way way : {Way::near, Way::far})
    CHECK_NOTHROW(sk::detail::demand_value("walk", ".way", way, Way::far, "near or far"));
  for (const int number : {-1, 2, 7})
    CHECK_THROWS_WITH(
        sk::detail::demand_value("walk", ".way", static_cast<Way>(number), Way::far, "near or far"),
        "walk: .way is " + std::to_string(number) + ", and no value of its enumeration has that number: give near or far");
}

TEST_CASE("no error prints what a terminal would obey", "[core]") {
  CHECK(std::string(sk::Error("the name '\x1b[2J'\nsecond line").what()) == "the name '\\x1b[2J'\nsecond line");
  const sk::FileError file("a\x1b]0;b\x07.npy", 3, "has the entry '\x9b'");
  CHECK(std::string(file.what()) == R"(a\x1b]0;b\x07.npy (byte 3): has the entry '\x9b')");
  CHECK(file.path() == "a\x1b]0;b\x07.npy");
}
