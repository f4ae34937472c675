// expect of clang++, as a warning: temporary whose address is used as value of local variable 'view' will be destroyed
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/tensor.hpp>

namespace sk = skein;

sk::Tensor<float, 1> made() { return {1, 2}; }
float first(sk::TensorView<const float, 1> v) { return v(0); }

int main() {
  const float within = first(made());  // the statement: right
#ifdef SKEIN_TWIN
  const sk::Tensor<float, 1> named = made();
  const sk::TensorView<const float, 1> view = named;
#else
  const sk::TensorView<const float, 1> view = made();
#endif
  return view(0) == within ? 0 : 1;
}
