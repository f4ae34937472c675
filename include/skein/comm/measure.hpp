// SPDX-License-Identifier: Apache-2.0
// The alpha-beta model of a communicator, measured: messages to and fro between two ranks of a node and two of different nodes,
// and the communicator's own all-reduce. A minute of a cluster's time is a second here; a cache keeps it for the next start.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../plan/level_fit.hpp"
#include "concepts.hpp"
#include "fold.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What measure_network found. `own`: the communicator's all-reduce over all its ranks, seconds of a span's bytes.
struct MeasuredNetwork {
  plan::Network network{};
  plan::Level own{};
  friend bool operator==(const MeasuredNetwork& a, const MeasuredNetwork& b) { return a.values() == b.values(); }
  std::array<double, 8> values() const;
  static MeasuredNetwork of(const std::array<double, 8>& v);
};

/// What is measured: which messages, how often, among which ranks.
struct MeasureOptions {
  std::vector<long> bytes{64, 1024, 8192, 65536, 524288};  ///< of the messages
  int repeats = 30;                                        ///< of each size, 1 or more; the smallest time counts
  int node = 0;                                            ///< ranks of a node, in order; 0: as the communicator says

  /// Throws ArgumentError for what cannot be measured.
  void check() const;
};

/// Times of messages from rank a to rank b: half of a way there and back, the smallest of `repeats`. Collective: all ranks get
/// rank a's times. Blocking; allocates.
template <class Comm> std::vector<plan::MessageTime> message_times(Comm& comm, int a, int b, const MeasureOptions& options = {}) {
  options.check();
  std::vector<plan::MessageTime> times;
  for (const long bytes : options.bytes) {
    std::vector<char> there(static_cast<std::size_t>(bytes), 1), back = there;
    double best = 1e30;
    comm.barrier();
    for (int i = 0; i < options.repeats && (comm.rank() == a || comm.rank() == b); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      if (comm.rank() == a) {
        comm.send(there, b, 28999);
        comm.recv(back, b, 28999);
      } else {
        comm.recv(back, a, 28999);
        comm.send(there, a, 28999);
      }
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2);
    }
    times.push_back({static_cast<double>(bytes), comm.broadcast(best, a)});
  }
  return times;
}

/// Times of the communicator's all-reduce of float, rank 0's, on all ranks. Collective.
template <class Comm> std::vector<plan::MessageTime> all_reduce_times(Comm& comm, const MeasureOptions& options = {}) {
  options.check();
  std::vector<plan::MessageTime> times;
  for (const long bytes : options.bytes) {
    std::vector<float> values(static_cast<std::size_t>(std::max(1L, bytes / 4)), 1.0f);
    double best = 1e30;
    for (int i = 0; i < options.repeats; ++i) {
      comm.barrier();
      const auto begin = std::chrono::steady_clock::now();
      comm.all_reduce(values, Mean{});
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    times.push_back({static_cast<double>(4 * values.size()), comm.broadcast(best, 0)});
  }
  return times;
}

/// Seconds to reduce a byte that has come: this machine's fold, rank 0's.
template <class Comm> double reduction_seconds(Comm& comm) {
  std::vector<float> a(1 << 14, 1.0f), b = a;
  const void* from[] = {a.data(), b.data()};
  void* to[] = {a.data()};
  const Sum sum{};
  double best = 1e30;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    fold<float, Sum>(&sum, to, 1, from, 2, a.size());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return comm.broadcast(best / static_cast<double>(a.size() * sizeof(float)), 0);
}

/// The network of a communicator whose ranks lie node by node. Collective; blocking; all ranks get the same. One rank: all zeros.
template <class Comm> MeasuredNetwork measure_network(Comm& comm, const MeasureOptions& options = {}) {
  MeasuredNetwork found;
  const int n = comm.size();
  if (n == 1) return found;
  int node = options.node;
  if constexpr (can<Comm, Capability::nodes>)
    if (node <= 0) node = comm.broadcast(comm.node_size(), 0);
  if (node <= 0 || node > n) node = n;
  found.network.node = node == n ? 0 : node;
  found.network.gamma = reduction_seconds(comm);
  if (node > 1) found.network.near = plan::fit_level(message_times(comm, 0, 1, options)).level;
  if (node < n) found.network.far = plan::fit_level(message_times(comm, 0, node, options)).level;
  if (node == 1) found.network.near = found.network.far;
  if (node == n) found.network.far = found.network.near;
  found.own = plan::fit_level(all_reduce_times(comm, options)).level;
  return found;
}

/// Networks by name, in a text file of one line each: "name = 8 numbers". A line that is damaged is no entry.
class NetworkCache {
 public:
  explicit NetworkCache(std::string path) : path_(std::move(path)) {}
  bool find(const std::string& key, MeasuredNetwork& found) const;
  /// Best effort: a file that cannot be written is no cache.
  void add(const std::string& key, const MeasuredNetwork& network) const;

 private:
  std::string path_;
};

/// What this process has measured of such a communicator, or the file SKEIN_NETWORK has (rank 0's counts), or measure_network,
/// which is then kept in both. Collective; all ranks get the same.
template <class Comm> MeasuredNetwork measured_network(Comm& comm, const MeasureOptions& options = {}) {
  static std::mutex mutex;
  static std::map<std::string, MeasuredNetwork> kept;
  std::string key = text("{} {} ranks", Comm::name, comm.size());
  if constexpr (can<Comm, Capability::nodes>) key += text(", {} a node", options.node > 0 ? options.node : comm.node_size());
  const char* file = std::getenv("SKEIN_NETWORK");
  const bool in_file = file && *file;
  std::array<double, 9> values{};
  if (comm.rank() == 0) {
    MeasuredNetwork known;
    const std::lock_guard lock(mutex);
    const auto at = kept.find(key);
    const bool found = at != kept.end() || (in_file && NetworkCache(file).find(key, known));
    if (at != kept.end()) known = at->second;
    const auto v = known.values();
    std::copy(v.begin(), v.end(), values.begin());
    values[8] = found;
  }
  comm.broadcast(DeviceSpan<double, Cpu>{values.data(), values.size()}, 0);
  std::array<double, 8> v{};
  std::copy(values.begin(), values.begin() + 8, v.begin());
  if (values[8] != 0) return MeasuredNetwork::of(v);
  const MeasuredNetwork found = measure_network(comm, options);
  if (comm.rank() == 0) {
    const std::lock_guard lock(mutex);
    kept[key] = found;
    if (in_file) NetworkCache(file).add(key, found);
  }
  return found;
}

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "measure.ipp"
#endif
