// SPDX-License-Identifier: Apache-2.0
// The macro I of C's <complex.h>, which FFTW and LAPACKE include, does not reach the umbrella headers, and is there behind them.
#include <complex.h>
#undef I
#define I (__extension__ 1.0iF)  // as glibc has it; libstdc++ hides it in the strict mode of this check

#include <skein/parallel.hpp>
#include <skein/simulate.hpp>
#include <skein/skein.hpp>

#ifndef I
#error "the macro I is gone"
#endif

int main() {}
