// SPDX-License-Identifier: Apache-2.0
// Several threads that stage batches, of a data set that reads its images from a disk, a file each: batches a second against one
// thread. Nobody else computes, so that two cores are to spare; the files are in the page cache, as they are from the second
// epoch on.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <skein/data/finite.hpp>
#include <skein/data/loader.hpp>

#include "support/report.hpp"
#include "support/slices.hpp"
#include "support/statistics.hpp"

namespace {
using namespace bench;
namespace sk = skein;

/// Images of 64 x 64 x 3 as binary PPM files, their class in a byte behind: read, checked and scaled when asked for.
struct Images {
  static constexpr int side = 64;
  std::filesystem::path folder;
  std::int64_t count = 0;

  Images(std::filesystem::path where, std::int64_t n) : folder(std::move(where)), count(n) {
    std::filesystem::create_directories(folder);
    std::string file = "P6\n64 64\n255\n";
    const std::size_t header = file.size();
    file.resize(header + values + 1);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < values; ++k)
        file[header + k] = static_cast<char>((static_cast<std::size_t>(i) * 31 + k * 7) % 251);
      file.back() = static_cast<char>(i % 10);
      std::ofstream(path(i), std::ios::binary) << file;
    }
  }
  ~Images() { std::filesystem::remove_all(folder); }
  Images(const Images&) = delete;

  std::int64_t size() const { return count; }
  sk::Extents sample_extents() const { return {3, {side, side, 3}}; }
  sk::data::Target target() const { return sk::data::Target::labels(10); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    std::array<unsigned char, values + 64> bytes;
    std::ifstream file(path(i), std::ios::binary);
    std::string magic;
    int width = 0, height = 0, most = 0;
    file >> magic >> width >> height >> most;
    file.get();
    file.read(reinterpret_cast<char*>(bytes.data()), values + 1);
    if (!file || magic != "P6" || width != side || height != side || most != 255)
      throw sk::Error(path(i).string() + " is no image of 64 x 64");
    for (std::size_t k = 0; k < values; ++k) x[k] = (static_cast<float>(bytes[k]) / 255 - 0.5f) / 0.25f;
    label = bytes[values];
  }

 private:
  static constexpr std::size_t values = side * side * 3;
  std::filesystem::path path(std::int64_t i) const { return folder / (std::to_string(i) + ".ppm"); }
};

/// Seconds of an epoch, whose batches are only looked at; checks that each sample came with its label.
double epoch(sk::data::Loader<>& loader, std::int64_t number) {
  const double start = clock_seconds(CLOCK_MONOTONIC);
  std::int64_t seen = 0;
  for (const auto& batch : loader.epoch(number))
    for (long i = 0; i < batch.count; ++i, ++seen)
      if (batch.labels[i] != batch.indices[i] % 10) throw sk::Error("a sample came with the label of another");
  if (seen != loader.dataset().size()) throw sk::Error("an epoch did not serve every sample once");
  return clock_seconds(CLOCK_MONOTONIC) - start;
}
}  // namespace

int main(int argc, char** argv) {
  const Options o = options(argc, argv);
  Report report("prefetch", o);
  const Images images(std::filesystem::temp_directory_path() / ("skein_prefetch_" + std::to_string(::getpid())),
                      o.quick ? 1000 : 4000);
  report.say(std::to_string(images.count) + " files of 12 kB in " + images.folder.parent_path().string() + ", batches of 64; " +
             std::to_string(sk::available_cores()) + " cores");
  const auto loader_of = [&](int threads) {
    return std::make_unique<sk::data::Loader<>>(
        images, sk::data::LoaderOptions{.batch = 64, .prefetch = sk::data::Prefetch::on, .prefetch_threads = threads});
  };
  const auto one = loader_of(1), two = loader_of(2);
  std::int64_t number = 0;
  std::vector<double> of_one, of_two, ratios, busy_ratios;
  epoch(*one, number++), epoch(*two, number++);  // the files come into the page cache
  for (int i = 0; i < (o.quick ? 3 : 15); ++i) {
    const bool first = i % 2 == 0;
    double seconds[2] = {0, 0}, busy[2] = {0, 0};
    for (const bool second : {!first, first}) {
      const double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
      seconds[second] = epoch(second ? *two : *one, number++);
      busy[second] = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    }
    busy_ratios.push_back(busy[1] / busy[0]);
    of_one.push_back(seconds[0]), of_two.push_back(seconds[1]), ratios.push_back(seconds[0] / seconds[1]);
  }
  Line line{.metric = "an epoch of images from a disk, two prefetch threads against one",
            .ours = 1e3 * median(of_two),
            .peer = 1e3 * median(of_one),
            .peer_name = "one thread",
            .ratio = bootstrap(ratios),
            .must = {.bound = 1.7, .at_least = true}};
  line.accepted = sk::available_cores() >= 2;
  line.add("processor time of two " + std::to_string(median(busy_ratios)) + " of one's");
  report.add(line);

  const std::vector<float> batch(128 * 784, 0.5f);  // of a data set of one's own, which a loader looks at
  std::vector<double> looks;
  float most = 0;
  for (int i = 0; i < 2000; ++i) {
    const double start = clock_seconds(CLOCK_MONOTONIC);
    most += sk::data::detail::greatest_magnitude(batch);
    looks.push_back(1e6 * (clock_seconds(CLOCK_MONOTONIC) - start));
  }
  report.add({.metric = "a look at 128 x 784 values for one that is no number",
              .ours = median(looks),
              .unit = "us",
              .must = {6.0},  // 0.005 of a LeNet step on two threads
              .note = "of sets of one's own and of map(); in the prefetch thread where there is one"});
  return report.finish(most == 1000);
}
