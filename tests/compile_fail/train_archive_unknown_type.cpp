// expect: an archive does not know this type: give it a member template
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/checkpoint.hpp>

struct Position {
  int epoch = 0;
#ifdef SKEIN_TWIN
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & epoch); }
#endif
};

int main() {
  skein::train::CheckpointWriter writer;
  writer.add_object("position", Position{});
}
