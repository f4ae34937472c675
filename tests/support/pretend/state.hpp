// SPDX-License-Identifier: Apache-2.0
// What the sources of the pretend runtime itself share; the libraries above it include pretend.hpp only.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

#include "pretend.hpp"

namespace pretend {

cudaError_t allocate(void** p, std::size_t bytes, int device);
cudaError_t release(void* p);
std::size_t bytes_used(int device);
std::size_t bytes_there();
long allocations(int device);

/// Blocks until all streams of the current device are done.
void drain_all();

struct Node {
  Operation operation;
  std::set<std::size_t> after;
};
/// What was captured; shared by the graph and the graphs' executables.
struct Recorded {
  std::vector<Node> nodes;
};
/// A capture in progress; over several streams, joined by events.
struct Capture {
  std::shared_ptr<Recorded> graph = std::make_shared<Recorded>();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  cudaStream_t origin = nullptr;
  unsigned long long id = 0;
  bool broken = false;
};

}  // namespace pretend

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<pretend::Capture> capture;
  std::set<std::size_t> tail;  // the nodes that the next one follows
  // what the stream's own thread does
  std::mutex lock;
  std::condition_variable changed;
  std::deque<pretend::Operation> queue;
  std::thread worker;
  unsigned long given = 0, done = 0;
  bool stop = false;
};
struct CUevent_st {
  unsigned flags = 0;
  int device = 0;
  bool recorded = false;
  std::shared_ptr<std::atomic<bool>> reached;  // of the last record
  std::shared_ptr<std::atomic<double>> when = std::make_shared<std::atomic<double>>(0.0);
  std::shared_ptr<pretend::Capture> capture;  // last recorded inside of one
  std::set<std::size_t> tail;
};
struct CUgraph_st {
  std::shared_ptr<pretend::Recorded> recorded = std::make_shared<pretend::Recorded>();
};
struct CUgraphExec_st {
  std::shared_ptr<pretend::Recorded> recorded;
  int device = 0;
};
struct CUmemPoolHandle_st {
  int device = 0;
  std::uint64_t threshold = 0;
};
