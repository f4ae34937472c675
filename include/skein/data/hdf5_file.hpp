// SPDX-License-Identifier: Apache-2.0
// Calls of the HDF5 library: its objects, its failures as FileErrors, and rows of its arrays, which hdf5_array.hpp reads and
// hdf5_writer.hpp writes. The only place that includes the library; empty in a program that does not link skein::hdf5. The
// library of most systems is not safe for threads: one call at a time.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/no_size_signal.hpp"

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

/// Rows of an array: where they are in the file, and as they lie in memory, dense.
struct Hdf5Rows {
  Hdf5Handle there, here;
};
inline Hdf5Rows hdf5_rows(const Hdf5Call& call, hid_t array, const std::vector<hsize_t>& extents, std::int64_t first,
                          std::int64_t count, const std::string& failure) {
  Hdf5Handle all = call.made(H5Dget_space(array), H5Sclose, failure);
  std::vector<hsize_t> begin(extents.size(), 0), size = extents;
  begin[0] = static_cast<hsize_t>(first), size[0] = static_cast<hsize_t>(count);
  call.done(H5Sselect_hyperslab(all.get(), H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr), failure);
  const hid_t here = H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr);
  return {std::move(all), call.made(here, H5Sclose, failure)};
}

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
#endif
