// SPDX-License-Identifier: Apache-2.0
// A folder of its own for a test, gone with it; whole files in and out.
#pragma once
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace support {

/// In memory, where there is such a folder, an operation takes a microsecond.
enum class Where { disk, memory };

class TemporaryFolder {
 public:
  explicit TemporaryFolder(Where where = Where::disk) {
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = where == Where::memory && std::filesystem::exists(memory);
    std::string name = ((in_memory ? memory : std::filesystem::temp_directory_path()) / "skein-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder could be made");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) all.push_back(entry.path().filename().string());
    return all;
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("no file " + path);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  const std::size_t n = std::fread(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  if (n != bytes.size()) throw std::runtime_error("short read of " + path);
  return bytes;
}
inline std::string read_text(const std::string& path) {
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline void write_file(const std::string& path, const void* bytes, std::size_t count) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) throw std::runtime_error("cannot write " + path);
  const std::size_t n = std::fwrite(bytes, 1, count, file);
  if (std::fclose(file) != 0 || n != count) throw std::runtime_error("short write of " + path);
}

}  // namespace support
