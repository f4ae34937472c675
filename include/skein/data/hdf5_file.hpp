// SPDX-License-Identifier: Apache-2.0
// Arrays of HDF5 files, opened, read by rows and written: what hdf5_set.hpp needs of the library, and the only place that
// includes it; empty in a program that does not link skein::hdf5. The library of most systems is not safe for threads: one call
// at a time.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../core/atomic_file.hpp"
#include "../core/no_size_signal.hpp"
#include "set_blocks.hpp"

#ifndef SKEIN_WITH_HDF5
#define SKEIN_WITH_HDF5 0
#endif

#if SKEIN_WITH_HDF5
#include <hdf5.h>

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

/// Recursive: an object may be closed within a call and without one.
inline std::recursive_mutex& hdf5_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// The library closes what is open when the program ends, and crashes there if it could not close a file before, as of a full
/// disk. So that is left to us, where nobody has called the library yet, and not done after such a failure.
inline bool hdf5_failed_to_close = false;
inline bool close_hdf5_at_exit() {
  const auto close = [] { (void)(hdf5_failed_to_close || ::H5close() >= 0); };
  return ::H5dont_atexit() >= 0 && std::atexit(close) == 0;
}

/// The mutex; and while it lives the library's own lines on the terminal are switched off, and the signal of too large files.
class Hdf5Quiet {
 public:
  Hdf5Quiet() : lock_(hdf5_mutex()) {
    [[maybe_unused]] static const bool first = close_hdf5_at_exit();
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Hdf5Quiet(const Hdf5Quiet&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  skein::detail::NoSizeSignal no_signal_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// An object of the library, closed at the end.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() { (void)close(); }
  hid_t get() const { return id_; }
  /// Negative where the library says that it failed, as where the last bytes of a file cannot be written.
  herr_t close() {
    if (id_ < 0) return 0;
    const Hdf5Quiet quiet;
    const herr_t result = close_(std::exchange(id_, -1));
    hdf5_failed_to_close = hdf5_failed_to_close || result < 0;
    return result;
  }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// Calls of the library for a file, whose failures are FileErrors.
class Hdf5Call {
 public:
  explicit Hdf5Call(const std::string& path) : path_(path) {}
  /// An object that was made. Throws FileError with what the library says where it was not.
  Hdf5Handle made(hid_t id, herr_t (*close)(hid_t), const std::string& what) const {
    if (id < 0) fail(what);
    return {id, close};
  }
  void done(herr_t result, const std::string& what) const {
    if (result < 0) fail(what);
  }
  [[noreturn]] void fail(const std::string& what) const {
    std::string reason;
    const auto note = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
      if (error->desc) *static_cast<std::string*>(to) = error->desc;  // the innermost comes last
      return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note, &reason);
    throw FileError(path_, -1, what + (reason.empty() ? "" : ": " + reason));
  }

 private:
  const std::string& path_;
  Hdf5Quiet quiet_;
};

/// One array of a file, open to be read by rows.
class Hdf5Array {
 public:
  /// Throws FileError where the file has no such array of numbers, or a row or a chunk of it takes more bytes than the limit.
  Hdf5Array(const std::string& path, const std::string& name, std::uint64_t limit)
      : path_(path), name_(name), open_(open(path, name)) {
    const Hdf5Call call(path_);
    const Hdf5Handle space = call.made(H5Dget_space(id()), H5Sclose, "has an array '" + name_ + "' without extents");
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 1 || rank > 5)
      throw FileError(path_, -1,
                      "has in '" + name_ + "' an array of " + std::to_string(rank) +
                          " extents: a data set has that of the samples, and one to four of each sample");
    extents_.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space.get(), extents_.data(), nullptr);
    for (const hsize_t e : extents_)
      if (e < 1 || e > static_cast<hsize_t>(std::numeric_limits<int>::max()))
        throw FileError(path_, -1,
                        "has in '" + name_ + "' an extent of " + std::to_string(e) + ": from 1 to " +
                            std::to_string(std::numeric_limits<int>::max()) + " are read");
    const Hdf5Handle type = call.made(H5Dget_type(id()), H5Tclose, "has an array '" + name_ + "' without a type");
    class_ = H5Tget_class(type.get());
    if (class_ != H5T_INTEGER && class_ != H5T_FLOAT)
      throw FileError(path_, -1, "has in '" + name_ + "' an array of other than numbers");
    check_sizes(limit);
    bytes_ = class_ == H5T_INTEGER && H5Tget_size(type.get()) == 1 && H5Tget_sign(type.get()) == H5T_SGN_NONE;
  }
  Hdf5Array(const Hdf5Array&) = delete;
  const std::vector<hsize_t>& extents() const { return extents_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(extents_[0]); }
  bool integers() const { return class_ == H5T_INTEGER; }
  bool bytes() const { return bytes_; }

  /// Rows [first, first + count), dense, as the type of `to`: std::uint8_t, float or std::int64_t.
  template <class Value> void read(std::int64_t first, std::int64_t count, Value* to) const {
    const hid_t type = std::is_same_v<Value, float>          ? H5T_NATIVE_FLOAT
                       : std::is_same_v<Value, std::uint8_t> ? H5T_NATIVE_UINT8
                                                             : H5T_NATIVE_INT64;
    const Hdf5Call call(path_);
    const Hdf5Handle all = call.made(H5Dget_space(id()), H5Sclose, "cannot be read");
    std::vector<hsize_t> begin(extents_.size(), 0), size = extents_;
    begin[0] = static_cast<hsize_t>(first), size[0] = static_cast<hsize_t>(count);
    call.done(H5Sselect_hyperslab(all.get(), H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr), "cannot be read");
    const Hdf5Handle here =
        call.made(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose, "cannot be read");
    call.done(H5Dread(id(), type, here.get(), all.get(), H5P_DEFAULT, to), "is damaged: rows " + std::to_string(first) + " to " +
                                                                               std::to_string(first + count - 1) + " of '" +
                                                                               name_ + "' cannot be read");
  }

 private:
  struct Open {
    Hdf5Handle file, array;  // the array is closed first
  };
  static herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) { return -1; }
  static Open open(const std::string& path, const std::string& name) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) throw FileError(path, -1, "is no plain file");
    const Hdf5Call call(path);
    Hdf5Handle file = call.made(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "cannot be opened as an HDF5 file");
    const Hdf5Handle how = call.made(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "cannot be read");
    H5Pset_elink_cb(how.get(), refuse_link, nullptr);
    const hid_t array = H5Dopen2(file.get(), name.c_str(), how.get());
    return {std::move(file), call.made(array, H5Dclose, "has no array '" + name + "' (links into other files are not followed)")};
  }
  hid_t id() const { return open_.array.get(); }
  /// A row is read as up to 8 bytes a value, and the library holds a whole chunk.
  void check_sizes(std::uint64_t limit) const {
    const auto check = [&](const hsize_t* extents, std::size_t n, const char* what) {
      std::uint64_t fit = limit / 8;
      for (std::size_t i = 0; i < n; ++i) fit /= std::max<hsize_t>(extents[i], 1);
      if (fit == 0)
        throw FileError(
            path_, -1,
            "has in '" + name_ + "' " + what + " of more than " + std::to_string(limit) + " bytes: give Hdf5Set a larger .limit");
    };
    check(extents_.data() + 1, extents_.size() - 1, "samples");
    const Hdf5Handle how(H5Dget_create_plist(id()), H5Pclose);
    if (how.get() >= 0 && (H5Pget_layout(how.get()) == H5D_VIRTUAL || H5Pget_external_count(how.get()) > 0))
      throw FileError(path_, -1,
                      "has in '" + name_ + "' an array whose values are in other files, which it names: copy them into this one");
    std::vector<hsize_t> chunk(extents_.size());
    if (how.get() >= 0 && H5Pget_layout(how.get()) == H5D_CHUNKED &&
        H5Pget_chunk(how.get(), static_cast<int>(chunk.size()), chunk.data()) == static_cast<int>(chunk.size()))
      check(chunk.data(), chunk.size(), "chunks");
  }

  std::string path_, name_;
  Open open_;
  std::vector<hsize_t> extents_;
  H5T_class_t class_ = H5T_NO_CLASS;
  bool bytes_ = false;
};

/// A file that is written beside its place, as PATH.partial.h5, and gets its name when it is whole, as AtomicFile does it. One of
/// these, which stays empty, looks at the place and keeps other writers away: the library opens files by their names alone.
class NewHdf5File {
 public:
  explicit NewHdf5File(const std::string& path) : place_(path), partial_(place_.path() + ".partial.h5"), file_(make(partial_)) {
    struct stat old {};
    if (::stat(place_.path().c_str(), &old) == 0) (void)::chmod(partial_.c_str(), old.st_mode & 0777);
  }
  NewHdf5File(const NewHdf5File&) = delete;
  ~NewHdf5File() {
    (void)file_.close();                     // what was committed has another name now
    (void)!::truncate(partial_.c_str(), 0);  // the library keeps a file open that it cannot close, and the disk may be full
    ::unlink(partial_.c_str());
  }
  hid_t id() const { return file_.get(); }
  const std::string& path() const { return partial_; }
  /// The file is closed, and takes the place of the old one. Throws FileError; then the old one stays.
  void commit() {
    const Hdf5Call call(partial_);
    call.done(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), "cannot be written");
    call.done(file_.close(), "cannot be written");
    const int file = ::open(partial_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = file >= 0 && ::fsync(file) == 0;
    const int error = errno;
    if (file >= 0) ::close(file);
    if (!synced) throw FileError(partial_, -1, "cannot be brought to the disk (fsync)", error);
    if (::rename(partial_.c_str(), place_.path().c_str()) != 0)
      throw FileError(partial_, -1, "cannot be renamed to its final name", errno);
    skein::detail::sync_folder(skein::detail::parent_of(place_.path()));
  }

 private:
  static Hdf5Handle make(const std::string& path) {
    const Hdf5Call call(path);
    ::unlink(path.c_str());  // of a writer that was killed
    return call.made(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose, "cannot be written");
  }

  AtomicFile place_;
  std::string partial_;
  Hdf5Handle file_;
};

/// An array that is written by rows, in chunks of so many, compressed.
class Hdf5Writer {
 public:
  Hdf5Writer(const std::string& path, hid_t file, const std::string& name, hid_t type, const std::vector<long>& extents,
             long chunk, int level)
      : path_(path), type_(type), extents_(extents.begin(), extents.end()),
        array_(make(path, file, name, type, extents_, chunk, level)) {}

  void write(std::int64_t first, std::int64_t count, const void* values) {
    const Hdf5Call call(path_);
    std::vector<hsize_t> begin(extents_.size(), 0), size = extents_;
    begin[0] = static_cast<hsize_t>(first), size[0] = static_cast<hsize_t>(count);
    const Hdf5Handle all = call.made(H5Dget_space(array_.get()), H5Sclose, "cannot be written");
    call.done(H5Sselect_hyperslab(all.get(), H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr), "cannot be written");
    const Hdf5Handle here =
        call.made(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose, "cannot be written");
    call.done(H5Dwrite(array_.get(), type_, here.get(), all.get(), H5P_DEFAULT, values), "cannot be written");
  }
  /// What is still in memory is written. Throws FileError.
  void close() {
    const Hdf5Call call(path_);
    call.done(array_.close(), "cannot be written");
  }

 private:
  static Hdf5Handle make(const std::string& path, hid_t file, const std::string& name, hid_t type,
                         const std::vector<hsize_t>& extents, long chunk, int level) {
    const Hdf5Call call(path);
    const int rank = static_cast<int>(extents.size());
    const Hdf5Handle space = call.made(H5Screate_simple(rank, extents.data(), nullptr), H5Sclose, "cannot be written");
    const Hdf5Handle how = call.made(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "cannot be written");
    std::vector<hsize_t> piece = extents;
    piece[0] = std::min<hsize_t>(static_cast<hsize_t>(chunk), extents[0]);
    call.done(H5Pset_chunk(how.get(), rank, piece.data()), "cannot be written");
    if (level > 0) call.done(H5Pset_deflate(how.get(), static_cast<unsigned>(level)), "cannot be compressed");
    return call.made(H5Dcreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, how.get(), H5P_DEFAULT), H5Dclose,
                     "cannot be written as '" + name + "'");
  }

  std::string path_;
  hid_t type_;
  std::vector<hsize_t> extents_;
  Hdf5Handle array_;
};

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
#endif
