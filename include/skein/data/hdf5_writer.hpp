// SPDX-License-Identifier: Apache-2.0
// An HDF5 file that is written: beside its place until it is whole, each array by rows.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "../core/atomic_file.hpp"
#include "../core/text.hpp"
#include "hdf5_file.hpp"

#if SKEIN_WITH_HDF5
SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

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

/// An array that is written by rows, in chunks of so many, compressed. Groups that its name says are made.
class Hdf5Writer {
 public:
  Hdf5Writer(const std::string& path, hid_t file, const std::string& name, hid_t type, const std::vector<long>& extents,
             long chunk, int level)
      : path_(path), type_(type), extents_(extents.begin(), extents.end()),
        array_(make(path, file, name, type, extents_, chunk, level)) {}

  void write(std::int64_t first, std::int64_t count, const void* values) {
    const Hdf5Call call(path_);
    const Hdf5Rows rows = hdf5_rows(call, array_.get(), extents_, first, count, "cannot be written");
    call.done(H5Dwrite(array_.get(), type_, rows.here.get(), rows.there.get(), H5P_DEFAULT, values), "cannot be written");
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
    const Hdf5Handle link = call.made(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "cannot be written");
    call.done(H5Pset_create_intermediate_group(link.get(), 1), "cannot be written");  // a name may be group/name
    return call.made(H5Dcreate2(file, name.c_str(), type, space.get(), link.get(), how.get(), H5P_DEFAULT), H5Dclose,
                     "cannot get an array named " + in_quotes(name));
  }

  std::string path_;
  hid_t type_;
  std::vector<hsize_t> extents_;
  Hdf5Handle array_;
};

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
#endif
