// SPDX-License-Identifier: Apache-2.0
// Folders of images: what is written is read, sizes, orders, and files that are damaged or none.
#include <skein/data/image_folder.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/npy_pair.hpp>
#include <skein/data/write_image_folder.hpp>

#include <catch2/catch.hpp>
#include "../support/processes.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"
#include "fixtures/gray_jpeg.hpp"

namespace sk = skein;
using namespace sk::data;
using Catch::Contains;

namespace {
/// Images of 6 x 5 pixels in colours, of 3 classes.
auto images(int count) {
  std::vector<std::uint8_t> x(static_cast<std::size_t>(count) * 90);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 37 % 256);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 3);
  return from_tensors(x, sk::Extents{3, {6, 5, 3}}, labels);
}
std::vector<float> sample(const auto& set, std::int64_t i, std::int32_t& label) {
  std::vector<float> x(static_cast<std::size_t>(set.sample_extents().count()));
  set.read(i, x, label);
  return x;
}
std::string fault(const auto& act) { return support::thrown<sk::Error>(act); }
void write(const std::string& path, const std::string& bytes) { support::write_file(path, bytes.data(), bytes.size()); }
/// The check value that PNG has behind each chunk: CRC-32.
std::uint32_t png_check(const std::string& bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
  }
  return ~crc;
}
/// Four bytes, the most significant first, as PNG has them.
std::string number(std::uint32_t n) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(n >> shift);
  return text;
}
/// A chunk of a PNG file: its name and its values, of this length.
std::string chunk(const std::string& typed, std::size_t length) {
  return number(static_cast<std::uint32_t>(length)) + typed + number(png_check(typed));
}
/// A PNG file of two pixels in a row of these bytes, stored as they are; `more`: chunks before them.
std::string png_of_two(int bits, int kind, const std::string& row, const std::string& more = "") {
  const std::string filtered = '\0' + row;
  const auto size = static_cast<unsigned>(filtered.size());
  std::string data("\x78\x01\x01", 3);
  for (const unsigned n : {size, ~size}) data += static_cast<char>(n), data += static_cast<char>(n >> 8);
  data += filtered;
  std::uint32_t a = 1, b = 0;
  for (const char c : filtered) a += static_cast<unsigned char>(c), b += a;
  data += number(b << 16 | a);
  const std::string header =
      "IHDR" + number(2) + number(1) + static_cast<char>(bits) + static_cast<char>(kind) + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk(header, 13) + more + chunk("IDAT" + data, data.size()) + chunk("IEND", 0);
}
std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
}  // namespace

TEST_CASE("A set that is written as a folder of images is read as it was, class by class") {
  const support::TemporaryFolder folder;
  const auto set = images(10);
  write_image_folder(set, folder / "set", {"cat", "dog"});  // the third is named 2
  write(folder / "set/cat/notes.txt", "no image");
  const ImageFolder read(folder / "set");
  CHECK(read.class_names() == std::vector<std::string>{"2", "cat", "dog"});
  CHECK(read.target() == Target::labels(3));
  CHECK(read.sample_extents() == sk::Extents{3, {6, 5, 3}});
  REQUIRE(read.size() == 10);
  for (std::int64_t i = 0; i < 10; ++i) {
    std::int32_t label = -1;
    const std::vector<float> x = sample(read, i, label);
    const std::int64_t original = std::stoll(std::filesystem::path(read.path(i)).stem().string());
    CHECK(label == (set.label(original) + 1) % 3);
    for (std::size_t k = 0; k < 90; ++k) REQUIRE(x[k] == static_cast<float>(set.stored(original)[k]) * (1.0f / 255));
  }
  to_npy(read, folder / "x.npy", folder / "y.npy");
  const auto packed = from_npy(folder / "x.npy", folder / "y.npy");
  std::int32_t label = -1;
  CHECK(sample(read, 7, label)[11] == static_cast<float>(packed.stored(7)[11]) * (1.0f / 255));
  CHECK(packed.label(7) == label);
}

TEST_CASE("A folder of images that was moved from is as it was, also within chosen samples") {
  const support::TemporaryFolder folder;
  write_image_folder(images(6), folder / "set");
  ImageFolder first(folder / "set");
  const auto chosen = subset(std::move(first), {4, 5});
  std::int32_t label = -1, same = -1;
  std::vector<float> x(90);
  chosen.serve(std::vector<std::int64_t>{1}, Destination<float>{.x = x.data(), .pitch = 90, .labels = &same});
  CHECK((first.size() == 6 && first.target() == Target::labels(3)));
  CHECK(sample(first, 5, label) == x);
  CHECK(label == same);
}

TEST_CASE("A PNG file that cannot be written leaves the old one, also where files have a greatest size") {
  const support::TemporaryFolder folder;
  const auto picture = [](int side, unsigned char grain) {
    ImageBytes image{{side, side}, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(side) * static_cast<std::size_t>(side))};
    for (std::size_t i = 0; i < image.values.size(); ++i) image.values[i] = static_cast<std::uint8_t>(i * i * grain >> 3);
    return image;
  };
  write_png(folder / "a.png", picture(8, 3));
  const std::string before = bytes_of(folder / "a.png");
  const support::Child child = support::start_process([&]() -> std::string {
    const rlimit small{100, 100};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return "no limit";
    return fault([&] { write_png(folder / "a.png", picture(64, 5)); });
  });
  CHECK_THAT(support::wait_for(child), Contains("a.png.partial (byte 100): cannot be written"));
  CHECK(bytes_of(folder / "a.png") == before);
  std::filesystem::create_symlink("a.png", folder / "link.png");
  write_png(folder / "link.png", picture(16, 7));  // what it leads to is written
  CHECK(std::filesystem::is_symlink(folder / "link.png"));
  CHECK(read_image(folder / "a.png", 1).values == picture(16, 7).values);
}

TEST_CASE("Images of a folder become gray, and of one size, in bytes") {
  const support::TemporaryFolder folder;
  write_image_folder(images(3), folder / "set");
  const ImageFolder gray(folder / "set", {.size = {4, 8}, .channels = 1});
  CHECK(gray.sample_extents() == sk::Extents{3, {4, 8, 1}});
  std::int32_t label = -1;
  for (const float v : sample(gray, 2, label)) CHECK(std::abs(v * 255 - std::round(v * 255)) < 1e-3f);
  CHECK(label == 2);
  to_npy(gray, folder / "x.npy", folder / "y.npy");  // refuses what is no byte
  write_png(folder / "set/1/large.png", {{7, 7}, 3, std::vector<std::uint8_t>(147)});
  const ImageFolder several(folder / "set");
  CHECK_THAT(fault([&] { sample(several, 2, label); }),
             Contains("large.png: is 7 x 7, and the first image of the folder 6 x 5") && Contains("give ImageFolder a .size"));
}

TEST_CASE("Images of more pixels than the limit of their folder are refused") {
  const support::TemporaryFolder folder;
  write_image_folder(images(3), folder / "set");  // of 30 pixels
  CHECK_THAT(fault([&] { (void)ImageFolder(folder / "set", {.pixel_limit = 29}); }),
             Contains("5 x 6 pixels: 29 are read at most"));
  const ImageFolder of_a_size(folder / "set", {.size = {4, 8}, .pixel_limit = 29}), all(folder / "set", {.pixel_limit = 30});
  std::int32_t label = -1;
  CHECK_THAT(fault([&] { sample(of_a_size, 2, label); }), Contains("5 x 6 pixels: 29 are read at most"));
  CHECK(sample(all, 2, label) == sample(ImageFolder(folder / "set"), 2, label));
}

TEST_CASE("A JPEG file is read, and one that is cut off is refused") {
  const support::TemporaryFolder folder;
  constexpr auto& jpeg = fixtures::gray_jpeg;
  const std::string path = folder / "gray.JPG";
  support::write_file(path, jpeg, sizeof jpeg);
  const ImageBytes gray = read_image(path, 1), coloured = read_image(path);
  CHECK(gray.size == ImageSize{8, 8});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(std::abs(static_cast<int>(gray.values[i]) - static_cast<int>(30 * (i / 8))) <= 3);  // each row 30 lighter
    CHECK(coloured.values[3 * i + 2] == gray.values[i]);
  }
  std::string more(jpeg, jpeg + sizeof jpeg);  // bytes too many between two parts, as some cameras leave them
  more.insert(more.find("\xff\xc0"), "\1\2\3");
  support::write_file(path, more.data(), more.size());
  CHECK(read_image(path, 1).values == gray.values);
  support::write_file(path, jpeg, sizeof jpeg / 2);
  CHECK_THAT(fault([&] { (void)read_image(path, 1); }), Contains("gray.JPG") && Contains("is a damaged JPEG file"));
}

TEST_CASE("Colours become gray as JPEG has it, and 16 bits 8, without a curve") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "image.png";
  write_png(path, {{1, 4}, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 90, 90, 90}});
  CHECK(read_image(path, 1).values == std::vector<std::uint8_t>{76, 150, 29, 90});
  write(path, png_of_two(16, 0, "\x40\x40\x80\x80"));
  CHECK(read_image(path, 1).values == std::vector<std::uint8_t>{64, 128});
  std::string print(fixtures::gray_jpeg, fixtures::gray_jpeg + sizeof fixtures::gray_jpeg);
  const std::size_t frame = print.find("\xff\xc0");  // its components: from one to four
  print[frame + 3] = static_cast<char>(print[frame + 3] + 9), print[frame + 9] = 4;
  print.insert(frame + 13, std::string("\2\x11\0\3\x11\0\4\x11\0", 9));
  const std::size_t scan = print.find("\xff\xda");
  print[scan + 3] = static_cast<char>(print[scan + 3] + 6), print[scan + 4] = 4;
  print.insert(scan + 7, std::string("\2\0\3\0\4\0", 6));
  write(path, print);
  CHECK_THAT(fault([&] { (void)read_image(path); }), Contains("four colors of print"));
}

TEST_CASE("Half-transparent pixels are laid over black by their values, whatever the kind of the PNG file") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "image.png";
  const auto values = [&](int bits, int kind, const std::string& row, const std::string& more, int channels) {
    write(path, png_of_two(bits, kind, row, more));
    return read_image(path, channels).values;
  };
  using Bytes = std::vector<std::uint8_t>;
  constexpr int gray = 4, coloured = 6, palette = 3;
  CHECK(values(8, coloured, {"\xc8\x64\xff\x80\xc8\x64\xff\0", 8}, "", 3) == Bytes{100, 50, 128, 0, 0, 0});
  CHECK(values(8, coloured, {"\xc8\xc8\xc8\x80\xc8\xc8\xc8\xff", 8}, "", 1) == Bytes{100, 200});
  CHECK(values(8, gray, {"\xc8\x80\xc8\x40", 4}, "", 1) == Bytes{100, 50});
  CHECK(values(8, gray, {"\xc8\x80\xc8\x40", 4}, "", 3) == Bytes{100, 100, 100, 50, 50, 50});
  CHECK(values(16, gray, {"\xc8\xc8\x80\x80\xc8\xc8\xff\xff", 8}, "", 1) == Bytes{100, 200});
  const std::string colours = chunk({"PLTE\xc8\x64\0\0\xc8\0", 10}, 6) + chunk({"tRNS\x80", 5}, 1);
  CHECK(values(8, palette, {"\0\1", 2}, colours, 3) == Bytes{100, 50, 0, 0, 200, 0});
}

TEST_CASE("What a PNG file says of its gamma does not change its values") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "image.png";
  const std::vector<std::uint8_t> values{10, 64, 128, 200, 0, 255};
  write_png(path, {{1, 2}, 3, values});
  const std::string whole = bytes_of(path);
  for (const std::uint32_t gamma : {100'000u, 55'556u, 45'455u}) {  // times 100,000
    std::string with = whole;
    with.insert(33, chunk("gAMA" + number(gamma), 4) + chunk("tEXta", 1) + chunk("gAMA" + number(38'000), 4));
    write(path, with);
    CHECK(read_image(path).values == values);
    write(path, with.substr(0, 40));
    CHECK_THAT(fault([&] { (void)read_image(path); }), Contains("image.png: is a damaged PNG file"));
  }
}

TEST_CASE("Every cut of a PNG file is refused, and so is a size that is not meant") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "image.png";
  std::vector<std::uint8_t> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 7919 % 251);
  write_png(path, {{10, 10}, 3, values});
  CHECK(read_image(path).values == values);
  const std::string whole = bytes_of(path);
  for (std::size_t n = 1; n + 16 < whole.size(); n += 3) {  // the last chunk has nothing that is needed
    write(path, whole.substr(0, n));
    CHECK_THAT(fault([&] { (void)read_image(path); }), Contains("image.png"));
  }
  std::string large = whole;
  for (const std::size_t at : {16u, 20u}) large.replace(at, 4, std::string("\0\x01\0\0", 4));  // 65,536 x 65,536
  for (std::size_t i = 0, crc = png_check(large.substr(12, 17)); i < 4; ++i)
    large[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  write(path, large);
  CHECK_THAT(fault([&] { (void)read_image(path); }),
             Contains("65536 x 65536 pixels, which a PNG file of") && Contains("cannot hold"));
  write(path, whole);
  CHECK_THAT(fault([&] { (void)read_image(path, 3, 99); }), Contains("10 x 10 pixels: 99 are read at most"));
  CHECK(read_image(path, 3, 100).values == values);
  std::string wide(fixtures::gray_jpeg, fixtures::gray_jpeg + sizeof fixtures::gray_jpeg);
  const std::size_t frame = wide.find("\xff\xc0");
  wide.replace(frame + 5, 4, "\x7f\xff\x7f\xff");
  write(path, wide);
  CHECK_THAT(fault([&] { (void)read_image(path); }), Contains("32767 x 32767 pixels: 100000000 are read at most"));
  write(path, "GIF89a and more");
  CHECK_THAT(fault([&] { (void)read_image(path); }), Contains("is neither a PNG nor a JPEG file"));
  CHECK_THAT(fault([&] { (void)read_image(path, 2); }), Contains("not 2"));
  CHECK_THAT(fault([&] { write_png(path, {{2, 2}, 3, values}); }), Contains("has other than 300 values"));
  CHECK_THAT(fault([&] {
               write_png(folder / "no/image.png", {{10, 10}, 3, values});
             }),
             Contains("no/image.png.partial: cannot be created"));
}

TEST_CASE("Of more than ten classes without names each keeps its number") {
  const support::TemporaryFolder folder;
  std::vector<std::int32_t> labels(12);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i);
  write_image_folder(from_tensors(std::vector<std::uint8_t>(48), sk::Extents{3, {2, 2, 1}}, labels), folder / "set");
  const ImageFolder read(folder / "set", {.channels = 1});
  CHECK(read.class_names()[2] == "02");
  for (std::int64_t i = 0; i < 12; ++i) {
    std::int32_t label = -1;
    (void)sample(read, i, label);
    CHECK(label == i);
    CHECK_THAT(read.path(i), Contains("0000" + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".png"));
  }
}

TEST_CASE("Channels of a folder that are none are refused before a file is read") {
  const support::TemporaryFolder folder;
  write_image_folder(images(3), folder / "set");
  for (const int channels : {4, 0, -1})
    for (const ImageSize size : {ImageSize{}, ImageSize{4, 4}})
      CHECK_THAT(fault([&] { ImageFolder(folder / "set", {.size = size, .channels = channels}); }),
                 Contains("ImageFolder: .channels is " + std::to_string(channels) + ": 3, red, green and blue, or 1"));
}

TEST_CASE("A class has the images of folders that are links too, and one that leads back is refused") {
  const support::TemporaryFolder folder;
  write_image_folder(images(6), folder / "set");
  write_image_folder(images(3), folder / "more");
  std::filesystem::create_directory_symlink("../../more/1", folder / "set/1/link");
  const ImageFolder read(folder / "set");
  CHECK(read.size() == 7);
  CHECK_THAT(read.path(4), Contains("set/1/link/000001.png"));
  std::int32_t label = -1;
  (void)sample(read, 4, label);
  CHECK(label == 1);
  std::filesystem::create_directory_symlink("..", folder / "set/2/back");
  CHECK_THAT(fault([&] { ImageFolder(folder / "set"); }), Contains("take out a link that leads back to a folder above"));
}

TEST_CASE("Classes that would lie in one folder, and values that are no pixels, are not written") {
  const support::TemporaryFolder folder;
  const auto says = [&](const std::vector<std::string>& names) {
    return fault([&] { write_image_folder(images(3), folder / "set", names); });
  };
  CHECK_THAT(says({"cat", "dog", "cat"}), Contains("two classes have the name \"cat\""));
  CHECK_THAT(says({"2"}), Contains("two classes have the name \"2\""));  // as the third without a name has
  for (const std::string name : {"", ".", "..", "n/a", "../cat"})
    CHECK_THAT(says({name}), Contains("the class name \"" + name + "\" is no name of a folder"));
  CHECK_THAT(says({".cat"}), Contains("the class name \".cat\" begins with a point: such a folder is hidden"));
  CHECK_FALSE(std::filesystem::exists(folder / "set"));
  CHECK_THAT(fault([&] { write_image_folder(images(3).normalize(0.5, 0.1), folder / "set"); }),
             Contains("sample 0 has the value -5, and pixels") && Contains("set.normalize(0, 1)"));
  const InMemory<float> unknown(sk::Extents{3, {1, 1, 1}}, std::vector<float>{NAN}, std::vector<std::int32_t>{0}, 0, 1,
                                NonFinite::keep);
  CHECK_THAT(fault([&] { write_image_folder(unknown, folder / "other"); }), Contains("sample 0 has the value nan"));
  write_image_folder(images(3), folder / "full");
  CHECK_THAT(fault([&] { write_image_folder(images(3), folder / "full"); }),
             Contains("/full: has \"") && Contains("\" in it already: write the set into a folder of its own"));
}

TEST_CASE("Hidden folders are no classes, and hidden files no images") {
  const support::TemporaryFolder folder;
  write_image_folder(images(6), folder / "set");
  for (const std::string name : {"set/.git", "set/.ipynb_checkpoints", "set/1/.old"}) {
    std::filesystem::create_directories(folder / name);
    write(folder / (name + "/1.png"), "no image");
  }
  for (const std::string name : {"set/0/.hidden.png", "set/0/._000000.png", "set/.DS_Store"}) write(folder / name, "no image");
  const ImageFolder read(folder / "set");
  CHECK(read.class_names() == std::vector<std::string>{"0", "1", "2"});
  REQUIRE(read.size() == 6);
  std::int32_t label = -1;
  for (std::int64_t i = 0; i < 6; ++i) CHECK(sample(read, i, label).size() == 90);
  std::filesystem::create_directories(folder / "none/.git");
  CHECK_THAT(fault([&] { ImageFolder(folder / "none"); }), Contains("root/class/image.png"));
  std::filesystem::create_directories(folder / "hidden/cat");
  write(folder / "hidden/cat/.1.png", "no image");
  CHECK_THAT(fault([&] { ImageFolder(folder / "hidden"); }), Contains("a class without samples"));
}

TEST_CASE("Folders that have no images say so") {
  const support::TemporaryFolder folder;
  write_image_folder(images(3), folder / "links");
  std::filesystem::create_symlink("a.png", folder / "links/1/a.png");  // to itself
  CHECK(ImageFolder(folder / "links").size() == 3);
  write(folder / "plain", "x");
  CHECK_THAT(fault([&] { write_image_folder(images(3), folder / "plain/x"); }),
             Contains("plain/x/0: the folder cannot be made") && Contains("Not a directory"));
  CHECK_THAT(fault([&] { ImageFolder(folder / "none"); }), Contains("none: is no folder"));
  std::filesystem::create_directories(folder / "set");
  CHECK_THAT(fault([&] { ImageFolder(folder / "set"); }), Contains("root/class/image.png"));
  std::filesystem::create_directories(folder / "set/cat");
  CHECK_THAT(fault([&] { ImageFolder(folder / "set"); }), Contains("a class without samples"));
  write_image_folder(images(3), folder / "full");
  CHECK_THAT(fault([&] {
               ImageFolder(folder / "full", {.size = {5, 0}});
             }),
             Contains("a height and a width above 0, or neither"));
  CHECK_THAT(fault([&] {
               write_image_folder(from_tensors(std::vector<float>(4), sk::Extents{1, {2}}), folder / "x");
             }),
             Contains("each with one class number"));
}
