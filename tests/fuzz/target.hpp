// SPDX-License-Identifier: Apache-2.0
// What each fuzz target is: a function of any bytes, which throws nothing and aborts on a finding, and seeds, sound inputs that
// it makes itself. SKEIN_FUZZ_TARGET makes clang's libFuzzer call it; with -DSKEIN_FUZZ_REPLAY it enters it in a list, which
// support/fuzz_replay.cpp runs without libFuzzer: on each seed, its prefixes and random changes of it, and on what corpus/ keeps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

using Bytes = std::vector<std::uint8_t>;
using Input = std::span<const std::uint8_t>;

struct Target {
  const char* name;
  void (*run)(Input);
  std::vector<Bytes> (*seeds)();
};

inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}
struct Entry {
  explicit Entry(const Target& t) { targets().push_back(t); }
};

inline std::string_view words(Input bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline Bytes bytes_of(std::string_view words) { return {words.begin(), words.end()}; }
inline Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  return {text.begin(), text.end()};
}

/// A sound input with three bytes an edit: where (two), what.
inline Bytes edited(Bytes sound, Input edits) {
  for (; edits.size() >= 3 && !sound.empty(); edits = edits.subspan(3))
    sound[(edits[0] | static_cast<std::size_t>(edits[1]) << 8) % sound.size()] = edits[2];
  return sound;
}

/// A place for files, in memory where there is /dev/shm (a disk writes a truncated file out when it is closed: 3 ms a run).
class Folder {
 public:
  Folder() {
    for (const char* parent : {"/dev/shm", "/tmp"}) {
      path_ = std::string(parent) + "/skein-fuzz-XXXXXX";
      if (::mkdtemp(path_.data())) return;
    }
    std::abort();
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    for (const std::string& file : files_) (void)std::remove(file.c_str());
    (void)std::remove(path_.c_str());
  }
  std::string operator/(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }
  std::string path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

/// The inputs that are kept of earlier runs, one a line in hexadecimal digits: between them they reach what those runs have
/// reached (keep.py makes the files).
inline std::vector<Bytes> kept(const char* target) {
  std::vector<Bytes> all;
  std::ifstream lines(std::string(SKEIN_FUZZ_CORPUS "/") + target + ".hex");
  for (std::string line; std::getline(lines, line);) {
    Bytes& bytes = all.emplace_back();
    for (std::size_t at = 0; at + 1 < line.size(); at += 2)
      bytes.push_back(static_cast<std::uint8_t>(std::stoi(line.substr(at, 2), nullptr, 16)));
  }
  return all;
}

inline void write_file(const std::string& path, Input bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// libFuzzer reads its corpus from a folder: the seeds and what is kept are written to the one that SKEIN_FUZZ_SEEDS names.
inline void write_seeds(const Target& t) {
  const char* const folder = std::getenv("SKEIN_FUZZ_SEEDS");
  if (!folder) return;
  int number = 0;
  for (const Bytes& seed : t.seeds()) write_file(std::string(folder) + "/seed" + std::to_string(number++), seed);
  for (const Bytes& input : kept(t.name)) write_file(std::string(folder) + "/kept" + std::to_string(number++), input);
}

}  // namespace fuzz

#ifdef SKEIN_FUZZ_REPLAY
#define SKEIN_FUZZ_TARGET(name, run, seeds) [[maybe_unused]] static const fuzz::Entry entry_of_##name({#name, &(run), &(seeds)});
#else
#define SKEIN_FUZZ_TARGET(name, run, seeds)                                           \
  extern "C" int LLVMFuzzerInitialize(int*, char***) {                                \
    fuzz::write_seeds({#name, &(run), &(seeds)});                                     \
    return 0;                                                                         \
  }                                                                                   \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    (run)(fuzz::Input(data, size));                                                   \
    return 0;                                                                         \
  }
#endif
