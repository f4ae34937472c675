// SPDX-License-Identifier: Apache-2.0
// Commits as a training writes them, of given values, and the same bytes written over a file in place.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <skein/train/checkpoint.hpp>
#include <skein/train/commit_folder.hpp>

namespace bench {

/// A commit of one rank: the values, the first and last of which become the step's number, and an object.
inline void write_commit(const std::string& path, std::int64_t step, std::vector<float>& values, int keep = 3) {
  namespace st = skein::train;
  st::CommitFolder folder(path);
  folder.lock();
  values.front() = values.back() = static_cast<float>(step);
  st::CheckpointWriter shard;
  shard.add("parameters/0.weight", std::span<const float>(values));
  shard.add_object("place", step);
  const std::vector<st::WrittenFile> written{folder.write_shard(step, 0, shard)};
  folder.publish(step, written, {}, keep);
}

/// Can the commit be read, with every hash; and is it that of the step.
inline bool is_whole(const std::string& path, std::int64_t step, std::size_t count) {
  namespace st = skein::train;
  try {
    st::CheckpointReader reader(st::CommitFolder(path).commit(step));
    std::vector<float> values(count);
    std::int64_t place = -1;
    reader.read("parameters/0.weight", std::span<float>(values));
    reader.read_object("place", place);
    reader.finish();
    return place == step && values.front() == static_cast<float>(step) && values.back() == values.front();
  } catch (const skein::FileError&) { return false; }
}

/// Does the reader take the file. What is no FileError goes on to the caller.
inline bool opens(const std::string& path, skein::train::Verify verify) {
  try {
    const skein::train::CheckpointReader reader(path, verify);
    return true;
  } catch (const skein::FileError&) { return false; }
}

/// Writes a checkpoint of about so many bytes, in several sections, and returns what is in the file.
inline std::vector<char> checkpoint_bytes(const std::string& path, std::size_t bytes) {
  std::vector<float> weights(bytes / 8);
  std::vector<double> sums(bytes / 16);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) * 0.37f;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(i) * 0.11;
  skein::train::CheckpointWriter writer;
  writer.add("parameters/0.weight", std::span<const float>(weights));
  writer.add("sums", std::span<const double>(sums));
  writer.add_object("history", std::string("loss 0.25"));
  writer.commit(path);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// What a commit is not: the file is opened, emptied and written again, in pieces of a megabyte, as streams do.
inline void write_in_place(const std::string& path, const std::vector<char>& bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file, bytes.data() + done, std::min<std::size_t>(bytes.size() - done, 1 << 20));
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  ::fsync(file);
  ::close(file);
}

}  // namespace bench
