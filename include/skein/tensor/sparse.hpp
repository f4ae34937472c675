// SPDX-License-Identifier: Apache-2.0
// Sparse matrices in compressed rows (CSR): Csr<float>, and Csr<void>, a pattern whose entries are all one. They are built,
// checked, transposed and narrowed on the host, and moved with to(); products are in ops/sparse_product.hpp. What comes from
// outside is checked before it is used: a wrong length is a ShapeError, a wrong index an ArgumentError that names the entry.
#pragma once
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "csr_view.hpp"
#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
struct Unchecked {};  // arrays that are known to be right
template <class Range> auto const_span(const Range& r) { return std::span(r.data(), static_cast<std::size_t>(r.size())); }
template <class Range> using RangeValue = std::remove_cvref_t<decltype(*std::declval<const Range&>().data())>;
[[noreturn]] SKEIN_NOINLINE inline void throw_entry(const char* operation, long entry, const std::string& what) {
  throw ArgumentError(text("{}: entry {}{}", operation, entry, what));
}
}  // namespace detail

/// A sparse matrix: offsets of the rows, columns in rising order within a row, values. Scalar void: the pattern alone. Index is
/// the type of a column: std::uint16_t halves the traffic of a pattern with at most 65,536 columns. Moves; copy() copies.
template <class Scalar_, class Device_ = Cpu, class Index_ = std::int32_t> class Csr {
  static_assert(std::is_void_v<Scalar_> || std::is_floating_point_v<Scalar_>,
                "a sparse matrix holds float or double, or is a pattern: Csr<void>");
  static_assert(std::is_integral_v<Index_>,
                "the index of a sparse matrix is an integer: std::int32_t, std::int64_t, std::uint16_t");

 public:
  using Scalar = Scalar_;
  using Device = Device_;
  using Index = Index_;
  using Offset = CsrOffset<Index>;
  static constexpr bool pattern = std::is_void_v<Scalar>;
  /// The type of `values`; of a pattern, of an array that stays empty.
  using Value = std::conditional_t<pattern, char, Scalar>;

  /// No rows, no columns.
  Csr() : offsets_(dims(1)) {}
  /// What is moved from has no rows and no columns.
  Csr(Csr&& o) noexcept
      : rows_(std::exchange(o.rows_, 0)), columns_(std::exchange(o.columns_, 0)), offsets_(std::move(o.offsets_)),
        indices_(std::move(o.indices_)), values_(std::move(o.values_)) {}
  Csr& operator=(Csr&& o) noexcept {
    std::swap(rows_, o.rows_);
    std::swap(columns_, o.columns_);
    offsets_ = std::move(o.offsets_);  // which exchange their arrays
    indices_ = std::move(o.indices_);
    values_ = std::move(o.values_);
    return *this;
  }
  /// Takes arrays that lie in compressed rows. Throws ShapeError (lengths) or ArgumentError (offsets that fall, columns out of
  /// range or out of order).
  Csr(long rows, long columns, Tensor<Offset, 1, Cpu>&& offsets, Tensor<Index, 1, Cpu>&& indices,
      Tensor<Value, 1, Cpu>&& values = {}) requires std::same_as<Device, Cpu>
      : rows_(rows), columns_(columns), offsets_(std::move(offsets)), indices_(std::move(indices)), values_(std::move(values)) {
    check();
  }

  /// Entries (row[k], column[k]) of value[k], in any order; duplicates are summed (of a pattern, they are one). The arrays are
  /// ranges of integers and numbers: vectors, spans, tensors of the host. Throws as above.
  template <class Rows, class Columns, class Values = std::span<const Value>>
  static Csr from_triples(long rows, long columns, const Rows& row, const Columns& column,
                          const Values& value = {}) requires std::same_as<Device, Cpu> {
    static_assert(std::is_integral_v<detail::RangeValue<Rows>> && std::is_integral_v<detail::RangeValue<Columns>>,
                  "the rows and columns of the entries of a sparse matrix are integers: cast<long>() makes such of a tensor");
    const auto r = detail::const_span(row);
    const auto c = detail::const_span(column);
    const auto v = detail::const_span(value);
    const long n = static_cast<long>(r.size()), weights = static_cast<long>(v.size());
    check_extents("Csr::from_triples", rows, columns, n);
    if (c.size() != r.size() || weights != (pattern ? 0 : n))
      throw ShapeError(text("Csr::from_triples: {} rows, {} columns and {} values: there is one of each for an entry{}", n,
                            c.size(), weights, (pattern ? " (no values for a pattern)" : "")));
    Tensor<Offset, 1, Cpu> offsets(dims(rows + 1));
    for (long k = 0; k < n; ++k) {
      if (!within(r[at(k)], rows)) detail::throw_entry("Csr::from_triples", k, text(" is in row {} of {}", +r[at(k)], rows));
      if (!within(c[at(k)], columns))
        detail::throw_entry("Csr::from_triples", k, text(" is in column {} of {}", +c[at(k)], columns));
      ++offsets.data()[static_cast<long>(r[at(k)]) + 1];
    }
    for (long i = 0; i < rows; ++i) offsets.data()[i + 1] = static_cast<Offset>(offsets.data()[i + 1] + offsets.data()[i]);
    std::vector<std::pair<Index, long>> sorted(static_cast<std::size_t>(n));  // column, and which entry
    {
      std::vector<Offset> next(offsets.data(), offsets.data() + rows);
      for (long k = 0; k < n; ++k) sorted[at(next[at(r[at(k)])]++)] = {static_cast<Index>(c[at(k)]), k};
    }
    long distinct = 0;
    for (long i = 0; i < rows; ++i) {
      const long begin = offsets.data()[i], end = offsets.data()[i + 1];
      std::sort(sorted.begin() + begin, sorted.begin() + end);  // of equal columns, in their order
      for (long k = begin; k < end; ++k) distinct += k == begin || sorted[at(k)].first != sorted[at(k - 1)].first;
    }
    Csr a(rows, columns, distinct);
    long out = -1;
    for (long i = 0; i < rows; ++i) {
      const long begin = offsets.data()[i], end = offsets.data()[i + 1];
      for (long k = begin; k < end; ++k) {
        const bool first = k == begin || sorted[at(k)].first != sorted[at(k - 1)].first;
        if (first) a.indices_.data()[++out] = sorted[at(k)].first;
        if constexpr (!pattern) {
          const Scalar x = static_cast<Scalar>(v[at(sorted[at(k)].second)]);
          a.values_.data()[out] = first ? x : a.values_.data()[out] + x;
        }
      }
      a.offsets_.data()[i + 1] = static_cast<Offset>(out + 1);
    }
    return a;
  }

  /// What is not zero of a dense matrix of any device; NaNs are not zero.
  template <TensorExpression E> static Csr from_dense(const E& dense) requires std::same_as<Device, Cpu> {
    using S = typename E::Scalar;
    static_assert(E::rank == 2, "a sparse matrix is made of a matrix: reshape() the tensor to rank 2");
    static_assert(pattern || std::is_same_v<S, Scalar>,
                  "a sparse matrix is made of a matrix of its scalar type: convert it with cast<Scalar>()");
    const Tensor<S, 2, Cpu> m = dense_on_host(dense);
    long n = 0;
    for (const S& x : m) n += x != S(0);
    check_extents("Csr::from_dense", m.extent(0), m.extent(1), n);
    Csr a(m.extent(0), m.extent(1), n);
    long k = 0;
    for (long i = 0; i < a.rows_; ++i) {
      for (long j = 0; j < a.columns_; ++j)
        if (const S x = m(i, j); x != S(0)) {
          a.indices_.data()[k] = static_cast<Index>(j);
          if constexpr (!pattern) a.values_.data()[k] = x;
          ++k;
        }
      a.offsets_.data()[i + 1] = static_cast<Offset>(k);
    }
    return a;
  }

  /// The dense matrix; of a pattern, of ones of the type that is asked for. On a device: through the host.
  template <class S = std::conditional_t<pattern, float, Scalar>> Tensor<S, 2, Device> to_dense() const {
    if constexpr (!std::same_as<Device, Cpu>) {
      return to(Cpu{}).template to_dense<S>().to(device());
    } else {
      Tensor<S, 2, Cpu> m(dims(rows_, columns_));
      for (long i = 0; i < rows_; ++i)
        for (long k = offsets_.data()[i]; k < offsets_.data()[i + 1]; ++k)
          m(i, static_cast<long>(indices_.data()[k])) = static_cast<S>(weight(k));
      return m;
    }
  }

  /// Rows become columns. On a device: through the host.
  Csr transpose() const {
    if constexpr (!std::same_as<Device, Cpu>) {
      return to(Cpu{}).transpose().to(device());
    } else {
      check_extents("Csr::transpose", columns_, rows_, entries());
      Csr t(columns_, rows_, entries());
      for (long k = 0; k < entries(); ++k) ++t.offsets_.data()[static_cast<long>(indices_.data()[k]) + 1];
      for (long i = 0; i < columns_; ++i)
        t.offsets_.data()[i + 1] = static_cast<Offset>(t.offsets_.data()[i + 1] + t.offsets_.data()[i]);
      std::vector<Offset> next(t.offsets_.data(), t.offsets_.data() + columns_);
      for (long i = 0; i < rows_; ++i)
        for (long k = offsets_.data()[i]; k < offsets_.data()[i + 1]; ++k) {
          const long to = next[at(indices_.data()[k])]++;
          t.indices_.data()[to] = static_cast<Index>(i);
          if constexpr (!pattern) t.values_.data()[to] = values_.data()[k];
        }
      return t;
    }
  }

  /// The same matrix without its values.
  Csr<void, Device, Index> without_values() const {
    return {rows_, columns_, offsets_.copy(), indices_.copy(), {}, detail::Unchecked{}};
  }
  /// The same matrix with columns of another type; throws ArgumentError where they do not fit.
  template <class I> Csr<Scalar, Cpu, I> with_index() const requires std::same_as<Device, Cpu> {
    Csr<Scalar, Cpu, I>::check_extents("Csr::with_index", rows_, columns_, entries());
    return {rows_,
            columns_,
            Tensor<CsrOffset<I>, 1>(cast<CsrOffset<I>>(offsets_)),
            Tensor<I, 1>(cast<I>(indices_)),
            values_.copy(),
            detail::Unchecked{}};
  }
  Csr copy() const { return {rows_, columns_, offsets_.copy(), indices_.copy(), values_.copy(), detail::Unchecked{}}; }
  /// The same matrix on another device (or ordinal); returns when it is there.
  template <class To> Csr<Scalar, To, Index> to(To where = {}) const {
    return {rows_, columns_, offsets_.to(where), indices_.to(where), values_.to(where), detail::Unchecked{}};
  }

  long rows() const { return rows_; }
  long columns() const { return columns_; }
  Dims<2> shape() const { return dims(rows_, columns_); }
  /// Stored entries.
  long entries() const { return indices_.size(); }
  Device device() const { return offsets_.device(); }
  /// Where each row begins, and the end: rows() + 1.
  TensorView<const Offset, 1, Device> offsets() const& { return offsets_.view(); }
  void offsets() const&& = delete;
  auto offsets() && { return std::move(offsets_); }  // of a temporary the memory itself, here and below
  /// The column of each entry.
  TensorView<const Index, 1, Device> indices() const& { return indices_.view(); }
  void indices() const&& = delete;
  auto indices() && { return std::move(indices_); }
  /// The value of each entry; they may be changed, the pattern stays.
  TensorView<const Value, 1, Device> values() const& requires(!pattern) { return values_.view(); }
  TensorView<Value, 1, Device> values() & requires(!pattern) { return values_.view(); }
  void values() const&& = delete;
  auto values() && requires(!pattern) { return std::move(values_); }
  void view() const&& = delete;  // it would be gone
  CsrView<Scalar, Device, Index> view() const& {
    if constexpr (pattern) return {rows_, columns_, entries(), offsets_.data(), indices_.data(), nullptr, device()};
    else return {rows_, columns_, entries(), offsets_.data(), indices_.data(), values_.data(), device()};
  }

 private:
  template <class, class, class> friend class Csr;
  Csr(long rows, long columns, Tensor<Offset, 1, Device>&& offsets, Tensor<Index, 1, Device>&& indices,
      Tensor<Value, 1, Device>&& values, detail::Unchecked)
      : rows_(rows), columns_(columns), offsets_(std::move(offsets)), indices_(std::move(indices)), values_(std::move(values)) {}
  Csr(long rows, long columns, long n)
      : rows_(rows), columns_(columns), offsets_(dims(rows + 1)), indices_(dims(n)), values_(dims(pattern ? 0L : n)) {}

  template <class I> static std::size_t at(I i) { return static_cast<std::size_t>(i); }
  template <class I> static bool within(I i, long n) {
    if constexpr (std::is_signed_v<I>) return i >= 0 && static_cast<long>(i) < n;
    else return static_cast<unsigned long>(i) < static_cast<unsigned long>(n);
  }
  Value weight(long k) const {
    if constexpr (pattern) return 1;
    else return values_.data()[k];
  }
  template <class E> static decltype(auto) dense_on_host(const E& e) { return eval(to_host(e)); }

  static void check_extents(const char* operation, long rows, long columns, long n) {
    if (rows < 0 || columns < 0)
      throw ArgumentError(std::string(operation) + ": " + detail::shape_text(dims(rows, columns)) +
                          " is no shape of a matrix: extents are not negative");
    if (rows > (1L << 60)) throw ArgumentError(text("{}: no memory holds where {} rows begin", operation, rows));
    if (columns > 0 && static_cast<unsigned long>(columns - 1) > static_cast<unsigned long>(std::numeric_limits<Index>::max()))
      throw ArgumentError(
          text("{}: {} columns do not fit the index type: take a wider one, Csr<..., Cpu, std::int64_t>", operation, columns));
    if (static_cast<unsigned long>(n) > static_cast<unsigned long>(std::numeric_limits<Offset>::max()))
      throw ArgumentError(
          text("{}: {} entries do not fit the index type: take a wider one, Csr<..., Cpu, std::int64_t>", operation, n));
  }
  void check() const {
    const long n = entries();
    check_extents("Csr", rows_, columns_, n);
    if (offsets_.size() != rows_ + 1)
      throw ShapeError(text("Csr: {} offsets for {} rows: there is one for each, and one more", offsets_.size(), rows_));
    if (values_.size() != (pattern ? 0 : n)) throw ShapeError(text("Csr: {} values for {} entries", values_.size(), n));
    if (offsets_.data()[0] != 0 || static_cast<long>(offsets_.data()[rows_]) != n)
      throw ArgumentError(text("Csr: the offsets go from {} to {}, not from 0 to {}, the number of entries", offsets_.data()[0],
                               offsets_.data()[rows_], n));
    for (long i = 0; i < rows_; ++i)
      if (offsets_.data()[i + 1] < offsets_.data()[i]) throw ArgumentError(text("Csr: the offsets fall at row {}", i));
    for (long i = 0; i < rows_; ++i)
      for (long k = offsets_.data()[i]; k < offsets_.data()[i + 1]; ++k) {
        if (!within(indices_.data()[k], columns_))
          detail::throw_entry("Csr", k, text(" is in column {} of {}", +indices_.data()[k], columns_));
        if (k > offsets_.data()[i] && indices_.data()[k] <= indices_.data()[k - 1])
          detail::throw_entry(
              "Csr", k, text(" in row {} does not stand behind its neighbour: columns rise, Csr::from_triples sorts them", i));
      }
  }

  std::int64_t rows_ = 0, columns_ = 0;
  Tensor<Offset, 1, Device> offsets_;
  Tensor<Index, 1, Device> indices_;
  Tensor<Value, 1, Device> values_;
};

}  // namespace skein::inline SKEIN_ABI
