// SPDX-License-Identifier: Apache-2.0
// Calls of LAPACK (OpenBLAS, oneMKL or the reference): symmetric eigenvalues, the inverse by Cholesky, orthonormal rows, on
// the calling thread. It is there where a program links skein::lapack (SKEIN_WITH_LAPACK); its Fortran names are declared here,
// so that no header of it is needed.
//
//     a (n, n) a symmetric matrix, w (n) its eigenvalues, q (k, n) orthonormal rows
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "../../core/config.hpp"
#include "../../core/error.hpp"
#include "../../core/text.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scratch memory of one thread, which grows to what the largest call wants.
template <class Scalar> struct LapackWork {
  std::vector<Scalar> numbers;
  std::vector<int> integers;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#if SKEIN_WITH_LAPACK
extern "C" {
void ssyevd_(const char*, const char*, const int*, float*, const int*, float*, float*, const int*, int*, const int*, int*);
void dsyevd_(const char*, const char*, const int*, double*, const int*, double*, double*, const int*, int*, const int*, int*);
void spotrf_(const char*, const int*, float*, const int*, int*);
void dpotrf_(const char*, const int*, double*, const int*, int*);
void spotri_(const char*, const int*, float*, const int*, int*);
void dpotri_(const char*, const int*, double*, const int*, int*);
void sgeqrf_(const int*, const int*, float*, const int*, float*, float*, const int*, int*);
void dgeqrf_(const int*, const int*, double*, const int*, double*, double*, const int*, int*);
void sorgqr_(const int*, const int*, const int*, float*, const int*, const float*, float*, const int*, int*);
void dorgqr_(const int*, const int*, const int*, double*, const int*, const double*, double*, const int*, int*);
}

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
inline void syevd(const int* n, float* a, float* w, float* work, const int* lwork, int* iwork, const int* liwork, int* info) {
  ssyevd_("V", "U", n, a, n, w, work, lwork, iwork, liwork, info);
}
inline void syevd(const int* n, double* a, double* w, double* work, const int* lwork, int* iwork, const int* liwork, int* info) {
  dsyevd_("V", "U", n, a, n, w, work, lwork, iwork, liwork, info);
}
inline void potrf(const int* n, float* a, int* info) { spotrf_("U", n, a, n, info); }
inline void potrf(const int* n, double* a, int* info) { dpotrf_("U", n, a, n, info); }
inline void potri(const int* n, float* a, int* info) { spotri_("U", n, a, n, info); }
inline void potri(const int* n, double* a, int* info) { dpotri_("U", n, a, n, info); }

inline void orthonormalize(const int* n, const int* k, float* q, float* tau, float* work, const int* lwork, int* info) {
  sgeqrf_(n, k, q, n, tau, work, lwork, info);
  if (*info == 0) sorgqr_(n, k, k, q, n, tau, work, lwork, info);
}
inline void orthonormalize(const int* n, const int* k, double* q, double* tau, double* work, const int* lwork, int* info) {
  dgeqrf_(n, k, q, n, tau, work, lwork, info);
  if (*info == 0) dorgqr_(n, k, k, q, n, tau, work, lwork, info);
}

template <class Scalar> bool all_finite(const Scalar* a, long n) {
  Scalar sum = 0;  // NaN where one of them is not finite
  for (long i = 0; i < n; ++i) sum += a[i] * Scalar(0);
  return sum == 0;
}
}  // namespace detail

/// Eigenvalues, rising, and eigenvectors of a symmetric matrix (n, n), dense: row i of `a` becomes the vector of values[i].
/// False where there are none: `a` holds a number that is not finite, or LAPACK gives up; `a` is spoilt then. Throws
/// ArgumentError where the scratch memory has more numbers than LAPACK's int counts: from n = 32,767 on.
template <class Scalar> bool eigen_symmetric(long n, Scalar* a, Scalar* values, LapackWork<Scalar>& work) {
  if (n > 32'766)
    throw ArgumentError(
        text("the eigenvalues of a matrix of {} rows: LAPACK counts its scratch memory by int, which ends at "
             "32,766; take the inverse by Cholesky, as Kfac{{.inverse = KfacInverse::cholesky}} does",
             n));
  if (!detail::all_finite(a, n * n)) return false;
  const int size = static_cast<int>(n), numbers = 1 + 6 * size + 2 * size * size, integers = 3 + 5 * size;
  work.numbers.resize(std::max(work.numbers.size(), static_cast<std::size_t>(numbers)));
  work.integers.resize(std::max(work.integers.size(), static_cast<std::size_t>(integers)));
  int info = 0;
  detail::syevd(&size, a, values, work.numbers.data(), &numbers, work.integers.data(), &integers, &info);
  return info == 0;
}

/// The inverse of a symmetric positive definite matrix (n, n), dense, in its place. False where it is not that: `a` is spoilt.
template <class Scalar> bool invert_symmetric(long n, Scalar* a, LapackWork<Scalar>&) {
  if (!detail::all_finite(a, n * n)) return false;
  const int size = static_cast<int>(n);
  int info = 0;
  detail::potrf(&size, a, &info);
  if (info == 0) detail::potri(&size, a, &info);
  if (info != 0) return false;
  for (long i = 0; i < n; ++i)  // its upper triangle by columns is our lower one by rows
    for (long j = i + 1; j < n; ++j) a[i * n + j] = a[j * n + i];
  return detail::all_finite(a, n * n);
}

/// The k <= n rows of q (k, n), dense, become orthonormal, and span what they did; rows that depend on others become any that
/// are orthogonal to them. By Householder reflections. False where q holds a number that is not finite: it is spoilt then.
template <class Scalar> bool orthonormal_rows(long k, long n, Scalar* q, LapackWork<Scalar>& work) {
  if (!detail::all_finite(q, k * n)) return false;
  const int columns = static_cast<int>(k), size = static_cast<int>(n), numbers = 32 * columns;  // our rows are its columns
  work.numbers.resize(std::max(work.numbers.size(), static_cast<std::size_t>(numbers + columns)));
  int info = 0;
  detail::orthonormalize(&size, &columns, q, work.numbers.data() + numbers, work.numbers.data(), &numbers, &info);
  return info == 0;
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#else
namespace skein::inline SKEIN_ABI::ops::cpu {

/// Without LAPACK: who wants them refuses to compile before it comes to this.
template <class Scalar> bool eigen_symmetric(long, Scalar*, Scalar*, LapackWork<Scalar>&) { return false; }
template <class Scalar> bool invert_symmetric(long, Scalar*, LapackWork<Scalar>&) { return false; }
template <class Scalar> bool orthonormal_rows(long, long, Scalar*, LapackWork<Scalar>&) { return false; }

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
