// SPDX-License-Identifier: Apache-2.0
// Measuring on a GPU: candidates are timed by events on the library's stream, after 20 calls that are not timed; the floor is the
// bandwidth that a copy within the device reaches in the same run. The peer (bench/cuda/peer/*.py) does the same in its process.
#pragma once
#include <skein/cuda.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "against.hpp"
#include "peer.hpp"
#include "report.hpp"
#include "slices.hpp"

namespace bench {

/// Ends the program with 77 where there is no GPU.
inline void need_gpu(const char* name) {
  if (skein::cuda::device_count() > 0) return;
  std::printf("%s: there is no GPU here, so nothing was measured\n", name);
  std::exit(77);
}

/// The GPU's name.
inline std::string gpu_name() {
  cudaDeviceProp p{};
  skein::cuda::check(cudaGetDeviceProperties(&p, skein::cuda::current_device().ordinal), "cudaGetDeviceProperties");
  return p.name;
}

/// f(), n times, in the order of the thread's stream: seconds by events.
template <class F> Slice timed_by_events(long n, F&& f) {
  cudaStream_t stream = skein::cuda::stream();
  skein::cuda::Event begin(true), end(true);
  begin.record(stream);
  for (long i = 0; i < n; ++i) f();
  end.record(stream);
  end.synchronize();
  const double seconds = 1e-3 * static_cast<double>(end.since(begin));
  return {seconds, seconds};
}
template <class F> Candidate gpu_candidate(F f, int warm_up = 20) {
  for (int i = 0; i < warm_up; ++i) f();
  skein::cuda::synchronize(skein::cuda::current_device());
  return [f](long n) mutable { return timed_by_events(n, f); };
}

/// Bytes a second of a copy within the device (read and written), over `bytes` each.
inline double gpu_bandwidth(std::size_t bytes) {
  const skein::Cuda device = skein::cuda::current_device();
  skein::Arena<std::byte, skein::Cuda> from(bytes, device), to(bytes, device);
  const Candidate copy = gpu_candidate([&] { skein::Memory<skein::Cuda>::copy(to.data(), from.data(), bytes, device); });
  double least = 1e9;
  for (int i = 0; i < 20; ++i) least = std::min(least, copy(5).wall / 5);
  return 2.0 * static_cast<double>(bytes) / least;
}

/// Slices long enough that a launch more or less does not count; shorter with --quick.
inline Plan gpu_plan(bool quick) { return {quick ? 0.01 : 0.03, quick ? 20 : 60}; }

/// The peer's variants on a GPU, each by its option.
inline std::vector<PeerVariant> gpu_variants(std::vector<std::string> options, bool images = false) {
  std::vector<PeerVariant> v;
  for (const std::string& o : options) v.push_back({1, false, images, false, o});
  return v;
}

/// Fills a line: ours against this peer (or alone); `wrong` is why the results are not to be believed, or empty.
inline bool against_on_gpu(Line& l, const Candidate& ours, Peer* peer, const std::string& wrong, bool quick) {
  return against(l, ours, peer, wrong, {gpu_plan(quick), gpu_plan(quick), false});
}

/// A peer of bench/cuda/peer, or nothing where there is none or it does not start.
inline std::unique_ptr<Peer> gpu_peer(const std::string& script, const std::vector<std::string>& arguments,
                                      const PeerVariant& v) {
  if (!Peer::available()) return nullptr;
  try {
    return std::make_unique<Peer>("../cuda/peer/" + script, arguments, v);
  } catch (const std::exception& e) {
    std::cout << "  peer with " << v.name() << " left out: " << e.what() << std::endl;
    return nullptr;
  }
}

}  // namespace bench
