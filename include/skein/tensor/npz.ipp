// SPDX-License-Identifier: Apache-2.0
// The bodies of npz.hpp.
#pragma once
#include <algorithm>

#include "npz.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE NpzFile::NpzFile(const std::string& path, std::size_t limit) : path_(path), limit_(limit) {
  const detail::File file = detail::open_file(path);
  detail::reading(path, [&] {
    bytes_.resize(static_cast<std::size_t>(detail::file_size(file.get(), path)));
    detail::read_bytes(file.get(), bytes_.data(), bytes_.size(), path);
    read_directory();
  });
}

SKEIN_INLINE std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> n;
  for (const Member& m : members_) n.push_back(m.name);
  return n;
}

SKEIN_INLINE void NpzFile::fail(std::size_t at, const std::string& what) const {
  throw FileError(path_, static_cast<long long>(at), what);
}

SKEIN_INLINE void NpzFile::check_size(const Member& m, const NpyHeader& h, std::size_t bytes_of_value) const {
  const auto values = static_cast<std::uint64_t>(h.count());  // no more than the member has bytes
  if (values <= limit_ / bytes_of_value) return;
  fail(m.begin,
       text("the array {} unpacks to {} bytes, more than the limit of {}: give load_npz a larger one (for a model: .limit)",
            in_quotes(m.name), values * bytes_of_value, limit_));
}

SKEIN_INLINE NpzFile::MemberReader::MemberReader(const NpzFile& file, const Member& m) : file_(file), member_(m) {
  if (m.method != 0 && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) file.fail(m.begin, "zlib cannot start");
}

SKEIN_INLINE NpzFile::MemberReader::~MemberReader() {
  if (member_.method != 0) inflateEnd(&stream_);
}

SKEIN_INLINE NpyHeader NpzFile::MemberReader::header() {
  const long long size = static_cast<long long>(member_.size);
  std::vector<unsigned char> start(std::min<std::size_t>(member_.size, 12));
  read(start.data(), start.size());
  const std::size_t have = start.size();
  start.resize(
      std::max(have, static_cast<std::size_t>(detail::npy_header_bytes({start.data(), start.size()}, size, where(), 0))));
  read(start.data() + have, start.size() - have);
  return detail::parse_npy_header({start.data(), start.size()}, size, where(), 0);
}

SKEIN_INLINE void NpzFile::MemberReader::read(unsigned char* to, std::size_t n) {
  if (member_.method != 0) inflate_to(to, n);
  else if (n > 0) {
    std::memcpy(to, file_.bytes_.data() + member_.begin + in_, n);
    in_ += n;
  }
  for (std::size_t i = 0; i < n; i += chunk(n - i)) crc_ = crc32(crc_, to + i, chunk(n - i));
}

SKEIN_INLINE void NpzFile::MemberReader::inflate_to(unsigned char* to, std::size_t n) {
  for (std::size_t out = 0; out < n;) {
    const uInt give = chunk(member_.packed - in_), take = chunk(n - out);
    stream_.next_in = const_cast<unsigned char*>(file_.bytes_.data() + member_.begin + in_);
    stream_.avail_in = give;
    stream_.next_out = to + out;
    stream_.avail_out = take;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    in_ += give - stream_.avail_in;
    out += take - stream_.avail_out;
    if (status != Z_OK && !(status == Z_STREAM_END && out == n)) refuse();
  }
}

SKEIN_INLINE void NpzFile::MemberReader::refuse() const {
  file_.fail(member_.begin + in_,
             "the deflated array " + in_quotes(member_.name) + " is damaged, or not as long as the directory says");
}

SKEIN_INLINE void NpzFile::MemberReader::finish() {
  if (member_.method != 0) {
    unsigned char more = 0;
    stream_.next_in = const_cast<unsigned char*>(file_.bytes_.data() + member_.begin + in_);
    stream_.avail_in = chunk(member_.packed - in_);
    stream_.next_out = &more;
    stream_.avail_out = 1;
    const uInt given = stream_.avail_in;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    in_ += given - stream_.avail_in;
    if (status != Z_STREAM_END || stream_.avail_out == 0 || in_ != member_.packed) refuse();
  }
  if (crc_ != member_.crc)
    file_.fail(member_.begin, "the array " + in_quotes(member_.name) + " is damaged: its checksum differs");
}

SKEIN_INLINE std::uint64_t NpzFile::number(std::size_t at, int width) const {
  std::uint64_t n = 0;
  for (int i = width - 1; i >= 0; --i) n = n << 8 | bytes_[at + static_cast<std::size_t>(i)];
  return n;
}

SKEIN_INLINE std::vector<long> NpzFile::shape(std::string_view name) const {
  return MemberReader(*this, find(name)).header().extents;
}

SKEIN_INLINE const NpzFile::Member& NpzFile::find(std::string_view name) const {
  if (const auto place = places_.find(name); place != places_.end()) return members_[place->second];
  throw FileError(path_, -1, "has no array " + in_quotes(name));
}

SKEIN_INLINE void NpzFile::read_directory() {
  const std::size_t size = bytes_.size();
  std::size_t end = size;  // of the search, then the place of the end record
  const std::size_t lowest = size > 65557 ? size - 65557 : 0;
  bool found = false;
  for (std::size_t at = size >= 22 ? size - 22 : 0; size >= 22 && !found; --at) {
    found = number(at, 4) == 0x06054b50 && number(at + 20, 2) == size - at - 22;
    if (found) end = at;
    if (at == lowest) break;
  }
  if (!found) fail(size, "is no .npz file, or cut off: the end record of a zip archive is missing");
  comment_.assign(bytes_.begin() + static_cast<std::ptrdiff_t>(end + 22), bytes_.end());
  const std::uint64_t count = number(end + 10, 2), length = number(end + 12, 4), begin = number(end + 16, 4);
  if (number(end + 4, 2) != 0 || number(end + 6, 2) != 0 || number(end + 8, 2) != count)
    fail(end + 4, "is a zip archive in several parts");
  if (begin > end || length != end - begin)
    fail(end + 12, "the zip directory is claimed to be where it cannot be (zip64 directories are not read)");
  std::size_t at = static_cast<std::size_t>(begin);
  for (std::uint64_t i = 0; i < count; ++i) at = read_member(at, end, static_cast<std::size_t>(begin));
  if (at != end) fail(at, "the zip directory is longer than its entries");
}

SKEIN_INLINE std::size_t NpzFile::read_member(std::size_t at, std::size_t end, std::size_t data_end) {
  if (end - at < 46 || number(at, 4) != 0x02014b50) fail(at, "the zip directory ends early, or is damaged");
  const std::size_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2), entry = at;
  if (end - at - 46 < name + extra + comment) fail(at + 28, "an entry of the zip directory is longer than the directory");
  Member m;
  m.name.assign(reinterpret_cast<const char*>(bytes_.data() + at + 46), name);
  m.method = static_cast<int>(number(at + 10, 2));
  m.crc = static_cast<unsigned long>(number(at + 16, 4));
  std::uint64_t packed = number(at + 20, 4), size = number(at + 24, 4), local = number(at + 42, 4);
  read_zip64(at + 46 + name, extra, size, packed, local);
  at += 46 + name + extra + comment;
  if (number(entry + 8, 2) & 1) fail(entry + 8, "the array " + in_quotes(m.name) + " is encrypted");
  if (m.method != 0 && m.method != 8)
    fail(entry + 10,
         skein::text("the array {} is packed by method {}: stored and deflated are read", in_quotes(m.name), m.method));
  if (local > data_end || data_end - local < 30 || number(static_cast<std::size_t>(local), 4) != 0x04034b50)
    fail(entry + 42, "the array " + in_quotes(m.name) + " is claimed to be where it cannot be");
  const std::size_t head = static_cast<std::size_t>(local), head_name = number(head + 26, 2), head_extra = number(head + 28, 2);
  if (data_end - head - 30 < head_name + head_extra || data_end - head - 30 - head_name - head_extra < packed)
    fail(entry + 20, "the array " + in_quotes(m.name) + " is claimed to be longer than the file");
  if (head_name != name || std::memcmp(bytes_.data() + head + 30, m.name.data(), name) != 0)
    fail(head + 30, "directory and array differ in the name " + in_quotes(m.name));
  m.begin = head + 30 + head_name + head_extra;
  m.packed = static_cast<std::size_t>(packed);
  m.size = static_cast<std::size_t>(size);
  if (m.method == 0 && size != packed) fail(entry + 24, "the stored array " + in_quotes(m.name) + " has two sizes");
  if (size / 1032 > packed)
    fail(entry + 24,
         skein::text("the array {} claims {} bytes: deflate cannot pack that into {}", in_quotes(m.name), size, packed));
  if (m.name.size() > 4 && m.name.ends_with(".npy")) m.name.resize(m.name.size() - 4);
  if (!places_.try_emplace(m.name, members_.size()).second) fail(entry + 46, "has two arrays " + in_quotes(m.name));
  members_.push_back(std::move(m));
  return at;
}

SKEIN_INLINE void NpzFile::read_zip64(std::size_t at, std::size_t length, std::uint64_t& size, std::uint64_t& packed,
                                      std::uint64_t& local) const {
  const std::size_t end = at + length;
  while (end - at >= 4) {
    const std::size_t id = number(at, 2), n = number(at + 2, 2);
    at += 4;
    if (end - at < n) fail(at - 2, "an extra field of the zip directory is longer than its entry");
    if (id == 1) {
      std::size_t field = at;
      for (std::uint64_t* value : {&size, &packed, &local})
        if (*value == 0xffffffffu) {
          if (at + n - field < 8) fail(field, "the zip64 field is too short");
          *value = number(field, 8);
          field += 8;
        }
    }
    at += n;
  }
}

SKEIN_INLINE NpzWriter::NpzWriter(const std::string& path, NpzMethod method)
    : path_(path), method_(method), file_(std::make_unique<AtomicFile>(path)) {
  detail::demand_value("NpzWriter", "its method", method);
}

SKEIN_INLINE NpzWriter::~NpzWriter() {
  if (std::uncaught_exceptions() > exceptions_) return;  // half a file is none
  try {
    close();
  } catch (...) {}
}

SKEIN_INLINE void NpzWriter::close() {
  if (!file_) return;
  const std::uint64_t begin = at_, count = names_.size();
  write(directory_);
  std::string end;
  append(end, 0x06054b50, 4);
  append(end, 0, 4);
  append(end, count, 2);
  append(end, count, 2);
  append(end, directory_.size(), 4);
  append(end, begin, 4);
  append(end, comment_.size(), 2);
  write(end + comment_);
  const std::unique_ptr<AtomicFile> file = std::move(file_);
  file->commit();
}

SKEIN_INLINE void NpzWriter::set_comment(std::string text) {
  if (text.size() > 0xffff)
    throw ArgumentError(skein::text("npz: a comment of {} bytes: the end of a zip archive holds 65535", text.size()));
  comment_ = std::move(text);
}

SKEIN_INLINE void NpzWriter::append(std::string& to, std::uint64_t n, int width) {
  for (int i = 0; i < width; ++i, n >>= 8) to += static_cast<char>(n & 0xff);
}

SKEIN_INLINE void NpzWriter::write(const std::string& bytes) {
  file_->append(bytes.data(), bytes.size());
  at_ += bytes.size();
}

SKEIN_INLINE std::string NpzWriter::deflated(const std::string& plain) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("npz: zlib cannot start");
  std::string packed(deflateBound(&z, static_cast<uLong>(plain.size())), '\0');
  z.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<unsigned char*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  if (status != Z_STREAM_END) throw Error("npz: zlib cannot pack an array");
  return packed;
}

SKEIN_INLINE void NpzWriter::check_fits(const std::string& name, std::uint64_t bytes) const {
  if (name.size() > 0xffff || names_.size() == 0xffff)
    throw FileError(path_, static_cast<long long>(at_),
                    "cannot take another array: .npz files have up to 65535, of names up to 65535 bytes (without .npy)");
  if (bytes <= 0xf0000000u && at_ + bytes + 2 * name.size() + 128 + directory_.size() <= 0xffff0000u) return;
  throw FileError(path_, static_cast<long long>(at_),
                  "cannot take the array " + in_quotes(name) +
                      ": .npz files are written up to 4 GiB: give a part of the arrays another file");
}

SKEIN_INLINE void NpzWriter::put(const std::string& name, const std::string& plain) {
  if (!file_) throw FileError(path_, -1, "is closed already");
  if (name == ".npy")
    throw ArgumentError("npz: an array for " + path_ + " has an empty name: no reader finds it by that; give it one");
  if (names_.count(name))
    throw ArgumentError("npz: " + path_ + " has an array " + in_quotes(name.substr(0, name.size() - 4)) +
                        " already: give each a name of its own");
  check_fits(name, method_ == NpzMethod::stored || plain.size() > 0xf0000000u ? plain.size() : 0);
  const std::string packed = method_ == NpzMethod::deflated ? deflated(plain) : plain;
  check_fits(name, packed.size());
  const std::uint64_t begin = at_;
  const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  std::string common;  // what the local header and the directory share
  append(common, 20, 2);
  append(common, is_ascii ? 0 : 0x800, 2);  // the name is in UTF-8
  append(common, method_ == NpzMethod::deflated ? 8 : 0, 2);
  append(common, 0, 2);
  append(common, 0x21, 2);  // 1 January 1980: files do not depend on the clock
  append(common, crc32(0, reinterpret_cast<const unsigned char*>(plain.data()), static_cast<uInt>(plain.size())), 4);
  append(common, packed.size(), 4);
  append(common, plain.size(), 4);
  append(common, name.size(), 2);
  append(common, 0, 2);
  std::string head;
  append(head, 0x04034b50, 4);
  write(head + common + name);
  write(packed);
  append(directory_, 0x02014b50, 4);
  append(directory_, 20, 2);
  directory_ += common;
  append(directory_, 0, 6);  // no comment, the first disk, no kind of text
  append(directory_, 0, 4);  // no attributes
  append(directory_, begin, 4);
  directory_ += name;
  names_.insert(name);
}

}  // namespace skein::inline SKEIN_ABI
