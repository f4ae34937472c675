// SPDX-License-Identifier: Apache-2.0
#include <skein/train/checkpoint.hpp>
#include <skein/train/safetensors.hpp>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace st = skein::train;

TEST_CASE("what is plain text, and what is not") {
  for (const char* good : {"", "parameters/0.weight", "\xc3\xa4\xc3\xb6", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc2\xa0"})
    CHECK(st::is_plain_text(good));
  for (const char* bad : {"\x1b[31m", "a\nb", "\x7f", "\x80", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xc2\x9b"})
    CHECK_FALSE(st::is_plain_text(bad));
  CHECK_FALSE(st::is_plain_text(std::string_view("\0", 1)));
}

TEST_CASE("the header is JSON that begins with version and hash, and puts wide values first") {
  const support::TemporaryFolder folder;
  const std::vector<float> values{1, 2, 3};
  const std::vector<double> wide{4};
  const std::vector<signed char> narrow{5, 6};
  st::CheckpointWriter w;
  w.add("narrow", std::span(narrow));
  w.add("a \"name\" \\", std::span(values));
  w.add("wide", std::span(wide));
  w.add_fact("step", "7");
  w.commit(folder / "c");
  const std::string bytes = support::read_text(folder / "c");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  REQUIRE((8 + length) % 64 == 0);
  REQUIRE(bytes.size() == 8 + length + 8 + 12 + 2);
  const std::string header = bytes.substr(8, length);
  CHECK(header.starts_with(R"({"__metadata__":{"skein_checkpoint":"2","header_xxh64":")"));
  CHECK(header.find(R"("step":"7")") != header.npos);
  CHECK(header.find(R"("wide":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                    R"("a \"name\" \\":{"dtype":"F32","shape":[3],"data_offsets":[8,20]},)"
                    R"("narrow":{"dtype":"I8","shape":[2],"data_offsets":[20,22]}})") != header.npos);
  const st::CheckpointReader reader{folder / "c"};
  CHECK(reader.facts().at("step") == "7");
  CHECK(reader.sections().at(1).name == "a \"name\" \\");
}

TEST_CASE("names that no tool, terminal or reader could take are refused by the writer") {
  st::CheckpointWriter w;
  const std::vector<float> values(3);
  for (const char* bad : {"\x1b[31m", "\xff", "object/steps"}) CHECK_THROWS_AS(w.add(bad, std::span(values)), sk::ArgumentError);
  for (const char* bad : {"\n", "written_by", "xxh64/x"}) CHECK_THROWS_AS(w.add_fact(bad, "words"), sk::ArgumentError);
  CHECK_THROWS_AS(w.add_fact("name", "\x1b[31m"), sk::ArgumentError);
}

TEST_CASE("the safetensors of Python reads the weights of a checkpoint") {
  const char* python = std::getenv("SKEIN_PEER_PYTHON");
  const std::string program = python ? python : "python3";
  if (std::system((program + " -c 'import safetensors.numpy' 2>/dev/null").c_str()) != 0) {
    WARN("SKIPPED: " + program +
         " has no package safetensors (pip install safetensors numpy; SKEIN_PEER_PYTHON names the program)");
    return;
  }
  const support::TemporaryFolder folder;
  const sk::Extents extents{2, {3, 5}};
  std::vector<float> weight(3 * 8);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i) + 0.25f;
  const std::vector<double> moment{0.5, -1.5};
  const std::vector<std::int64_t> counters{1, -2, 3};
  st::CheckpointWriter w;
  w.add("parameters/0.weight", extents, weight.data(), 8);
  w.add_object("steps", std::int64_t{500});
  w.add("moment", std::span(moment));
  w.add("counters", std::span(counters));
  w.commit(folder / "c");
  const std::string script = R"(
import sys, numpy, safetensors, safetensors.numpy
def check(tensors, dtype):
    w = numpy.asarray(tensors["parameters/0.weight"])
    assert w.shape == (3, 5) and w.dtype == numpy.float32 and w[2, 4] == 20.25, w
    assert list(numpy.asarray(tensors["moment"])) == [0.5, -1.5] and list(numpy.asarray(tensors["counters"])) == [1, -2, 3]
    assert bytes(numpy.asarray(tensors["object/steps"])) == (500).to_bytes(8, "little")
check(safetensors.numpy.load_file(sys.argv[1]), None)
with safetensors.safe_open(sys.argv[1], "numpy") as f:
    assert f.metadata()["skein_checkpoint"] == "2" and len(f.metadata()["xxh64/parameters/0.weight"]) == 16
try:
    import safetensors.torch
except ImportError:
    sys.exit(0)
check(safetensors.torch.load_file(sys.argv[1]), None)
)";
  support::write_file(folder / "read.py", script.data(), script.size());
  CHECK(std::system((program + " " + (folder / "read.py") + " " + (folder / "c")).c_str()) == 0);
}
