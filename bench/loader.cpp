// SPDX-License-Identifier: Apache-2.0
// Images a second through a loader: PNG files in a folder for each class, the same packed into .npy files, and into a compressed
// HDF5 file; and the share of a training step that waits for its batch, of packed images. The files are in the page cache, as
// they are from the second epoch on.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <skein/data/hdf5_set.hpp>
#include <skein/data/image_folder.hpp>
#include <skein/data/npy_pair.hpp>
#include <skein/data/write_image_folder.hpp>
#include <skein/skein.hpp>

#include "support/report.hpp"
#include "support/slices.hpp"
#include "support/statistics.hpp"

namespace {
using namespace bench;
namespace sk = skein;
namespace nn = skein::nn;

constexpr int side = 64;
constexpr long batch = 64;

/// Images of 64 x 64 in colours that a PNG file shrinks as it does photographs: smooth, with noise.
auto drawn(std::int64_t count) {
  std::vector<std::uint8_t> x(static_cast<std::size_t>(count * side * side * 3));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const auto at = static_cast<std::int64_t>(k);
    const double u = static_cast<double>(at / 3 % side) / side, v = static_cast<double>(at / (3 * side) % side) / side;
    const auto image = static_cast<double>(at / (3 * side * side));
    const double noise = 8 * static_cast<double>(sk::random_uniform(1, 2, static_cast<std::uint64_t>(k)));
    x[k] = static_cast<std::uint8_t>(120 + 100 * std::sin(5 * u + image) * std::cos(4 * v + static_cast<double>(at % 3)) + noise);
  }
  return sk::data::from_tensors(x, sk::Extents{3, {side, side, 3}}, labels);
}

/// Seconds of an epoch whose batches nobody uses.
double epoch(sk::data::Loader<>& loader, std::int64_t number) {
  const double start = clock_seconds(CLOCK_MONOTONIC);
  std::int64_t seen = 0;
  for (const auto& b : loader.epoch(number)) seen += b.count;
  if (seen != loader.dataset().size()) throw sk::Error("an epoch did not serve every sample once");
  return clock_seconds(CLOCK_MONOTONIC) - start;
}

using Net =
    nn::Sequential<nn::Conv2d<16, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::Relu,
                   nn::Conv2d<32, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::Relu, nn::GlobalAvgPool, nn::Linear<10>>;

/// The share of an epoch's seconds in which the training on `threads` threads waits for a batch.
template <class Set> double waiting(const Set& set, int threads, int epochs) {
  sk::Model<Net, sk::Shape<side, side, 3>> model{sk::Seed{1}};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = batch, .threads = threads}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Sgd{.lr = 0.01f}, model};
  sk::data::Loader<> loader(set, {.batch = batch});
  std::vector<double> shares;
  for (int e = 0; e <= epochs; ++e) {
    const double waited = loader.waited(), start = clock_seconds(CLOCK_MONOTONIC);
    for (const auto& b : loader.epoch(e)) {
      (void)executor.forward_backward(b);
      optimizer.step(model);
    }
    if (e > 0) shares.push_back((loader.waited() - waited) / (clock_seconds(CLOCK_MONOTONIC) - start));
  }
  return median(shares);
}
}  // namespace

int main(int argc, char** argv) {
  const Options o = options(argc, argv);
  Report report("loader", o);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("skein_loader_" + std::to_string(::getpid()));
  const struct Removed {
    const std::filesystem::path& path;
    ~Removed() { std::filesystem::remove_all(path); }
  } removed{folder};
  const auto images = drawn(o.quick ? 1000 : 4000);
  sk::data::write_image_folder(images, folder / "images");
  const sk::data::ImageFolder loose((folder / "images").string());
  sk::data::to_npy(loose, folder / "x.npy", folder / "y.npy");
  sk::data::to_hdf5(loose, folder / "set.h5");
  const auto packed = sk::data::from_npy(folder / "x.npy", folder / "y.npy");
  const sk::data::Hdf5Set compressed((folder / "set.h5").string());
  std::uintmax_t of_files = 0;
  for (std::int64_t i = 0; i < loose.size(); ++i) of_files += std::filesystem::file_size(loose.path(i));
  const auto count = static_cast<std::uintmax_t>(images.size());
  report.say(std::to_string(images.size()) + " images of 64 x 64 in colours, batches of 64, one thread: PNG files of " +
             std::to_string(of_files / count / 1024) + " KiB on average, packed 12 KiB each, HDF5 " +
             std::to_string(std::filesystem::file_size(folder / "set.h5") / count / 1024) + " KiB");
  const auto loader_of = [](const auto& set) {
    return std::make_unique<sk::data::Loader<>>(set,
                                                sk::data::LoaderOptions{.batch = batch, .prefetch = sk::data::Prefetch::off});
  };
  const auto files_loader = loader_of(loose);
  const auto against_files = [&](auto& other, const std::string& what, Goal must) {
    std::vector<double> files, packs, ratios;
    for (int i = 0; i <= (o.quick ? 4 : 15); ++i) {
      double seconds[2];
      for (const bool second : {i % 2 == 1, i % 2 == 0}) seconds[second] = epoch(second ? other : *files_loader, i);
      if (i == 0) continue;  // the files come into the page cache
      files.push_back(1e6 * seconds[0] / static_cast<double>(images.size()));
      packs.push_back(1e6 * seconds[1] / static_cast<double>(images.size()));
      ratios.push_back(seconds[0] / seconds[1]);
    }
    report.add({.metric = "time of an image, " + what + ", beside PNG files",
                .ours = median(packs),
                .peer = median(files),
                .peer_name = "PNG files",
                .unit = "us",
                .ratio = bootstrap(ratios),
                .must = must,
                .note = "the ratio is images a second over those of PNG files"});
  };
  against_files(*loader_of(packed), "packed in .npy files", {.bound = 5, .at_least = true});
  against_files(*loader_of(compressed), "packed in an HDF5 file", {});
  const int threads = std::max(1, sk::available_cores() - 1);
  report.add({.metric = "share of a step that waits for its batch, packed in .npy files",
              .ours = 100 * waiting(packed, threads, o.quick ? 3 : 9),
              .unit = "%",
              .must = {2.0},
              .note = "a small convolutional network, one core left to the loader"});
  return report.finish();
}
