// expect: every extent of a Shape must be positive
// SPDX-License-Identifier: Apache-2.0
#include <skein/core/shape.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Input = sk::Shape<28, 28, 1>;
#else
using Input = sk::Shape<28, 28, 0>;
#endif
int main() { return Input::count > 0 ? 0 : 1; }
