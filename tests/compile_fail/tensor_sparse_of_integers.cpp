// expect: a sparse matrix holds float or double, or is a pattern: Csr<void>
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/sparse.hpp>

namespace sk = skein;

#ifndef SKEIN_TWIN
long program(const sk::Csr<int>& a) { return a.rows(); }
#else
long program(const sk::Csr<void>& a) { return a.rows(); }
#endif
