// SPDX-License-Identifier: Apache-2.0
// Data sets through HDF5 files: what is written is read, in any order, on several threads; and files that are none or damaged.
#include <skein/data/hdf5_set.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/data/synthetic_digits.hpp>
#include <skein/tensor/tensor.hpp>

#include <catch2/catch.hpp>
#include "../support/processes.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
using namespace sk::data;
using Catch::Contains;

namespace {
auto digits(int count) { return synthetic_digits(count, sk::Seed{1}).normalize(0, 1); }
std::string fault(const auto& act) { return support::thrown<sk::Error>(act); }
/// Chosen samples as a set serves them, and their labels behind, if it has some.
std::vector<float> chosen(const DatasetView& set, const std::vector<std::int64_t>& indices) {
  const long n = set.sample_extents().count();
  std::vector<float> x(indices.size() * static_cast<std::size_t>(n + 3), -1.0f);
  Destination<float> to{.x = x.data(), .pitch = n + 3};
  std::vector<std::int32_t> labels;
  if (set.target().kind == TargetKind::label)
    labels.resize(indices.size() * static_cast<std::size_t>(set.target().each)), to.labels = labels.data();
  set.serve(indices, to);
  x.insert(x.end(), labels.begin(), labels.end());
  return x;
}
/// Adds an array to a file, which is made where there is none; in chunks of one row where a filter is named.
struct Array {
  const char* name = "x";
  hid_t type = H5T_NATIVE_UINT8;
  std::vector<hsize_t> extents{4, 8};
  const void* values = nullptr;
  H5Z_filter_t filter = H5Z_FILTER_NONE;
  unsigned flags = H5Z_FLAG_MANDATORY;
};
void add(const std::string& path, const Array& a) {
  const int rank = static_cast<int>(a.extents.size());
  const hid_t file = std::filesystem::exists(path) ? H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                                                   : H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(rank, a.extents.data(), nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
  std::vector<hsize_t> row = a.extents;
  row[0] = 1;
  if (a.filter != H5Z_FILTER_NONE) H5Pset_chunk(how, rank, row.data()), H5Pset_filter(how, a.filter, a.flags, 0, nullptr);
  const hid_t array = H5Dcreate2(file, a.name, a.type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  if (a.values) H5Dwrite(array, a.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, a.values);
  H5Dclose(array), H5Pclose(how), H5Sclose(space), H5Fclose(file);
}
/// A filter that turns all bits, and leaves out chunks that begin with 9, as one does that cannot make them smaller.
constexpr H5Z_filter_t turns_bits = 310;
std::size_t turn_bits(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void** chunk) {
  auto* const first = static_cast<unsigned char*>(*chunk);
  if (first[0] == 9) return 0;
  std::transform(first, first + bytes, first, [](unsigned char c) { return static_cast<unsigned char>(~c); });
  return bytes;
}
void register_turn_bits() {
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, turns_bits, 1, 1, "turn bits", nullptr, nullptr, turn_bits};
  REQUIRE(H5Zregister(&filter) >= 0);
}
}  // namespace

TEST_CASE("Images go through an HDF5 file, in chunks of any length, and are served in any order") {
  const support::TemporaryFolder folder;
  const auto set = digits(150);
  for (const long chunk : {1L, 7L, 1000L}) {
    to_hdf5(set, folder / "set.h5", {.chunk = chunk, .level = chunk == 7 ? 0 : 4});
    const Hdf5Set read(folder / "set.h5");
    CHECK(read.size() == 150);
    CHECK(read.sample_extents() == sk::Extents{3, {28, 28, 1}});
    CHECK(read.target() == Target::labels(10));
    const std::vector<std::int64_t> order{5, 6, 7, 149, 0, 64, 63, 5};
    CHECK(chosen(read, order) == chosen(set, order));
  }
  CHECK(Hdf5Set(folder / "set.h5", {.targets = ""}).target().kind == TargetKind::none);
  CHECK(Hdf5Set(folder / "set.h5", {.classes = 12}).target() == Target::labels(12));
  CHECK_THAT(fault([&] { Hdf5Set(folder / "set.h5", {.classes = 9}); }),
             Contains("set.h5: has in 'y' the label 9 of sample") && Contains("which is not below the number of classes, 9"));
  CHECK_THAT(fault([&] { Hdf5Set(folder / "set.h5", {.classes = -1}); }), Contains("set.h5: -1 classes"));
}

TEST_CASE("An HDF5 set that was moved from is as it was, though the other is gone") {
  const support::TemporaryFolder folder;
  const auto set = digits(5);
  to_hdf5(set, folder / "set.h5");
  Hdf5Set first(folder / "set.h5");
  { const Hdf5Set second = std::move(first); }
  CHECK(first.size() == 5);
  CHECK(chosen(first, {4, 0}) == chosen(set, {4, 0}));
}

TEST_CASE("An array whose chunks went through a filter that is not here is refused when it is opened, by the filter's name") {
  const support::TemporaryFolder folder;
  const std::string whole = folder / "whole.h5", beside = folder / "beside.h5", optional = folder / "optional.h5";
  std::vector<unsigned char> rows(32, 7), left_out(32, 9);
  const std::vector<std::int32_t> labels{0, 1, 0, 2};
  register_turn_bits();
  add(whole, {.values = rows.data(), .filter = turns_bits});
  add(beside, {.values = rows.data()});
  add(beside, {.name = "y", .type = H5T_NATIVE_INT32, .extents = {4}, .values = labels.data(), .filter = turns_bits});
  add(optional, {.values = left_out.data(), .filter = turns_bits, .flags = H5Z_FLAG_OPTIONAL});
  left_out[16] = 7;  // the third row's chunk is not left out
  add(optional, {.name = "some", .values = left_out.data(), .filter = turns_bits, .flags = H5Z_FLAG_OPTIONAL});
  CHECK(chosen(Hdf5Set(whole, {.targets = ""}), {2})[0] == Approx(7 / 255.0));
  REQUIRE(H5Zunregister(turns_bits) >= 0);
  const auto says = [](const std::string& in) {
    return Contains(in +
                    "' chunks that went through the HDF5 filter 310 ('turn bits'), which this program does not have: write the "
                    "array with gzip (in h5py: compression='gzip'), or name the folder of the filter's plugin in the "
                    "environment variable HDF5_PLUGIN_PATH");
  };
  CHECK_THAT(fault([&] { Hdf5Set(whole, {.targets = ""}); }), says("whole.h5: has in 'x"));
  CHECK_THAT(fault([&] { Hdf5Set{beside}; }), says("beside.h5: has in 'y"));
  CHECK(chosen(Hdf5Set(optional, {.targets = ""}), {3})[0] == Approx(9 / 255.0));
  const Hdf5Set some(optional, {.samples = "some", .targets = ""});
  CHECK_THAT(fault([&] { chosen(some, {2}); }), says("optional.h5: has in 'some"));
}

TEST_CASE("Truth values and other enumerations are their integers, and what are no numbers is named") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  const hid_t truth = H5Tenum_create(H5T_NATIVE_INT8), text = H5Tcopy(H5T_C_S1), pair = H5Tcreate(H5T_COMPOUND, 8);
  const signed char no = 0, yes = 1;
  H5Tenum_insert(truth, "FALSE", &no), H5Tenum_insert(truth, "TRUE", &yes);
  H5Tinsert(pair, "r", 0, H5T_NATIVE_FLOAT), H5Tinsert(pair, "i", 4, H5T_NATIVE_FLOAT);
  const std::vector<signed char> values{0, 1, 1, 0, 1, 0, 0, 1};
  const hid_t list = H5Tvlen_create(H5T_NATIVE_INT32);
  add(path, {.name = "x", .type = truth, .extents = {4, 2}, .values = values.data()});
  add(path, {.name = "y", .type = truth, .extents = {4}, .values = values.data()});
  add(path, {.name = "texts", .type = text, .extents = {4}});
  add(path, {.name = "complex", .type = pair, .extents = {4}});
  add(path, {.name = "lists", .type = list, .extents = {4}});
  add(path, {.name = "bits", .type = H5T_NATIVE_B8, .extents = {4}});
  for (const hid_t type : {truth, text, pair, list}) H5Tclose(type);
  const Hdf5Set set(path);
  CHECK(set.target() == Target::labels(2));
  CHECK(chosen(set, {0, 1}) == std::vector<float>{0, 1, -1, -1, -1, 1, 0, -1, -1, -1, 0, 1});
  const auto of = [&](const char* name) { return fault([&] { Hdf5Set(path, {.targets = name}); }); };
  CHECK_THAT(of("texts"), Contains("set.h5: has in 'texts' texts: write a class number for each"));
  CHECK_THAT(of("complex"), Contains("has in 'complex' records of several fields") && Contains("complex numbers as two"));
  CHECK_THAT(of("lists"), Contains("has in 'lists' lists of lengths of their own: write rows of one length"));
  CHECK_THAT(of("bits"), Contains("has in 'bits' bits: write them as bytes of 0 and 1"));
}

TEST_CASE("Targets that do not go with the samples, and class numbers of more than 32 bits, say which") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  const std::vector<std::uint64_t> large{1, 0, 2, ~std::uint64_t{0}};
  const std::vector<std::int64_t> small{1, 0, std::int64_t{-1} << 40, 1};
  add(path, {});
  add(path, {.name = "maps", .type = H5T_NATIVE_INT32, .extents = {4, 2, 2}});
  add(path, {.name = "three", .type = H5T_NATIVE_INT32, .extents = {3}});
  add(path, {.name = "large", .type = H5T_NATIVE_UINT64, .extents = {4}, .values = large.data()});
  add(path, {.name = "small", .type = H5T_NATIVE_INT64, .extents = {2, 2}, .values = small.data()});
  add(path, {.name = "two", .type = H5T_NATIVE_UINT8, .extents = {2, 8}});
  const auto of = [&](const char* name, const char* samples = "x") {
    return fault([&] { Hdf5Set(path, {.samples = samples, .targets = name}); });
  };
  CHECK_THAT(of("maps"), Contains("has in 'maps' an array of 3 extents: targets are (samples) or (samples, n)"));
  CHECK_THAT(of("three"), Contains("has in 'three' targets of 3 samples, and there are 4 in 'x'"));
  CHECK_THAT(of("large"),
             Contains("has in 'large' the class number 18446744073709551615 of sample 3, which does not fit 32 bits"));
  CHECK_THAT(of("small", "two"), Contains("has in 'small' the class number -1099511627776 of sample 1, which does not fit"));
}

TEST_CASE("Numbers with target vectors go through an HDF5 file, beside other arrays") {
  const support::TemporaryFolder folder;
  std::vector<float> x(70 * 3), y(70 * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i) / 7;
  const auto set = from_tensors(x, sk::Extents{1, {3}}, y);
  to_hdf5(set, folder / "set.h5", {.samples = "inputs", .targets = "outputs", .as = PackedAs::floats});
  const Hdf5Set read(folder / "set.h5", {.samples = "inputs", .targets = "outputs"});
  CHECK(read.target() == Target::vector(2));
  std::vector<float> to(3), target(2);
  const std::vector<std::int64_t> one{41};
  read.serve(one, {.x = to.data(), .pitch = 3, .targets = target.data(), .target_pitch = 2});
  CHECK(std::equal(to.begin(), to.end(), x.begin() + 123));
  CHECK(std::equal(target.begin(), target.end(), y.begin() + 82));
}

TEST_CASE("Targets are written in chunks of at most a mebibyte, which HDF5 limits to four gibibytes, and of 1024 samples") {
  const support::TemporaryFolder folder;
  const auto rows_of_chunk = [&](int samples, int each) {
    const std::string path = folder / "set.h5";
    const sk::Tensor<float, 2> x(sk::dims(samples, 1));
    const sk::Tensor<std::int32_t, 2> labels(sk::dims(samples, each));
    to_hdf5(from_tensors(x, labels), path, {.as = PackedAs::floats});
    CHECK(Hdf5Set(path).target() == Target::labels(1, each));
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), array = H5Dopen2(file, "y", H5P_DEFAULT),
                how = H5Dget_create_plist(array);
    hsize_t chunk[2] = {};
    H5Pget_chunk(how, 2, chunk);
    H5Pclose(how), H5Dclose(array), H5Fclose(file);
    return chunk[0];
  };
  CHECK(rows_of_chunk(2000, 1) == 1024);
  CHECK(rows_of_chunk(10, 1) == 10);
  CHECK(rows_of_chunk(200, 2000) == 131);
  CHECK(rows_of_chunk(3, 300000) == 1);
}

TEST_CASE("A loader serves an HDF5 file on threads of its own, each sample once, with its label") {
  const support::TemporaryFolder folder;
  const auto set = digits(90);
  to_hdf5(set, folder / "set.h5");
  const Hdf5Set read(folder / "set.h5");
  for (const int threads : {1, 3}) {
    Loader<> loader(read, {.batch = 16, .prefetch = Prefetch::on, .prefetch_threads = threads});
    std::vector<int> seen(90);
    for (const auto& batch : loader.epoch(1))
      for (long i = 0; i < batch.count; ++i) {
        ++seen[static_cast<std::size_t>(batch.indices[i])];
        CHECK(batch.labels[i] == set.label(batch.indices[i]));
      }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
  }
}

TEST_CASE("Files that are no HDF5 file, or another, or damaged, say so") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("set.h5: cannot be opened: No such file"));
  support::write_file(path, "no HDF5 at all", 14);
  CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("cannot be opened as an HDF5 file"));
  to_hdf5(digits(40), path);
  CHECK_THAT(fault([&] { Hdf5Set(path, {.samples = "images"}); }),
             Contains("has no array 'images' (links into other files are not followed); it has 'x', 'y': name them in "
                      "Hdf5Options{.samples, .targets}; without targets .targets is \"\": "));
  CHECK_THAT(fault([&] { Hdf5Set(path, {.samples = "y", .targets = "x"}); }), Contains("(samples) or (samples, n)"));
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  support::write_file(path, whole.data(), whole.size() / 2);
  CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("set.h5"));
  std::string bad = whole;  // of a compressed sample
  std::fill(bad.begin() + static_cast<std::ptrdiff_t>(bad.size() / 2),
            bad.begin() + static_cast<std::ptrdiff_t>(bad.size() / 2) + 600, '\x55');
  support::write_file(path, bad.data(), bad.size());
  CHECK_THAT(fault([&] {
               const Hdf5Set set(path);
               for (std::int64_t i = 0; i < 40; ++i) chosen(set, {i});
             }),
             Contains("set.h5"));
}

TEST_CASE("A file of a few bytes that claims many samples is refused before memory is taken") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (const char* name : {"x", "y"}) {
      const hsize_t extents[] = {2000000000, 2};
      const hid_t space = H5Screate_simple(name[0] == 'x' ? 2 : 1, extents, nullptr);
      const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
      const hsize_t chunk[] = {1, 2};
      H5Pset_chunk(how, name[0] == 'x' ? 2 : 1, chunk);
      H5Dclose(H5Dcreate2(file, name, H5T_NATIVE_INT32, space, H5P_DEFAULT, how, H5P_DEFAULT));
      H5Pclose(how);
      H5Sclose(space);
    }
    H5Fclose(file);
  }
  CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("targets of 2000000000 samples, 1 each: 89478485 are read at most"));
  const std::string wide = folder / "wide.h5";  // 2^64 targets are 0 in 64 bits
  add(wide, {.extents = {hsize_t{1} << 62, 1}, .filter = H5Z_FILTER_SHUFFLE});
  add(wide, {.name = "y", .extents = {hsize_t{1} << 62, 4}, .filter = H5Z_FILTER_SHUFFLE});
  add(wide, {.name = "z", .type = H5T_NATIVE_FLOAT, .extents = {hsize_t{1} << 62, 4}, .filter = H5Z_FILTER_SHUFFLE});
  for (const char* targets : {"y", "z"})
    CHECK_THAT(fault([&] { Hdf5Set(wide, {.targets = targets}); }),
               Contains("has in '" + std::string(targets) +
                        "' targets of 4611686018427387904 samples, 4 each: 89478485 are read at most, unless .limit is larger"));
}

TEST_CASE("A sample or a chunk that takes more than the limit is refused, and so is a pipe") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (const char* name : {"long samples", "long chunks"}) {
      const hsize_t extents[] = {200000000, name[5] == 's' ? 2000000000u : 2u}, chunk[] = {name[5] == 's' ? 1u : 100000000u, 2};
      const hid_t space = H5Screate_simple(2, extents, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_chunk(how, 2, chunk);
      H5Pset_deflate(how, 4);
      H5Dclose(H5Dcreate2(file, name, H5T_NATIVE_INT32, space, H5P_DEFAULT, how, H5P_DEFAULT));
      H5Pclose(how);
      H5Sclose(space);
    }
    H5Fclose(file);
  }
  CHECK_THAT(fault([&] { Hdf5Set(path, {.samples = "long samples", .targets = ""}); }),
             Contains("has in 'long samples' samples of more than 1073741824 bytes: give Hdf5Set a larger .limit"));
  CHECK_THAT(fault([&] { Hdf5Set(path, {.samples = "long chunks", .targets = ""}); }),
             Contains("chunks of more than 1073741824"));
  CHECK(Hdf5Set(path, {.samples = "long chunks", .targets = "", .limit = 1600000000}).size() == 200000000);
  for (const std::uint64_t limit : {0, 15})
    for (const char* name : {"long samples", "long chunks"})
      CHECK_THAT(fault([&] { Hdf5Set(path, {.samples = name, .targets = "", .limit = limit}); }),
                 Contains(" samples of more than " + std::to_string(limit) + " bytes"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(fault([&] { Hdf5Set(folder / "pipe"); }), Contains("pipe: is no plain file"));
}

TEST_CASE("An array whose values are in files that the file names is refused: it would read any file of the user") {
  const support::TemporaryFolder folder;
  const hsize_t extents[2] = {4, 2};
  std::ofstream(folder / "secret") << std::string(64, 's');
  for (const bool is_virtual : {false, true}) {
    const std::string path = folder / (is_virtual ? "virtual.h5" : "external.h5");
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, extents, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
    if (is_virtual) H5Pset_virtual(how, space, "other.h5", "x", space);
    else H5Pset_external(how, (folder / "secret").c_str(), 0, 32);
    for (const char* name : {"x", "y"}) H5Dclose(H5Dcreate2(file, name, H5T_NATIVE_INT32, space, H5P_DEFAULT, how, H5P_DEFAULT));
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
    CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("an array whose values are in other files, which it names"));
  }
}

TEST_CASE("A link into another file is not followed, neither to an array nor to a group on the way") {
  const support::TemporaryFolder folder;
  to_hdf5(digits(4), folder / "other.h5");
  const std::string path = folder / "links.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/", file, "all", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  for (const char* name : {"x", "all/x"})
    CHECK_THAT(fault([&] { Hdf5Set(path, {.samples = name, .targets = ""}); }),
               Contains("has no array '" + std::string(name) + "' (links into other files are not followed)"));
}

TEST_CASE("Where there is no such array, ten of those at the root are named, and no groups") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "many.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "A", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(group);
  H5Fclose(file);
  CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("'x'") && !Contains("it has"));
  const hid_t again = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
  for (char name = 'm'; name >= 'b'; --name)
    H5Dclose(H5Dcreate2(again, std::string(1, name).c_str(), H5T_NATIVE_INT32, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(again);
  CHECK_THAT(fault([&] { Hdf5Set{path}; }), Contains("it has 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', ...: name"));
}

TEST_CASE("What to_hdf5 cannot write it says") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  CHECK_THAT(fault([&] { to_hdf5(digits(3), path, {.chunk = 0}); }), Contains(".chunk is one sample or more"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3), path, {.as = PackedAs::tokens}); }), Contains("to_npy"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3).normalize(0.3, 0.5), path); }), Contains("to_hdf5: sample 0 has the value"));
  to_hdf5(digits(3), path);
  CHECK_THAT(fault([&] { to_hdf5(digits(5).normalize(0.3, 0.5), path); }), Contains("has the value"));
  CHECK(Hdf5Set(path).size() == 3);  // an error leaves the old file
  CHECK(folder.names() == std::vector<std::string>{"set.h5"});
  CHECK_THAT(fault([&] { to_hdf5(digits(3), folder / "no/set.h5"); }), Contains("no/set.h5.partial: cannot be created"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3).take(0), path); }), Contains("to_hdf5: the data set has no samples"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3), ""); }), Contains("has an empty path"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3), path, {.samples = "a", .targets = "a"}); }),
             Contains("to_hdf5: .samples is 'a' and .targets is 'a': give each array a name that is no part of the other's"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3), path, {.targets = "x/y"}); }), Contains(".samples is 'x' and .targets is 'x/y'"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3), path, {.samples = "y/x"}); }), Contains(".samples is 'y/x' and .targets is 'y'"));
  CHECK_THAT(fault([&] { to_hdf5(digits(3), path, {.samples = ""}); }), Contains("cannot get an array named ''"));
  CHECK(Hdf5Set(path).size() == 3);
}

TEST_CASE("Arrays are written into groups that their names say, and read from there") {
  const support::TemporaryFolder folder;
  to_hdf5(digits(6), folder / "set.h5", {.samples = "train/images/x", .targets = "train/y"});
  const Hdf5Set read(folder / "set.h5", {.samples = "train/images/x", .targets = "/train/y"});
  CHECK(chosen(read, {5, 1}) == chosen(digits(6), {5, 1}));
}

TEST_CASE("to_hdf5 writes as other files are written: beside, by one writer, with the permissions, and where links lead to") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "set.h5";
  to_hdf5(digits(3), path);
  REQUIRE(::chmod(path.c_str(), 0400) == 0);
  support::write_file(folder / "precious", "precious", 8);
  std::filesystem::create_symlink("precious", path + ".partial.h5");  // left there by somebody
  std::filesystem::create_symlink("set.h5", folder / "newest");
  to_hdf5(digits(4), folder / "newest");
  CHECK(std::filesystem::is_symlink(folder / "newest"));
  CHECK(Hdf5Set(path).size() == 4);
  struct stat facts {};
  CHECK((::stat(path.c_str(), &facts) == 0 && (facts.st_mode & 0777) == 0400));
  CHECK(support::read_text(folder / "precious") == "precious");
  {
    detail::NewHdf5File first(path);
    CHECK_THAT(fault([&] { to_hdf5(digits(5), path); }), Contains("is being written by another process or thread"));
  }
  CHECK(Hdf5Set(path).size() == 4);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(fault([&] { to_hdf5(digits(3), folder / "pipe"); }), Contains("pipe: is no plain file"));
  const support::Child child = support::start_process([&]() -> std::string {
    const rlimit small{20000, 20000};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return "no limit";
    return fault([&] { to_hdf5(digits(400), path); });
  });
  CHECK_THAT(support::wait_for(child), Contains("set.h5.partial.h5: cannot be written"));
  CHECK(Hdf5Set(path).size() == 4);
  CHECK(folder.names().size() == 4);  // newest, pipe, precious, set.h5
}
