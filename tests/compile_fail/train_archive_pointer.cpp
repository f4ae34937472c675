// expect: an archive takes no pointers, views or references
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/archive.hpp>

#include <memory>

struct Node {
#ifdef SKEIN_TWIN
  int next = 0;
#else
  std::unique_ptr<int> next;
#endif
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & next); }
};

int main() {
  Node node;
  return static_cast<int>(skein::train::to_bytes(node).size()) - 8;
}
