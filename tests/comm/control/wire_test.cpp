// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/control/wire.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace sk = skein;
namespace control = skein::comm::control;
using Catch::Matchers::Contains;

namespace {
std::string thrown(const std::string& bytes, bool trusted = false) {
  control::FrameReader reader;
  if (trusted) reader.trust();
  reader.add(bytes.data(), bytes.size());
  try {
    while (reader.next()) {}
  } catch (const sk::CommError& e) { return e.what(); }
  return "";
}
const std::string good = control::encode({control::Kind::Exchange, 7, 9, 0.5, "payload"});
std::string with(std::size_t at, char value) {
  std::string bytes = good;
  bytes[at] = value;
  return bytes;
}
}  // namespace

TEST_CASE("frames arrive whole, however they are cut") {
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += control::encode(
        {control::Kind::State, 1, static_cast<std::uint64_t>(i), 2, std::string(static_cast<std::size_t>(i), 'x')});
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, many.size()}) {
    control::FrameReader reader;
    std::uint64_t next = 0;
    for (std::size_t at = 0; at < many.size(); at += step) {
      reader.add(many.data() + at, std::min(step, many.size() - at));
      while (const auto f = reader.next()) {
        CHECK(f->kind == control::Kind::State);
        CHECK(f->number == next);
        CHECK(f->payload.size() == next);
        ++next;
      }
    }
    CHECK(next == 100);
  }
}

TEST_CASE("what is no frame is refused before anything is kept of it") {
  CHECK(thrown(good).empty());
  CHECK_THAT(thrown("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n"),
             Contains("speaks something else than skein's coordinator"));
  CHECK_THAT(thrown(with(8, 9)), Contains("coordinator has version 9, this one 3"));
  CHECK_THAT(thrown(with(10, 0)), Contains("unknown kind, 0"));
  CHECK_THAT(thrown(with(10, 99)), Contains("unknown kind, 99"));
  CHECK_THAT(thrown(with(13, 2)), Contains("announces a frame of 519 bytes, more than 256"));  // of a stranger
  CHECK(thrown(with(13, 2), true).empty());                                                    // of a rank: wait for the rest
  CHECK_THAT(thrown(with(15, 0x7f), true), Contains("more than 268435456"));
  std::string limit = good;
  for (std::size_t i = 24; i < 32; ++i) limit[i] = static_cast<char>(0xff);  // not a number
  CHECK_THAT(thrown(limit), Contains("a time limit that is none"));
}

TEST_CASE("parts of a payload, and parts that lie about their length") {
  std::string whole;
  control::append_part(whole, "one");
  control::append_part(whole, "");
  control::append_part(whole, "three");
  std::string_view rest = whole;
  CHECK(control::take_part(rest) == "one");
  CHECK(control::take_part(rest).empty());
  CHECK(control::take_part(rest) == "three");
  CHECK_THROWS_AS(control::take_part(rest), sk::CommError);
  whole[0] = static_cast<char>(0xff);
  rest = whole;
  CHECK_THROWS_AS(control::take_part(rest), sk::CommError);
  CHECK_FALSE(control::unpack_hello("short").has_value());
}
