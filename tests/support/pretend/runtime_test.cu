// SPDX-License-Identifier: Apache-2.0
// The pretend CUDA runtime itself: what a real one refuses it refuses too, and what a GPU's memory would not show it does not
// show.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>

#include <skein/device/cuda/launch.hpp>
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
