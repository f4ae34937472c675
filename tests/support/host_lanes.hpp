// SPDX-License-Identifier: Apache-2.0
// A warp of threads: runs kernels over rows with several lanes on the host, by the same butterfly of exchanges that a GPU makes,
// so that what the lanes do beside each other is tested where there is no GPU. Plain host memory; slow.
#pragma once
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

namespace support {

template <int Count> struct HostLanes {
  struct Shared {
    std::barrier<> barrier{Count};
    alignas(16) unsigned char slots[Count][64];
  };
  static constexpr int count = Count;
  int index = 0;
  Shared* shared = nullptr;

  template <class T, class Op> T reduce(T value, Op op) const {
    static_assert(sizeof(T) <= 64);
    for (int offset = Count / 2; offset > 0; offset /= 2) {
      std::memcpy(shared->slots[index], static_cast<const void*>(&value), sizeof(T));
      shared->barrier.arrive_and_wait();
      T other = value;
      std::memcpy(static_cast<void*>(&other), shared->slots[index ^ offset], sizeof(T));
      shared->barrier.arrive_and_wait();
      value = op(value, other);
    }
    return value;
  }
};

/// f(row, lanes) for each row, by Count threads.
template <int Count, class Function> void by_lanes(long rows, const Function& f) {
  typename HostLanes<Count>::Shared shared;
  std::vector<std::thread> threads;
  for (int i = 0; i < Count; ++i)
    threads.emplace_back([&, i] {
      for (long r = 0; r < rows; ++r) f(r, HostLanes<Count>{i, &shared});
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace support
