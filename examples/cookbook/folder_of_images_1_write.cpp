// SPDX-License-Identifier: Apache-2.0
// Writes 2,000 drawn digits as gray images (PGM), a folder for each class: stands for data that one has. The next program reads
// them.
#include <skein/skein.hpp>

#include <filesystem>
#include <fstream>
#include <string>
namespace sk = skein;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    for (std::int64_t i = 0; i < digits.size(); ++i) {
      const std::string folder = "images/" + std::to_string(digits.label(i));
      std::filesystem::create_directories(folder);
      std::ofstream file(folder + "/" + std::to_string(i) + ".pgm", std::ios::binary);
      file << "P5 28 28 255\n";
      file.write(reinterpret_cast<const char*>(digits.stored(i)), 28 * 28);  // bytes as they are stored, not normalised
    }
  });
}
