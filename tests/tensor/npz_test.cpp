// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/npz.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>
#include "../support/processes.hpp"
#include "../support/sanitizers.hpp"
#include "../support/temporary_folder.hpp"
#include "support.hpp"

using namespace tensor_test;

namespace {
using Bytes = std::vector<unsigned char>;

Bytes archive(sk::NpzMethod method) {
  const support::TemporaryFolder folder;
  const std::string path = folder / "a.npz";
  sk::NpzWriter out(path, method);
  out.add("w", sk::ones<float>(20, 30));
  out.add("labels", sk::arange(7));
  out.close();
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}
void put(Bytes& b, std::size_t at, std::uint32_t n) {
  for (int i = 0; i < 4; ++i, n >>= 8) b[at + static_cast<std::size_t>(i)] = static_cast<unsigned char>(n & 0xff);
}
/// Where the directory begins.
std::size_t directory(const Bytes& b) {
  return b[b.size() - 6] | b[b.size() - 5] << 8 | static_cast<std::size_t>(b[b.size() - 4]) << 16;
}
std::string fault(Bytes b) {
  return text_of([&] {
    const sk::NpzFile f(std::move(b), "x.npz");
    f.get<float, 2>("w");
  });
}
}  // namespace

TEST_CASE("tensors come back from a .npz file, stored and deflated") {
  for (auto method : {sk::NpzMethod::stored, sk::NpzMethod::deflated}) {
    const sk::NpzFile f(archive(method), "x.npz");
    CHECK(f.names() == std::vector<std::string>{"w", "labels"});
    CHECK(f.contains("w"));
    CHECK_FALSE(f.contains("b"));
    CHECK(list(f.get<float, 2>("w")) == std::vector<float>(600, 1.f));
    CHECK(list(f.get<int, 1>("labels")) == list(sk::arange(7)));
    CHECK(f.shape("w") == std::vector<long>{20, 30});
    CHECK(f.shape("labels") == std::vector<long>{7});
    CHECK(text_of([&] { f.get<float, 2>("b"); }) == "x.npz: has no array 'b'");
    CHECK(text_of([&] { f.shape("b"); }) == "x.npz: has no array 'b'");
    CHECK(text_of([&] { f.get<double, 2>("w"); }).find("x.npz[w] (byte 0): holds values of type f4, f8 was asked for") == 0);
  }
  CHECK(archive(sk::NpzMethod::deflated).size() < archive(sk::NpzMethod::stored).size() / 2);
  CHECK(text_of([] { archive(static_cast<sk::NpzMethod>(7)); }) ==
        "NpzWriter: its method is 7, and no value of its enumeration has that number: give stored or deflated");
  CHECK(archive(sk::NpzMethod::stored) == archive(sk::NpzMethod::stored));  // files do not depend on the clock
}

TEST_CASE("an array may unpack to no more than the limit; a pipe is no file") {
  const sk::NpzFile f(archive(sk::NpzMethod::deflated), "x.npz", 2000), whole(archive(sk::NpzMethod::stored), "x.npz", 2000);
  CHECK(text_of([&] {
          f.get<float, 2>("w");
        }).find("the array 'w' unpacks to 2400 bytes, more than the limit of 2000: give load_npz a larger one") !=
        std::string::npos);
  CHECK(whole.get<float, 2>("w").size() == 600);  // no more than the file has
  const support::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(text_of([&] { sk::load_npz(pipe); }) == pipe + ": is no plain file");
  CHECK(text_of([&] { sk::load_npy<float, 1>(pipe); }) == pipe + ": is no plain file");
}

TEST_CASE("the limit counts what is asked for: narrow values that are converted to wide ones") {
  const support::TemporaryFolder folder;
  sk::NpzWriter out(folder / "a.npz", sk::NpzMethod::deflated);
  out.add("bytes", sk::zeros<std::uint8_t>(1000));
  out.close();
  const sk::NpzFile f(folder / "a.npz", 4000);
  CHECK(f.get<float, 1>("bytes", sk::NpyTypes::convert).size() == 1000);
  CHECK(text_of([&] {
          f.get<double, 1>("bytes", sk::NpyTypes::convert);
        }).find("unpacks to 8000 bytes, more than the limit of 4000") != std::string::npos);
}

TEST_CASE("beside the file an array takes the memory of its values, and no more: it is inflated into them") {
  const support::TemporaryFolder folder;
  sk::NpzWriter out(folder / "zeros.npz", sk::NpzMethod::deflated);
  out.add("zeros", sk::zeros<float>(std::int64_t{1} << 24));  // 64 MB
  out.close();
  const support::Child child = support::start_process([&]() -> std::string {
    rusage before{}, after{};
    const sk::NpzFile f(folder / "zeros.npz");
    ::getrusage(RUSAGE_SELF, &before);
    if (f.get<float, 1>("zeros").size() != 1 << 24) return "other values";
    if (f.get<double, 1>("zeros", sk::NpyTypes::convert).size() != 1 << 24) return "other values";
    ::getrusage(RUSAGE_SELF, &after);
    return after.ru_maxrss - before.ru_maxrss < 150 << 10 ? "of one" : "of more";  // kilobytes; the doubles are 128 MB
  });
  CHECK(support::wait_for(child) == "of one");
}

TEST_CASE("a file that is written appears whole or not at all") {
  const support::TemporaryFolder folder;
  {
    sk::NpzWriter out(folder / "a.npz");
    out.add("w", sk::ones<float>(3));
    CHECK(folder.names() == std::vector<std::string>{"a.npz.partial"});
  }  // which finishes it
  CHECK(sk::load_npz(folder / "a.npz").names().size() == 1);
  try {
    sk::NpzWriter out(folder / "a.npz");
    out.add("v", sk::ones<float>(3));
    throw 42;
  } catch (int) {}
  CHECK(sk::load_npz(folder / "a.npz").names() == std::vector<std::string>{"w"});
  const support::Child full = support::start_process([&]() -> std::string {
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return "no limit";
    sk::NpzWriter out(folder / "a.npz");
    return text_of([&] { out.add("v", sk::ones<float>(3000)); });  // caught: the writer goes out of scope in peace
  });
  CHECK(support::wait_for(full).find("cannot be written: File too large") != std::string::npos);
  CHECK(sk::load_npz(folder / "a.npz").names() == std::vector<std::string>{"w"});
  sk::save_npy(folder / "a.npy", sk::ones<float>(3));
  const support::Child child = support::start_process([&]() -> std::string {
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return "no limit";
    sk::save_npy(folder / "a.npy", sk::ones<float>(3000));
    return "it was written";
  });
  CHECK(support::wait_for(child) == (folder / "a.npy.partial") + " (byte 4096): cannot be written: File too large");
  CHECK(sk::load_npy<float, 1>(folder / "a.npy").size() == 3);
  CHECK(folder.names().size() == 2);
}

TEST_CASE("names of a file are shown without what a terminal would obey") {
  const support::TemporaryFolder folder;
  sk::NpzWriter out(folder / "a.npz");
  out.add("w\x1b[2J", sk::ones<float>(3));
  out.close();
  const sk::NpzFile f(folder / "a.npz");
  CHECK(text_of([&] { f.get<float, 2>("w\x1b[2J"); }).find(R"(a.npz[w\x1b[2J] (byte 0): holds an array)") != std::string::npos);
}

TEST_CASE("a comment and a name that a zip archive cannot hold are refused before they are written") {
  const support::TemporaryFolder folder;
  CHECK(text_of([&] { sk::NpzWriter(folder / "words.npz").set_comment(std::string(65536, 'x')); }) ==
        "npz: a comment of 65536 bytes: the end of a zip archive holds 65535");
  sk::NpzWriter named(folder / "named.npz");
  CHECK(text_of([&] { named.add(std::string(65532, 'n'), sk::ones<float>(1)); }).find("names up to 65535 bytes") !=
        std::string::npos);
  named.add(std::string(65531, 'n'), sk::ones<float>(1));
  named.set_comment(std::string(65535, 'x'));
  named.close();
  CHECK(sk::load_npz(folder / "named.npz").names() == std::vector<std::string>{std::string(65531, 'n')});
}

TEST_CASE("65,535 arrays are opened in less than a second, and two of one name are refused") {
  const support::TemporaryFolder folder;
  sk::NpzWriter out(folder / "many.npz");
  const sk::Tensor<std::uint8_t, 1> one = sk::zeros<std::uint8_t>(1);
  for (int i = 0; i < 65535; ++i) out.add(std::to_string(i), one);
  out.close();
  const std::clock_t start = std::clock();
  const sk::NpzFile f = sk::load_npz(folder / "many.npz");
  for (int i = 0; i < 65535; ++i) REQUIRE(f.contains(std::to_string(i)));
  CHECK(f.names().size() == 65535);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 2);  // searched one by one: 9 s and more
  sk::NpzWriter twice(folder / "twice.npz");
  twice.add("w", one);
  CHECK(text_of([&] { twice.add("w", one); }) ==
        "npz: " + folder / "twice.npz" + " has an array 'w' already: give each a name of its own");
  CHECK(text_of([&] { twice.add("", one); }) ==
        "npz: an array for " + folder / "twice.npz" + " has an empty name: no reader finds it by that; give it one");
  twice.close();
  CHECK(sk::load_npz(folder / "twice.npz").names().size() == 1);
  sk::NpzWriter two(folder / "two.npz");
  two.add("v", one);
  two.add("w", one);
  two.close();
  std::string text = support::read_text(folder / "two.npz");
  for (std::size_t at = 0; (at = text.find("v.npy", at)) != std::string::npos;) text[at] = 'w';
  const Bytes b(text.begin(), text.end());
  CHECK_THAT(fault(b), Catch::Contains("has two arrays 'w'"));
}

TEST_CASE("a name beyond ASCII is marked as UTF-8, which readers of zip archives take for another code otherwise") {
  const support::TemporaryFolder folder;
  for (const std::string name : {"weights",
                                 "gr\xc3\xb6\xc3\x9f"
                                 "e"}) {
    sk::NpzWriter out(folder / "a.npz");
    out.add(name, sk::ones<float>(3));
    out.close();
    std::ifstream in(folder / "a.npz", std::ios::binary);
    const Bytes b(std::istreambuf_iterator<char>(in), {});
    const int mark = name == "weights" ? 0 : 8;
    CHECK((b[7] == mark && b[directory(b) + 9] == mark));
    CHECK(sk::load_npz(folder / "a.npz").names() == std::vector<std::string>{name});
  }
}

#if !SKEIN_TEST_ASAN && !SKEIN_TEST_TSAN
TEST_CASE("memory that is not to be had is a fault of the file, as any other is") {
  const support::TemporaryFolder folder;
  sk::NpzWriter out(folder / "zeros.npz", sk::NpzMethod::deflated);
  out.add("zeros", sk::zeros<double>(std::int64_t{1} << 26));  // 512 MB in half a megabyte
  out.close();
  const sk::NpzFile f(folder / "zeros.npz");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit tight{static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
  const std::string said = text_of([&] { f.get<double, 1>("zeros"); });
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(said ==
        folder / "zeros.npz" + ": needs more memory than this process can have: a smaller file, or a higher limit (ulimit -v)");
}
#endif

TEST_CASE("archives that lie are refused before anything is allocated") {
  const Bytes stored = archive(sk::NpzMethod::stored), deflated = archive(sk::NpzMethod::deflated);
  CHECK(fault({}).find("is no .npz file, or cut off") != std::string::npos);
  CHECK(fault(Bytes(stored.begin(), stored.end() - 1)).find("is no .npz file, or cut off") != std::string::npos);
  Bytes b = deflated;
  put(b, directory(b) + 24, 0xfffffff0u);
  CHECK(fault(b).find("claims 4294967280 bytes: deflate cannot pack that into") != std::string::npos);
  b = deflated;
  put(b, directory(b) + 24, 3000);
  CHECK(fault(b).find("must hold 2400 bytes of values") != std::string::npos);
  b = stored;
  put(b, directory(b) + 20, 0x7fffffff);
  put(b, directory(b) + 24, 0x7fffffff);
  CHECK(fault(b).find("is claimed to be longer than the file") != std::string::npos);
  b = stored;
  put(b, directory(b) + 42, 0x7fffffff);
  CHECK(fault(b).find("is claimed to be where it cannot be") != std::string::npos);
  b = stored;
  b[300] ^= 1;
  CHECK(fault(b).find("the array 'w' is damaged: its checksum differs") != std::string::npos);
  b = stored;
  put(b, b.size() - 6, 0x7fffffff);
  CHECK(fault(b).find("the zip directory is claimed to be where it cannot be") != std::string::npos);
  b = stored;
  b[directory(b) + 10] = 12;
  CHECK(fault(b).find("is packed by method 12: stored and deflated are read") != std::string::npos);
}

TEST_CASE("cut and flipped archives do no more than throw a FileError") {
  for (auto method : {sk::NpzMethod::stored, sk::NpzMethod::deflated}) {
    const Bytes good = archive(method);
    int refused = 0;
    for (std::size_t n = 0; n < good.size(); n += good.size() / 150)
      CHECK_THROWS_AS(sk::NpzFile(Bytes(good.begin(), good.begin() + static_cast<long>(n)), "x.npz"), sk::FileError);
    for (std::uint64_t trial = 0; trial < 1500; ++trial) {
      Bytes bytes = good;
      for (std::uint64_t k = 0; k < 1 + trial % 4; ++k) {
        const auto at = sk::random_below(2, trial, k, 8 * bytes.size());
        bytes[at / 8] = static_cast<unsigned char>(bytes[at / 8] ^ 1u << at % 8);
      }
      try {
        const sk::NpzFile f(std::move(bytes), "x.npz");
        for (const std::string& name : f.names()) {
          const auto w = f.get<float, 2>(name, sk::NpyTypes::convert);  // outside of CHECK, which would catch what it throws
          CHECK(w.size() <= 600);
        }
      } catch (const sk::FileError&) { ++refused; }
    }
    CHECK(refused > 1000);
  }
}
