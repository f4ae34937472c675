// SPDX-License-Identifier: Apache-2.0
#include <skein/data/idx.hpp>

#include <skein/core/random.hpp>

#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace data_test;
using sk::data::read_idx;

namespace {
const Bytes small = idx_bytes(8, {3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255});

Thrown fault_of(const Bytes& bytes) {
  return thrown([&] { read_idx(bytes, "x.idx"); });
}
}  // namespace

TEST_CASE("an IDX file of each type comes back as it was written") {
  const auto idx = read_idx(small);
  CHECK(idx.type == sk::data::IdxType::uint8);
  CHECK(idx.extents == std::vector<std::int64_t>{3, 2, 2});
  CHECK(idx.count() == 12);
  CHECK(idx[0] == 1);
  CHECK(idx[11] == 255);
  CHECK(read_idx(idx_bytes(0x09, {1}, {0xff}))[0] == -1);
  CHECK(read_idx(idx_bytes(0x0B, {2}, {0xff, 0xfe, 1, 0}))[0] == -2);
  CHECK(read_idx(idx_bytes(0x0B, {2}, {0xff, 0xfe, 1, 0}))[1] == 256);
  CHECK(read_idx(idx_bytes(0x0C, {1}, {0xff, 0xff, 0xff, 0xfd}))[0] == -3);
  CHECK(read_idx(idx_bytes(0x0D, {1}, {0x3f, 0xc0, 0, 0}))[0] == 1.5);
  CHECK(read_idx(idx_bytes(0x0E, {1}, {0xc0, 0x04, 0, 0, 0, 0, 0, 0}))[0] == -2.5);
  CHECK(read_idx(idx_bytes(8, {0, 28, 28}, {})).count() == 0);
}

TEST_CASE("an IDX file cut at every length is refused with path and offset") {
  for (std::size_t n = 0; n < small.size(); ++n) {
    const Thrown t = fault_of(Bytes(small.begin(), small.begin() + static_cast<long>(n)));
    INFO(n << ": " << t.text);
    CHECK(t.path == "x.idx");
    CHECK(t.offset >= 0);
    CHECK(t.offset <= static_cast<long long>(n));
    CHECK((t.says("ends within") || t.says("cannot hold")));
  }
  CHECK(fault_of(small).text == "nothing");
}

TEST_CASE("IDX headers that lie are refused before anything is allocated") {
  CHECK(fault_of(idx_bytes(8, {0x7fffffff, 0x7fffffff, 0x7fffffff}, {})).says("multiply to more than any file can hold"));
  CHECK(
      fault_of(idx_bytes(8, {0x7fffffff, 0x7fffffff}, {1})).says("cannot hold the values of the IDX file: the header asks for"));
  CHECK(fault_of(idx_bytes(8, {0, 0x7fffffff, 0x7fffffff, 0x7fffffff}, {})).says("multiply to more than any file can hold"));
  CHECK(fault_of(idx_bytes(8, {0x80000000u}, {1})).text == "x.idx (byte 4): extent 0 is 2147483648: too large for IDX");
  CHECK(fault_of(idx_bytes(8, {0x7fffffff}, {1})).says("the header asks for 2147483647 bytes, the file has 9"));
  CHECK(fault_of(idx_bytes(7, {1}, {1})).text == "x.idx (byte 2): has type code 7, which IDX does not know");
  CHECK(fault_of(idx_bytes(8, {}, {1})).text == "x.idx (byte 3): has 0 extents: 1 to 8 are understood");
  CHECK(fault_of({0, 1, 8, 1, 0, 0, 0, 1, 5}).text == "x.idx (byte 0): is no IDX file: it must begin with two zero bytes");
  CHECK(thrown([] { read_idx(small, "x.idx", 11); }).text ==
        "x.idx (byte 4): holds 12 bytes, more than the limit of 11: give read_idx a larger one");
  CHECK(read_idx(small, "x.idx", 12).count() == 12);
  Bytes longer = small;
  longer.push_back(0);
  const Thrown t = fault_of(longer);
  CHECK(t.says("goes on after the values of the IDX file"));
  CHECK(t.offset == static_cast<long long>(small.size()));
}

TEST_CASE("random bit flips never do more than throw a FileError") {
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    Bytes bytes = small;
    const auto bits = 1 + sk::random_below(1, trial, 0, 4);
    for (std::uint64_t b = 0; b < bits; ++b) {
      const auto at = sk::random_below(1, trial, 1 + b, 8 * bytes.size());
      bytes[at / 8] = static_cast<unsigned char>(bytes[at / 8] ^ 1u << at % 8);
    }
    try {
      const auto idx = read_idx(bytes);
      CHECK(idx.bytes.size() <= bytes.size());
    } catch (const sk::FileError&) { ++refused; }
  }
  CHECK(refused > 1000);
}

#if SKEIN_WITH_ZLIB
TEST_CASE("gzip is told by its first bytes; whole, cut, damaged and followed by more") {
  const Bytes packed = gzipped(small);
  CHECK(read_idx(packed).bytes == read_idx(small).bytes);
  for (std::size_t n = 2; n < packed.size(); ++n) {
    const Thrown t = fault_of(Bytes(packed.begin(), packed.begin() + static_cast<long>(n)));
    INFO(n << ": " << t.text);
    CHECK((t.says("truncated") || t.says("cannot hold")));
  }
  Bytes damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  CHECK(fault_of(damaged).says("the compressed data are damaged: incorrect data check"));
  Bytes longer = packed;
  longer.push_back('x');
  CHECK(fault_of(longer).says("goes on after the end of the compressed data"));
  Bytes members = gzipped(Bytes(small.begin(), small.begin() + 10));
  const Bytes second = gzipped(Bytes(small.begin() + 10, small.end()));
  members.insert(members.end(), second.begin(), second.end());
  CHECK(read_idx(members).bytes == read_idx(small).bytes);
  int refused = 0;
  for (std::size_t i = 2; i < packed.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = packed;
      flipped[i] = static_cast<unsigned char>(flipped[i] ^ 1 << bit);
      Bytes values = read_idx(small).bytes;
      try {
        values = read_idx(flipped).bytes;  // name, time and system in gzip's own header change nothing
      } catch (const sk::FileError&) { ++refused; }
      CHECK(values == read_idx(small).bytes);
    }
  CHECK(refused > 200);
}

TEST_CASE("a small compressed file cannot claim a large array") {
  CHECK(fault_of(gzipped(idx_bytes(8, {0x7fffffff}, {1, 2, 3}))).says("cannot hold the values of the IDX file"));
  const Bytes claims = gzipped(idx_bytes(8, {40000}, Bytes(20000, 7)));  // within deflate's ratio, but not there
  CHECK(fault_of(claims).says("ends within the values of the IDX file: 40000 bytes from byte 8 on are needed, 20000 are there"));
  Bytes noise(60000);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<unsigned char>(sk::random_word(3, 0, i));
  const Thrown t = fault_of(gzipped(idx_bytes(8, {10000000}, noise)));
  CHECK(t.says("ends within the values of the IDX file"));
  CHECK(t.offset == 60008);
}
#endif

TEST_CASE("images and labels must belong together") {
  Folder folder;
  const auto images = folder.write("images", small);
  const auto labels = folder.write("labels", idx_bytes(8, {3}, {2, 0, 1}));
  const auto set = sk::data::read_idx_images(images, labels);
  CHECK(set.size() == 3);
  CHECK(set.sample_extents() == sk::Extents{3, {2, 2, 1}});
  CHECK(set.target() == sk::data::Target::labels(3));
  CHECK(set.label(0) == 2);
  CHECK(set.stored(2)[3] == 255);

  const auto refuses = [&](const std::string& a, const std::string& b, int classes = 0) {
    return thrown([&] { sk::data::read_idx_images(a, b, classes); });
  };
  const auto four = folder.write("four", idx_bytes(8, {4}, {1, 2, 3, 4}));
  CHECK(refuses(images, four).says("has 4 labels for the 3 images of " + images));
  CHECK(refuses(images, four).path == four);
  CHECK(refuses(images, images).says("holds no labels"));
  CHECK(refuses(labels, labels).says("holds no images"));
  CHECK(refuses(images, labels, 2).says("(byte 8): label 2 is not below 2"));
  CHECK(refuses(folder.write("flat", idx_bytes(8, {3, 0}, {})), labels).says("an extent of zero"));
  CHECK(refuses(folder.path() + "/none", labels).says("none: cannot be opened: No such file"));
  CHECK(refuses(folder.path(), labels).says("is no regular file"));
}
