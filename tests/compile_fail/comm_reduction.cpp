// expect: this communicator cannot reduce this type with this operation
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "skein/comm/self/self_comm.hpp"

struct Point {
  float x, y;
};
struct AddPoints {
  Point operator()(Point a, Point b) const { return {a.x + b.x, a.y + b.y}; }
};

int main() {
  skein::SelfComm world;
  std::vector<Point> points(3);
#ifdef SKEIN_TWIN
  world.all_reduce(points, AddPoints{});
#else
  world.all_reduce(points, skein::Sum{});
#endif
}
