// SPDX-License-Identifier: Apache-2.0
// Images on disk, a folder for each class (images/0/*.pgm, images/1/*.pgm, ...), read when a batch needs them.
#include <skein/skein.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>
namespace sk = skein;

// [quote set]
/// Gray images of 28 x 28 pixels. The name of an image's folder is its class.
class Images {
 public:
  explicit Images(const std::string& root) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().extension() == ".pgm")
        files_.emplace_back(entry.path(), std::stoi(entry.path().parent_path().filename().string()));
    std::sort(files_.begin(), files_.end());  // the same order on every rank
  }
  std::int64_t size() const { return static_cast<std::int64_t>(files_.size()); }
  sk::Extents sample_extents() const { return {3, {28, 28, 1}}; }  // height, width, channels
  sk::data::Target target() const { return sk::data::Target::labels(10); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {  // called for each sample of each epoch
    const auto& [path, of_class] = files_[static_cast<std::size_t>(i)];
    std::ifstream file(path, std::ios::binary);
    std::string magic;
    int width = 0, height = 0, most = 0;
    file >> magic >> width >> height >> most;
    file.get();  // one blank after the header
    for (float& value : x) value = static_cast<float>(file.get()) / 255;
    if (!file || magic != "P5" || width != 28 || height != 28) throw sk::Error(path.string() + " is no image of 28 x 28 pixels");
    label = of_class;
  }

 private:
  std::vector<std::pair<std::filesystem::path, int>> files_;
};
// [end]

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const Images images("images");
    const auto [train, test] = sk::data::split(images, 0.8, sk::Seed{1});
    sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
    const sk::History history = trainer.fit(train, {.epochs = 4, .batch = 50, .validate = test, .progress = false});
    std::printf("%ld images, test accuracy %.1f %%\n", static_cast<long>(images.size()),
                100 * history.back().validation.accuracy);
  });
}
