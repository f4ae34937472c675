// SPDX-License-Identifier: Apache-2.0
// Step 1 of docs/tutorial.md: does the compiler find the library?
#include <skein/skein.hpp>

#include <iostream>
namespace sk = skein;

int main() {
  const sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};  // (2, 3)
  std::cout << "a * 10 = " << sk::eval(a * 10) << "\nmean of the columns: " << sum(a, 0) / 2 << "\n";
}
