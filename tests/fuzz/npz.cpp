// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npz file, and edits of a sound one: arrays, or a
// FileError; never more memory than the limit.
#include <skein/tensor/create.hpp>
#include <skein/tensor/npz.hpp>

#include "target.hpp"

namespace {
const fuzz::Bytes& sound(skein::NpzMethod method) {
  static const auto make = [](skein::NpzMethod m) {
    fuzz::Folder folder;
    const std::string path = folder / "a.npz";
    skein::NpzWriter out(path, m);
    out.add("w", skein::ones<float>(3, 4));
    out.add("labels", skein::arange(7));
    out.set_comment("words");
    out.close();
    return fuzz::read_file(path);
  };
  static const fuzz::Bytes stored = make(skein::NpzMethod::stored), deflated = make(skein::NpzMethod::deflated);
  return method == skein::NpzMethod::stored ? stored : deflated;
}

void read(const fuzz::Bytes& bytes) {
  try {
    const skein::NpzFile file(bytes, "fuzz", 1 << 16);
    for (const std::string& name : file.names()) {
      if (!file.contains(name)) std::abort();
      try {
        if (file.get<float, 2>(name).size() > (1 << 14) + static_cast<long>(bytes.size())) std::abort();
      } catch (const skein::FileError&) {}
      try {
        (void)file.get<std::int16_t, 1>(name, skein::NpyTypes::convert);
      } catch (const skein::FileError&) {}
    }
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz") std::abort();
  }
}

void run(fuzz::Input data) {
  if (data.empty()) return;
  const fuzz::Input rest = data.subspan(1);
  if (data[0] % 3 == 0) read({rest.begin(), rest.end()});
  else read(fuzz::edited(sound(data[0] % 3 == 1 ? skein::NpzMethod::stored : skein::NpzMethod::deflated), rest));
}

std::vector<fuzz::Bytes> seeds() {
  std::vector<fuzz::Bytes> all{{1, 0, 0, 0}, {2, 5, 0, 1, 60, 1, 7}};
  for (const auto method : {skein::NpzMethod::stored, skein::NpzMethod::deflated}) {
    all.push_back({0});
    all.back().insert(all.back().end(), sound(method).begin(), sound(method).end());
  }
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(npz, run, seeds)
