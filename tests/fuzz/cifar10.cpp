// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of CIFAR-10's binary version, as they are, behind whole records, and within a gzip file: images, or a
// FileError.
#include <skein/data/cifar10.hpp>

#include "target.hpp"

namespace {
void run(fuzz::Input data) {
  if (data.empty()) return;
  static fuzz::Folder folder;
  static const std::string path = folder / "batch.bin";
  const std::size_t records = data[0] & 3;
  fuzz::Bytes bytes(3073 * records, 7);
  bytes.insert(data[0] & 4 ? bytes.begin() : bytes.end(), data.begin() + 1, data.end());
  fuzz::write_file(path, bytes);
  try {
    const auto set = skein::data::read_cifar10({path}, 1 << 20);
    if (set.size() < 1 || set.size() > (1 << 20) / 3073) std::abort();
  } catch (const skein::FileError& e) {
    if (e.path() != path) std::abort();
  }
}

std::vector<fuzz::Bytes> seeds() {
  const fuzz::Bytes zipped{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xed, 0xc1, 1, 1, 0, 0, 0, 0x80, 0x90, 0xfe, 0xaf, 0xee, 8};
  std::vector<fuzz::Bytes> all{{1}, {2}, {1, 3}};
  all.push_back({0});
  all.back().insert(all.back().end(), zipped.begin(), zipped.end());
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(cifar10, run, seeds)
