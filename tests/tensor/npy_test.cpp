// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/npy.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <catch2/catch.hpp>
#include "../support/temporary_folder.hpp"
#include "support.hpp"

using namespace tensor_test;

namespace {
using Bytes = std::vector<unsigned char>;

/// A .npy of version 1 with this dictionary and these bytes of values.
Bytes npy(const std::string& dictionary, std::size_t value_bytes, int version = 1) {
  std::string s("\x93NUMPY", 6);
  s += static_cast<char>(version);
  s += '\0';
  s += static_cast<char>(dictionary.size() & 0xff);
  s += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) s += std::string(2, '\0');
  s += dictionary;
  Bytes b(s.begin(), s.end());
  for (std::size_t i = 0; i < value_bytes; ++i) b.push_back(static_cast<unsigned char>(i));
  return b;
}
std::string dictionary(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}
template <class S, int R> sk::Tensor<S, R> parse(const Bytes& b, sk::NpyTypes types = sk::NpyTypes::exact) {
  return sk::detail::npy_from_bytes<S, R>(b, types, "x.npy", 0);
}
std::string fault(const Bytes& b) {
  return text_of([&] { parse<float, 2>(b); });
}
}  // namespace

TEMPLATE_TEST_CASE("a tensor comes back from a .npy file as it was written", "", float, double, int, long, std::uint8_t, bool) {
  const support::TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  const auto a = sk::eval(sk::cast<TestType>(values<float>(sk::dims(3, 4, 5), 1, 0, 9)));
  sk::save_npy(path, a);
  const auto b = sk::load_npy<TestType, 3>(path);
  CHECK(b.shape() == a.shape());
  CHECK(list(b) == list(a));
  sk::save_npy(path, a.transpose());
  CHECK(list(sk::load_npy<TestType, 3>(path)) == list(a.transpose()));
  sk::save_npy(path, sk::cast<TestType>(a.reverse(0)));
  CHECK(list(sk::load_npy<TestType, 3>(path)) == list(a.reverse(0)));
  sk::save_npy(path, a(0, 0, sk::range(0, 0)));
  CHECK(sk::load_npy<TestType, 1>(path).size() == 0);
}

TEST_CASE("files of other byte order, element order, version and type are understood") {
  CHECK(parse<std::int16_t, 1>(npy(dictionary(">i2", "(2,)"), 4))(1) == 0x0203);
  CHECK(parse<std::int16_t, 1>(npy(dictionary("<i2", "(2,)"), 4))(1) == 0x0302);
  const auto f = parse<std::uint8_t, 2>(npy(dictionary("|u1", "(2, 3)", "True"), 6));
  CHECK(list(f) == std::vector<std::uint8_t>{0, 2, 4, 1, 3, 5});
  CHECK(parse<std::uint8_t, 1>(npy(dictionary("|u1", "(6,)"), 6, 2))(5) == 5);
  CHECK(parse<std::uint8_t, 0>(npy(dictionary("|u1", "()"), 1))() == 0);
  CHECK(list(parse<double, 1>(npy(dictionary("|u1", "(3,)"), 3), sk::NpyTypes::convert)) == std::vector<double>{0, 1, 2});
  CHECK(list(parse<bool, 1>(npy(dictionary("|b1", "(3,)"), 3))) == std::vector<bool>{false, true, true});
}

TEST_CASE("a value that the asked type cannot hold is refused, not made infinite or any number") {
  const auto of = [](double value, auto as) {
    Bytes bytes = npy(dictionary("<f8", "(2,)"), 16);
    const double values[2] = {1.5, value};
    std::memcpy(bytes.data() + bytes.size() - 16, values, 16);
    return text_of([&] { parse<decltype(as), 1>(bytes, sk::NpyTypes::convert); });
  };
  CHECK(of(1e39, 1.0f) == "x.npy: value 1 is 1e+39, which f4 cannot hold: load the array as a wider type");
  CHECK(of(1e39, 1.0) != of(1e39, 1.0f));
  CHECK(of(3e38, 1.0f) == of(HUGE_VAL, 1.0f));  // both fit: what is infinite in the file stays so
  CHECK(of(std::nan(""), 1.0f) == of(0, 1.0f));
  CHECK(of(std::nan(""), 1) == "x.npy: value 1 is nan, which i4 cannot hold: load the array as a wider type");
  CHECK(of(3e9, 1).find("is 3e+09, which i4 cannot hold") != std::string::npos);
  CHECK(of(-2147483648.9, 1) == of(0, 1));
  CHECK(of(-1, std::uint8_t{}).find("is -1, which u1 cannot hold") != std::string::npos);
  CHECK(of(255.9, std::uint8_t{}) == of(-0.9, std::uint8_t{}));
  CHECK(of(9.3e18, std::int64_t{}).find("which i8 cannot hold") != std::string::npos);
  CHECK(text_of([] {
          parse<std::int8_t, 1>(npy(dictionary("<u2", "(1,)"), 2), sk::NpyTypes::convert);
        }).find("is 256, which i1 cannot hold") != std::string::npos);
}

TEST_CASE("every malformed .npy file says where and why") {
  CHECK(fault({}) == "x.npy (byte 0): ends within the .npy header");
  CHECK(fault(Bytes(20, 'a')) == "x.npy (byte 0): is no .npy file: it must begin with \\x93NUMPY");
  CHECK(fault(npy(dictionary("<f4", "(2, 2)"), 16, 7)) == "x.npy (byte 6): has .npy version 7: 1 to 3 are understood");
  Bytes lies = npy(dictionary("<f4", "(2, 2)"), 16);
  lies[8] = lies[9] = 0xff;
  CHECK(fault(lies).find("x.npy (byte 8): claims a .npy header of 65535 bytes, the file has") == 0);
  CHECK(fault(npy(dictionary("<f4", "(2, 2)"), 15))
            .find("must hold more than 15 bytes of values for shape (2, 2) of f4, it has 15") != std::string::npos);
  CHECK(fault(npy(dictionary("<f4", "(2, 2)"), 17)).find("it has 17") != std::string::npos);
  CHECK(fault(npy(dictionary("<f4", "(99999999999, 99999999999)"), 16)).find("must hold more than 16 bytes") !=
        std::string::npos);
  CHECK(fault(npy(dictionary("<f4", "(99999999999999999999, 1)"), 16)).find("has an extent that no file can hold") !=
        std::string::npos);
  CHECK(fault(npy(dictionary("<f4", "(0, 99999999999, 99999999999)"), 0)).find("must hold more than 0 bytes") !=
        std::string::npos);
  CHECK(fault(npy(dictionary("<U8", "(2, 2)"), 16))
            .find("has the type '<U8': floats of 4 and 8 bytes, integers and booleans are understood") != std::string::npos);
  for (const char* half : {"<f2", "|V2"})  // float16 of NumPy, and its bfloat16
    CHECK(fault(npy(dictionary(half, "(2, 2)"), 8)).ends_with("are understood; save it as float32, array.astype(\"f4\")"));
  CHECK(fault(npy(dictionary("<f4", "(2, -2)"), 16)).find("wants an extent here") != std::string::npos);
  CHECK(fault(npy("{'descr': '<f4'}\n", 16)).find("lacks one of descr, fortran_order and shape") != std::string::npos);
  CHECK(fault(npy("{'descr': '<f4', 'descr': '<f4'}\n", 16)).find("has the entry 'descr' twice") != std::string::npos);
  CHECK(fault(npy("{'desc", 0)) == "x.npy (byte 16): the .npy header ends within a quoted word");
  CHECK(fault(npy(dictionary("<f4", "(4,)"), 16)) ==
        "x.npy (byte 0): holds an array of shape (4), a tensor of rank 2 was asked for");
  CHECK(fault(npy(dictionary("<f8", "(2, 1)"), 16)).find("holds values of type f8, f4 was asked for") != std::string::npos);
  CHECK(text_of([] { sk::load_npy<float, 1>("/nowhere/x.npy"); }) ==
        "/nowhere/x.npy: cannot be opened: No such file or directory");
}

TEST_CASE("cut and flipped .npy files do no more than throw a FileError") {
  const Bytes good = npy(dictionary("<f4", "(2, 2)"), 16);
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK_THROWS_AS((parse<float, 2>(Bytes(good.begin(), good.begin() + static_cast<long>(n)))), sk::FileError);
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    Bytes bytes = good;
    for (std::uint64_t b = 0; b < 1 + trial % 4; ++b) {
      const auto at = sk::random_below(1, trial, b, 8 * (bytes.size() - 16));
      bytes[at / 8] = static_cast<unsigned char>(bytes[at / 8] ^ 1u << at % 8);
    }
    try {
      const auto parsed = parse<float, 2>(bytes);  // outside of CHECK, which would catch what it throws
      CHECK(parsed.size() == 4);
    } catch (const sk::FileError&) { ++refused; }
  }
  CHECK(refused > 1500);
}
