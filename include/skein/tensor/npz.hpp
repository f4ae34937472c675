// SPDX-License-Identifier: Apache-2.0
// Several tensors in one file: NumPy's .npz, a zip archive of .npy files, stored or deflated (PKWARE APPNOTE 6.3). The reader
// goes by the central directory, checks every length against the file, bounds what deflate may claim, and checks the CRC.
#pragma once
#include <zlib.h>

#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npy.hpp"

namespace skein::inline SKEIN_ABI {

/// How members of a .npz file are written.
enum class NpzMethod { stored, deflated };

namespace detail {
/// Throws the ArgumentError of a number that is none of these.
inline void demand_value(const char* who, const char* setting, NpzMethod value) {
  demand_value(who, setting, value, NpzMethod::deflated, "stored or deflated");
}
}  // namespace detail

/// The most bytes that an array of a .npz file may unpack to, unless the caller says otherwise: a deflated array can be a
/// thousand times as long as what the file holds of it.
inline constexpr std::size_t npz_limit = std::size_t{1} << 30;

/// An open .npz file; its bytes are held in memory.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path, std::size_t limit = npz_limit);
  /// From bytes; `path` is what messages call them.
  NpzFile(std::vector<unsigned char> bytes, const std::string& path, std::size_t limit = npz_limit)
      : path_(path), bytes_(std::move(bytes)), limit_(limit) {
    read_directory();
  }

  /// The names of the arrays, without ".npy", in the order of the file.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return places_.find(name) != places_.end(); }
  /// The extents of an array, of any rank and type. Throws FileError: absent, malformed.
  std::vector<long> shape(std::string_view name) const;
  /// What its writer says of it: see NpzWriter::set_comment.
  const std::string& comment() const { return comment_; }

  /// One array. Throws FileError: absent, malformed, another rank, another type (unless converted).
  template <class Scalar, int Rank> Tensor<Scalar, Rank, Cpu> get(std::string_view name, NpyTypes types = NpyTypes::exact) const {
    const Member& m = find(name);
    return detail::reading(path_, [&] {
      MemberReader in(*this, m);
      const std::string where = in.where();
      const NpyHeader h = in.header();
      if (m.method != 0)
        check_size(m, h, std::max(sizeof(Scalar), static_cast<std::size_t>(h.width)) * (h.fortran && Rank > 1 ? 2 : 1));
      Tensor<Scalar, Rank, Cpu> t =
          detail::npy_tensor<Scalar, Rank>(h, types, where, 0, [&](unsigned char* to, std::size_t n) { in.read(to, n); });
      in.finish();
      return t;
    });
  }

 private:
  struct Member {
    std::string name;
    int method = 0;
    unsigned long crc = 0;
    std::size_t begin = 0, packed = 0, size = 0;
  };

  /// The bytes of one array, in turn, as they are read or inflated: beside the file only what they are read into takes memory.
  class MemberReader {
   public:
    MemberReader(const NpzFile& file, const Member& m);
    MemberReader(const MemberReader&) = delete;
    MemberReader& operator=(const MemberReader&) = delete;
    ~MemberReader();
    /// What messages call it: file[array].
    std::string where() const { return file_.path_ + "[" + member_.name + "]"; }
    NpyHeader header();
    void read(unsigned char* to, std::size_t n);
    /// Throws FileError where it goes on, or its checksum differs.
    void finish();

   private:
    void inflate_to(unsigned char* to, std::size_t n);
    [[noreturn]] void refuse() const;
    const NpzFile& file_;
    const Member& member_;
    z_stream stream_{};
    std::size_t in_ = 0;
    uLong crc_ = crc32(0, nullptr, 0);
  };

  static uInt chunk(std::size_t n) { return static_cast<uInt>(std::min<std::size_t>(n, 1u << 30)); }
  [[noreturn]] void fail(std::size_t at, const std::string& what) const;
  /// Throws FileError where an array of a deflated member, so many bytes a value, takes more than the limit.
  void check_size(const Member& m, const NpyHeader& h, std::size_t bytes_of_value) const;
  std::uint64_t number(std::size_t at, int width) const;
  /// Throws FileError where there is none.
  const Member& find(std::string_view name) const;
  void read_directory();

  std::size_t read_member(std::size_t at, std::size_t end, std::size_t data_end);

  /// Sizes that do not fit 32 bits stand in an extra field, in this order, those only that are all ones in the entry.
  void read_zip64(std::size_t at, std::size_t length, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& local) const;

  std::string path_;
  std::vector<unsigned char> bytes_;
  std::size_t limit_ = npz_limit;
  std::vector<Member> members_;
  std::map<std::string, std::size_t, std::less<>> places_;  // of members, by name
  std::string comment_;
};

/// Opens a .npz file: auto f = load_npz("weights.npz"); auto w = f.get<float, 2>("w");
inline NpzFile load_npz(const std::string& path, std::size_t limit = npz_limit) { return NpzFile(path, limit); }

/// Writes a .npz file, array by array: NpzWriter out("a.npz"); out.add("w", w); out.close(). The file stays below 4 GiB: the
/// array that does not fit is refused by a FileError, and the others can still be closed.
class NpzWriter {
 public:
  explicit NpzWriter(const std::string& path, NpzMethod method = NpzMethod::stored);
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;
  /// Finishes the file where close() was not called, unless an exception passes or an add() failed to write; errors are then
  /// lost.
  ~NpzWriter();

  /// Throws ArgumentError for a name that the file has already, and for an empty one.
  template <TensorExpression E> void add(const std::string& name, const E& e) {
    using T = std::remove_cvref_t<E>;
    if constexpr (!std::is_same_v<typename T::Device, Cpu>) {
      add(name, to_host(e));
    } else {
      const auto whole = eval(TensorView<const typename T::Scalar, T::rank, Cpu>(as_view(e)));
      std::string bytes = detail::npy_header_of(whole.view());
      bytes.append(reinterpret_cast<const char*>(whole.data()),
                   static_cast<std::size_t>(whole.size()) * sizeof(typename T::Scalar));
      put(name + ".npy", bytes);
    }
  }

  /// The comment of the zip archive, which NumPy does not look at. Throws ArgumentError for more than 65,535 bytes.
  void set_comment(std::string text);
  /// The file gets its name: until then there is the old one, or none. Throws FileError.
  void close();

 private:
  template <class E> static auto as_view(const E& e) {
    if constexpr (detail::IsView<E>::value) return e;
    else if constexpr (requires { e.view(); }) return e.view();
    else static_assert(sizeof(E) == 0, "evaluate the expression with eval() before it is added to a file");
  }
  static void append(std::string& to, std::uint64_t n, int width);
  void write(const std::string& bytes);
  static std::string deflated(const std::string& plain);
  /// Places are written in 32 bits, that of the directory at the end too. Throws FileError.
  void check_fits(const std::string& name, std::uint64_t bytes) const;
  void put(const std::string& name, const std::string& plain);

  std::string path_;
  NpzMethod method_;
  std::unique_ptr<AtomicFile> file_;  // until close()
  int exceptions_ = std::uncaught_exceptions();
  std::string directory_, comment_;
  std::set<std::string> names_;
  std::uint64_t at_ = 0;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "npz.ipp"
#endif
