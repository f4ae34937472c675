// SPDX-License-Identifier: Apache-2.0
// The pretend CUDA runtime itself: what a real one refuses it refuses too, and what a GPU's memory would not show it does not
// show.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include <skein/device/cuda/launch_blocks.hpp>
#include <vector>

#include "lasting_error.hpp"
#include "pretend.hpp"

namespace sk = skein;

namespace {

struct AddIndex {
  float* x;
  float by;
  constexpr void operator()(long i) const { x[i] += by * static_cast<float>(i); }
};
struct Times {
  float* x;
  float by;
  constexpr void operator()(long i) const { x[i] *= by; }
};
/// Each but the first takes what lies before it: a race.
struct TakeBefore {
  float* x;
  constexpr void operator()(long i) const {
    if (i > 0) x[i] = x[i - 1];
  }
};
/// The same behind it.
struct TakeBehind {
  float* x;
  long n;
  constexpr void operator()(long i) const {
    if (i + 1 < n) x[i] = x[i + 1];
  }
};
/// The same within a step of a block.
struct TakeInBlock {
  static constexpr int threads = 8;
  struct Own {};
  float* x;
  int by;
  int steps() const { return 2; }
  std::size_t shared_bytes() const { return sizeof(float) * (threads + 2); }
  void operator()(int step, long block, int thread, Own&, void* shared) const {
    float* all = static_cast<float*>(shared) + 1;
    if (step == 0) {
      all[thread] = static_cast<float>(thread + 1);
      x[block * threads + thread] = all[thread + by];
    }
  }
};
struct Value {
  const float* x;
  constexpr float operator()(long i) const { return x[i]; }
};
struct Plus {
  constexpr float operator()(float a, float b) const { return a + b; }
};

/// Whether f ends this process by a signal (in a child).
template <class F> bool dies(F f) {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGABRT, SIG_DFL);
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

float* device_floats(long n) {
  void* p = nullptr;
  REQUIRE(cudaMalloc(&p, static_cast<std::size_t>(n) * sizeof(float)) == cudaSuccess);
  return static_cast<float*>(p);
}

}  // namespace

TEST_CASE("pretend: memory of the device is closed to the host, new memory is NaN, and a guard sees who writes too far") {
  float* x = device_floats(8);
  float host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(dies([&] { host[0] = *static_cast<volatile float*>(x); }));
  REQUIRE(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(std::isnan(host[0]));
  CHECK(dies([&] {
    sk::cuda::for_each(9, AddIndex{x, 1e36f});
    cudaDeviceSynchronize();
    cudaFree(x);
  }));
  REQUIRE(cudaFree(x) == cudaSuccess);
  CHECK(cudaFree(x) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

TEST_CASE("pretend: what a call refuses is forgotten, an illegal address lasts") {
  float host[8] = {};
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(lasting_error() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(dies([] {
    pretend::fail_device(pretend::current_device(), cudaErrorIllegalAddress);
    if (lasting_error() == cudaErrorIllegalAddress) std::abort();
  }));
}

TEST_CASE("pretend: copies look at both sides") {
  float* x = device_floats(8);
  float host[8] = {};
  CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(x + 1, host, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemset(x, 0, 33) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  cudaFree(x);
}

TEST_CASE("pretend: devices are apart") {
  if (sk::cuda::device_count() < 2) return;
  float* x = device_floats(4);
  sk::cuda::use(sk::Cuda{1});
  CHECK(dies([&] { sk::cuda::for_each(4, AddIndex{x, 1}), cudaDeviceSynchronize(); }));
  CHECK(cudaMemset(x, 0, 4) == cudaErrorInvalidValue);
  sk::cuda::use(sk::Cuda{0});
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  (void)cudaGetLastError();
  cudaFree(x);
}

TEST_CASE("pretend: kernels run in stream order, and a captured one runs when its graph does") {
  const sk::cuda::Stream stream;
  const sk::cuda::StreamScope scope(stream);
  sk::Arena<float, sk::Cuda> x(4, sk::Cuda{0}), sum(1, sk::Cuda{0});
  const auto values = [&](auto& arena) {
    std::vector<float> host(arena.size());
    sk::Memory<sk::Cuda>::to_host(host.data(), arena.data(), host.size() * sizeof(float));
    return host;
  };
  sk::cuda::for_each(4, AddIndex{x.data(), 2});
  sk::cuda::reduce_into(sum.data(), 4, Value{x.data()}, Plus{}, 0.0f);
  CHECK(values(sum)[0] == 12);

  REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  sk::cuda::for_each(4, AddIndex{x.data(), 1});
  sk::cuda::reduce_into(sum.data(), 4, Value{x.data()}, Plus{}, 0.0f);
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  CHECK(values(sum)[0] == 12);
  std::size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  CHECK(nodes == 2);
  cudaGraphExec_t exec{};
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  cudaGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) REQUIRE(cudaGraphLaunch(exec, stream.get()) == cudaSuccess);
  CHECK(values(sum)[0] == 30);
  cudaGraphExecDestroy(exec);
}

TEST_CASE("pretend: a kernel's indices, a block's threads and a graph's nodes run in an order that nobody leans on") {
  constexpr long n = 9;
  sk::Arena<float, sk::Cuda> x(n, sk::Cuda{0});
  const auto values = [&] {
    std::vector<float> host(n);
    sk::Memory<sk::Cuda>::to_host(host.data(), x.data(), n * sizeof(float));
    return host;
  };
  const auto spread = [&](auto take, std::size_t from) {  // how many have the value of one end: all or one in a plain order
    std::vector<float> host(n, 0.0f);
    host[from] = 1;
    sk::Memory<sk::Cuda>::from_host(x.data(), host.data(), n * sizeof(float));
    sk::cuda::for_each(n, take);
    long ones = 0;
    for (const float v : values()) ones += v == 1.0f;
    return ones;
  };
  CHECK(spread(TakeBefore{x.data()}, 0) < n);
  CHECK(spread(TakeBehind{x.data(), n}, n - 1) < n);
  for (const int by : {-1, 1}) {  // in one of two blocks a neighbour has not written yet
    sk::Arena<float, sk::Cuda> y(16, sk::Cuda{0});
    sk::cuda::for_each_block(2, TakeInBlock{y.data(), by});
    std::vector<float> host(16);
    sk::Memory<sk::Cuda>::to_host(host.data(), y.data(), 16 * sizeof(float));
    CHECK((std::isnan(host[3]) != std::isnan(host[11])));
  }

  const sk::cuda::Stream first, second;
  sk::cuda::Event fork, join;
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  for (const bool waits : {true, false}) {  // second: + 1; first: times 3, behind that or not
    x.clear();
    sk::cuda::synchronize(sk::Cuda{0});
    REQUIRE(cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    fork.record(first.get());
    fork.hold(second.get());
    {
      const sk::cuda::StreamScope scope(second);
      sk::cuda::for_each(2, AddIndex{x.data(), 1});
    }
    join.record(second.get());
    if (waits) join.hold(first.get());
    {
      const sk::cuda::StreamScope scope(first);
      sk::cuda::for_each(2, Times{x.data(), 3});
    }
    if (!waits) join.hold(first.get());
    REQUIRE(cudaStreamEndCapture(first.get(), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    cudaGraphDestroy(graph);
    REQUIRE(cudaGraphLaunch(exec, first.get()) == cudaSuccess);
    first.synchronize();
    cudaGraphExecDestroy(exec);
    CHECK(values()[1] == (waits ? 3.0f : 1.0f));
  }
}

TEST_CASE("pretend: a function of the host is another thread's, and what is behind it waits") {
  const sk::cuda::Stream stream;
  static std::thread::id thread;
  static std::atomic<bool> go;
  const auto function = [](void*) {
    thread = std::this_thread::get_id();
    while (!go) std::this_thread::yield();
  };
  go = false;
  REQUIRE(cudaLaunchHostFunc(stream.get(), function, nullptr) == cudaSuccess);
  CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
  (void)cudaGetLastError();
  go = true;
  stream.synchronize();
  CHECK(thread != std::this_thread::get_id());
}

TEST_CASE("pretend: what a capture forbids is refused, and breaks it") {
  const sk::cuda::Stream stream;
  void* p = nullptr;
  cudaGraph_t graph{};
  const auto broken_by = [&](auto&& call, cudaError_t wanted) {
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(call() == wanted);
    CHECK(cudaStreamEndCapture(stream.get(), &graph) == cudaErrorStreamCaptureInvalidated);
    (void)cudaGetLastError();
  };
  broken_by([&] { return cudaStreamSynchronize(stream.get()); }, cudaErrorStreamCaptureUnsupported);
  broken_by([&] { return cudaMalloc(&p, 4); }, cudaErrorStreamCaptureUnsupported);
  broken_by([&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
  float host = 0;
  broken_by([&] { return cudaMemcpy(&host, &host, 4, cudaMemcpyHostToHost); }, cudaErrorStreamCaptureUnsupported);
  REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMalloc(&p, 4) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  cudaFree(p);
}

TEST_CASE("pretend: a second stream joins a capture by an event, and has to come back") {
  const sk::cuda::Stream first, second;
  sk::cuda::Event fork, join;
  sk::Arena<float, sk::Cuda> x(4, sk::Cuda{0});
  cudaGraph_t graph{};
  for (const bool comes_back : {true, false}) {
    REQUIRE(cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    fork.record(first.get());
    fork.hold(second.get());
    {
      const sk::cuda::StreamScope scope(second);
      sk::cuda::for_each(4, AddIndex{x.data(), 1});
    }
    join.record(second.get());
    CHECK(cudaEventQuery(join.get()) == cudaErrorCapturedEvent);
    if (comes_back) join.hold(first.get());
    CHECK(cudaStreamEndCapture(first.get(), &graph) == (comes_back ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
    if (comes_back) cudaGraphDestroy(graph);
  }
  CHECK(cudaEventQuery(join.get()) == cudaErrorCapturedEvent);
  (void)cudaGetLastError();
}
