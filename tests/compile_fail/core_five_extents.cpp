// expect: a Shape has one to four extents
// SPDX-License-Identifier: Apache-2.0
#include <skein/core/shape.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Input = sk::Shape<1, 2, 3, 4>;
#else
using Input = sk::Shape<1, 2, 3, 4, 5>;
#endif
int main() { return Input::count > 0 ? 0 : 1; }
