// SPDX-License-Identifier: Apache-2.0
// An array of an HDF5 file that is read by rows. The file is looked at when it is opened: where it has no such array of numbers,
// or chunks that this program cannot read, that is said then, and not in the middle of a training.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/text.hpp"
#include "hdf5_file.hpp"

#if SKEIN_WITH_HDF5
SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

/// One array of a file, open to be read by rows.
class Hdf5Array {
 public:
  /// Throws FileError where the file has no such array of numbers, where a row or a chunk of it takes more bytes than the limit,
  /// and where its chunks went through a filter that this program does not have.
  Hdf5Array(const std::string& path, const std::string& name, std::uint64_t limit)
      : path_(path), name_(name), open_(open(path, name)) {
    const Hdf5Call call(path_);
    read_extents(call);
    read_type(call);
    const Hdf5Handle how = call.made(H5Dget_create_plist(id()), H5Pclose, "does not say how " + in_quotes(name_) + " is stored");
    check_sizes(how.get(), limit);
    check_filters(how.get());
  }
  Hdf5Array(const Hdf5Array&) = delete;
  const std::vector<hsize_t>& extents() const { return extents_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(extents_[0]); }
  /// Whole numbers, those of an enumeration too: h5py writes truth values as one of 0 and 1.
  bool integers() const { return class_ != H5T_FLOAT; }
  bool with_sign() const { return with_sign_; }
  bool bytes() const { return bytes_; }

  /// Rows [first, first + count), dense, as the type of `to`: std::uint8_t, float, std::int64_t or std::uint64_t. What does not
  /// fit an integer becomes the greatest or the least that does.
  template <class Value> void read(std::int64_t first, std::int64_t count, Value* to) const {
    const hid_t type = std::is_same_v<Value, float>           ? H5T_NATIVE_FLOAT
                       : std::is_same_v<Value, std::uint8_t>  ? H5T_NATIVE_UINT8
                       : std::is_same_v<Value, std::uint64_t> ? H5T_NATIVE_UINT64
                                                              : H5T_NATIVE_INT64;
    const Hdf5Call call(path_);
    const Hdf5Rows rows = hdf5_rows(call, id(), extents_, first, count, "cannot be read");
    if (H5Dread(id(), type, rows.here.get(), rows.there.get(), H5P_DEFAULT, to) >= 0) return;
    if (!missing_filter_.empty()) throw FileError(path_, -1, missing_filter_);
    call.fail(text("is damaged: rows {} to {} of {} cannot be read", first, first + count - 1, in_quotes(name_)));
  }

 private:
  struct Open {
    Hdf5Handle file, array;  // the array is closed first
  };
  static herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) { return -1; }
  /// "'a', 'b', ...", by their names: the arrays of a file that are in no group. Links into other files are not followed.
  static std::string names_of_arrays(hid_t file) {
    constexpr int most = 10, most_links = 1000;
    const Hdf5Handle how(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
    H5Pset_elink_cb(how.get(), refuse_link, nullptr);
    TextList names;
    for (int at = 0, found = 0; at < most_links && found <= most; ++at) {
      char name[256];
      const auto nth = static_cast<hsize_t>(at);
      if (H5Lget_name_by_idx(file, "/", H5_INDEX_NAME, H5_ITER_INC, nth, name, sizeof name, H5P_DEFAULT) < 0) break;  // the last
      const Hdf5Handle object(H5Oopen(file, name, how.get()), H5Oclose);
      if (object.get() < 0 || H5Iget_type(object.get()) != H5I_DATASET) continue;
      names.add(++found > most ? "..." : in_quotes(name));
    }
    return names.text();
  }
  /// What is said of a file that has no such array; the library's reason, which the message ends with, stays.
  static std::string says_no_array(hid_t file, const std::string& name) {
    const hid_t reason = H5Eget_current_stack();
    const std::string others = names_of_arrays(file);
    H5Eset_current_stack(reason);
    const std::string what = text("has no array {} (links into other files are not followed)", in_quotes(name));
    return others.empty() ? what
                          : text("{}; it has {}: name them in Hdf5Options{.samples, .targets}; without targets .targets is \"\"",
                                 what, others);
  }
  static Open open(const std::string& path, const std::string& name) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) throw FileError(path, -1, "cannot be opened", errno);
    if (!S_ISREG(facts.st_mode)) throw FileError(path, -1, "is no plain file");
    if (::access(path.c_str(), R_OK) != 0) throw FileError(path, -1, "cannot be opened", errno);
    const Hdf5Call call(path);
    Hdf5Handle file = call.made(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "cannot be opened as an HDF5 file");
    const Hdf5Handle how = call.made(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "cannot be read");
    H5Pset_elink_cb(how.get(), refuse_link, nullptr);
    const hid_t array = H5Dopen2(file.get(), name.c_str(), how.get());
    Hdf5Handle made = call.made(array, H5Dclose, array < 0 ? says_no_array(file.get(), name) : "");
    return {std::move(file), std::move(made)};
  }
  hid_t id() const { return open_.array.get(); }
  [[noreturn]] void refuse(const std::string& what) const {
    throw FileError(path_, -1, text("has in {} {}", in_quotes(name_), what));
  }
  void read_extents(const Hdf5Call& call) {
    const Hdf5Handle space = call.made(H5Dget_space(id()), H5Sclose, text("has an array {} without extents", in_quotes(name_)));
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 1 || rank > 5)
      refuse(text("an array of {} extents: a data set has that of the samples, and one to four of each sample", rank));
    extents_.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space.get(), extents_.data(), nullptr);
    constexpr int most = std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < extents_.size(); ++i)  // of samples there may be more
      if (const hsize_t e = extents_[i]; e < 1 || (i > 0 && e > static_cast<hsize_t>(most)))
        refuse(text("an extent of {}: from 1 to {} are read", e, most));
  }
  void read_type(const Hdf5Call& call) {
    const Hdf5Handle type = call.made(H5Dget_type(id()), H5Tclose, text("has an array {} without a type", in_quotes(name_)));
    class_ = H5Tget_class(type.get());
    if (class_ != H5T_INTEGER && class_ != H5T_FLOAT && class_ != H5T_ENUM) refuse(no_numbers(class_));
    with_sign_ = H5Tget_sign(type.get()) != H5T_SGN_NONE;
    bytes_ = class_ == H5T_INTEGER && H5Tget_size(type.get()) == 1 && !with_sign_;
  }
  /// What an array of such a type has, and what to write instead.
  static const char* no_numbers(H5T_class_t type) {
    switch (type) {
      case H5T_STRING:
        return "texts: write a class number for each, as numpy.unique(texts, return_inverse=True) gives them";
      case H5T_COMPOUND:
        return "records of several fields: write each field as an array of its own, and complex numbers as two";
      case H5T_VLEN:
        return "lists of lengths of their own: write rows of one length";
      case H5T_BITFIELD:
        return "bits: write them as bytes of 0 and 1";
      default:
        return "an array of other than numbers: write integers or floats";
    }
  }
  /// A row is read as up to 8 bytes a value, and the library holds a whole chunk.
  void check_sizes(hid_t how, std::uint64_t limit) const {
    const auto check = [&](const hsize_t* extents, std::size_t n, const char* what) {
      std::uint64_t fit = limit / 8;
      for (std::size_t i = 0; i < n; ++i) fit /= std::max<hsize_t>(extents[i], 1);
      if (fit == 0) refuse(text("{} of more than {} bytes: give Hdf5Set a larger .limit", what, limit));
    };
    check(extents_.data() + 1, extents_.size() - 1, "samples");
    if (H5Pget_layout(how) == H5D_VIRTUAL || H5Pget_external_count(how) > 0)
      refuse("an array whose values are in other files, which it names: copy them into this one");
    std::vector<hsize_t> chunk(extents_.size());
    if (H5Pget_layout(how) == H5D_CHUNKED &&
        H5Pget_chunk(how, static_cast<int>(chunk.size()), chunk.data()) == static_cast<int>(chunk.size()))
      check(chunk.data(), chunk.size(), "chunks");
  }
  /// A filter may be optional, and then chunks that it did not make smaller are stored without it. So the first sample is tried:
  /// where it can be read, a later chunk may still fail, which then says the same.
  void check_filters(hid_t how) {
    missing_filter_ = missing_filter(how);
    if (missing_filter_.empty()) return;
    std::size_t values = 1;
    for (std::size_t i = 1; i < extents_.size(); ++i) values *= static_cast<std::size_t>(extents_[i]);
    std::vector<std::int64_t> sample(values);
    read(0, 1, sample.data());
  }
  /// What is to be said of the first filter that the library does not have; empty where it has all.
  std::string missing_filter(hid_t how) const {
    for (int i = 0; i < H5Pget_nfilters(how); ++i) {
      char name[64] = "";
      std::size_t values = 0;
      unsigned flags = 0;
      const H5Z_filter_t filter =
          H5Pget_filter2(how, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, nullptr);
      if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
      return text(
          "has in {} chunks that went through the HDF5 filter {}{}, which this program does not have: write the array with gzip "
          "(in h5py: compression='gzip'), or name the folder of the filter's plugin in the environment variable HDF5_PLUGIN_PATH",
          in_quotes(name_), filter, name[0] ? text(" ({})", in_quotes(name)) : std::string());
    }
    return {};
  }

  std::string path_, name_, missing_filter_;
  Open open_;
  std::vector<hsize_t> extents_;
  H5T_class_t class_ = H5T_NO_CLASS;
  bool with_sign_ = true, bytes_ = false;
};

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
#endif
