// SPDX-License-Identifier: Apache-2.0
// Streams, events, capture and graphs of the pretend runtime. A stream does at once what it is given; collectives, and what
// follows them, on a thread of its own; with SKEIN_PRETEND_STREAMS=async everything there, and late, so that a missing wait
// shows. Capture follows the rules of the real one: what may synchronise is refused and breaks the capture.
#include <atomic>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "state.hpp"

namespace pretend {
namespace {

bool asynchronous() {
  static const bool is = [] {
    const char* value = std::getenv("SKEIN_PRETEND_STREAMS");
    return value && std::strcmp(value, "async") == 0;
  }();
  return is;
}

/// What all streams and events share.
struct Shared {
  std::recursive_mutex lock;
  /// Held by whoever uses one: another thread may destroy its stream while a device is drained.
  std::map<cudaStream_t, std::shared_ptr<CUstream_st>> streams;
  std::set<cudaEvent_t> events;
  std::set<std::shared_ptr<Capture>> captures;
  std::vector<std::shared_ptr<CUstream_st>> legacy;  // the default stream of each device
  unsigned long long next_capture = 1;
  std::mutex event_lock;
  std::condition_variable event_reached;
};
Shared& shared() {
  static Shared* all = new Shared;
  return *all;
}
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

bool is_default(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread; }

/// The stream behind a handle; null where there is none.
std::shared_ptr<CUstream_st> find(cudaStream_t stream) {
  Shared& s = shared();
  const std::lock_guard hold(s.lock);
  if (is_default(stream)) {
    if (s.legacy.empty())
      for (int d = 0; d < most_devices; ++d) {
        s.legacy.push_back(std::make_shared<CUstream_st>());
        s.legacy.back()->device = d;
      }
    return s.legacy[static_cast<std::size_t>(current_device())];
  }
  const auto found = s.streams.find(stream);
  return found == s.streams.end() ? nullptr : found->second;
}

void execute(const Operation& operation) {
  const Open open(operation.devices);
  operation.run();
}

void work(CUstream_st* stream) {
  std::minstd_rand delay(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(stream) >> 6));
  (void)cudaSetDevice(stream->device);
  std::unique_lock hold(stream->lock);
  for (;;) {
    stream->changed.wait(hold, [&] { return stream->stop || !stream->queue.empty(); });
    if (stream->queue.empty()) return;
    Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    hold.unlock();
    if (asynchronous()) std::this_thread::sleep_for(std::chrono::microseconds(delay() % 64));
    execute(operation);
    operation = {};
    hold.lock();
    ++stream->done;
    stream->changed.notify_all();
  }
}

void drain_stream(CUstream_st& stream) {
  std::unique_lock hold(stream.lock);
  const unsigned long wanted = stream.given;
  stream.changed.wait(hold, [&] { return stream.done >= wanted; });
}

cudaError_t add_node(CUstream_st& stream, Operation operation) {
  Capture& capture = *stream.capture;
  if (capture.broken) return cudaErrorStreamCaptureInvalidated;
  capture.graph->nodes.push_back({std::move(operation), stream.tail});
  stream.tail = {capture.graph->nodes.size() - 1};
  return cudaSuccess;
}

/// All nodes that lie before these.
std::set<std::size_t> ancestors(const Recorded& graph, const std::set<std::size_t>& of) {
  std::set<std::size_t> all;
  std::vector<std::size_t> open(of.begin(), of.end());
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (!all.insert(node).second) continue;
    open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  return all;
}

/// The nodes of a graph, each behind those that it follows; else the last captured first, so that a missing dependency shows.
std::vector<const Node*> contrary_order(const Recorded& graph) {
  std::vector<std::size_t> before(graph.nodes.size());
  std::vector<std::vector<std::size_t>> behind(graph.nodes.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    before[i] = graph.nodes[i].after.size();
    for (const std::size_t each : graph.nodes[i].after) behind[each].push_back(i);
    if (before[i] == 0) ready.insert(i);
  }
  std::vector<const Node*> order;
  while (!ready.empty()) {
    const std::size_t last = *ready.rbegin();
    ready.erase(last);
    order.push_back(&graph.nodes[last]);
    for (const std::size_t each : behind[last])
      if (--before[each] == 0) ready.insert(each);
  }
  return order;
}

bool active(const std::shared_ptr<Capture>& capture) { return capture && shared().captures.count(capture) > 0; }

double now() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

cudaError_t unsafe_call() {
  Shared& s = shared();
  const std::lock_guard hold(s.lock);
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& capture : s.captures) {
    const bool own = capture->thread == std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed;
    const bool others = thread_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (own || others) {
      capture->broken = true;
      complain("a call that may synchronise, while a stream captures");
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  return cudaSuccess;
}

cudaError_t submit(cudaStream_t handle, Operation operation) {
  Shared& s = shared();
  const auto stream = find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t status = device_status(stream->device)) return status;
  {
    const std::lock_guard hold(s.lock);
    if (stream->capture) return add_node(*stream, std::move(operation));
    if (is_default(handle))
      for (const auto& capture : s.captures)
        if (!(capture->origin->flags & cudaStreamNonBlocking) && capture->origin->device == stream->device) {
          capture->broken = true;
          return cudaErrorStreamCaptureImplicit;
        }
  }
  if (is_default(handle)) {  // it waits for the others of its device
    drain_all();
    execute(operation);
    return cudaSuccess;
  }
  std::unique_lock hold(stream->lock);
  if (!asynchronous() && !operation.blocks && stream->given == stream->done) {
    hold.unlock();
    execute(operation);
    return cudaSuccess;
  }
  if (!stream->worker.joinable()) stream->worker = std::thread(work, stream.get());
  stream->queue.push_back(std::move(operation));
  ++stream->given;
  stream->changed.notify_all();
  return cudaSuccess;
}

int device_of(cudaStream_t handle) {
  const auto stream = find(handle);
  return stream ? stream->device : current_device();
}
bool capturing(cudaStream_t handle) {
  const auto stream = find(handle);
  return stream && stream->capture;
}
unsigned long long capture_number(cudaStream_t handle) {
  const auto stream = find(handle);
  return stream && stream->capture ? stream->capture->id : 0;
}
void drain(cudaStream_t handle) {
  if (const auto stream = find(handle)) drain_stream(*stream);
}
void drain_all() {
  std::vector<std::shared_ptr<CUstream_st>> all;
  {
    const std::lock_guard hold(shared().lock);
    for (const auto& [handle, stream] : shared().streams)
      if (stream->device == current_device()) all.push_back(stream);
  }
  for (const auto& stream : all) drain_stream(*stream);
}

}  // namespace pretend

using namespace pretend;

namespace pretend {
namespace {
std::atomic<long> waits_made{0};
}
void count_wait() { ++waits_made; }
}  // namespace pretend

extern "C" {

long skein_pretend_waits() { return waits_made; }

int skein_kernel_launch(cudaStream_t stream, void (*run)(void*), void* copy, void (*destroy)(void*)) {
  std::shared_ptr<void> held(copy, destroy);
  if (device_of(stream) != current_device()) {
    complain("a kernel is launched on a stream of another device than the current one");
    return note(cudaErrorInvalidResourceHandle);
  }
  return note(submit(stream, {[run, held] { run(held.get()); }, bit(device_of(stream)), "kernel"}));
}

// ---- streams
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (!stream) return note(cudaErrorInvalidValue);
  if (const cudaError_t status = device_status(current_device())) return note(status);
  auto made = std::make_shared<CUstream_st>();
  made->device = current_device();
  made->flags = flags;
  made->priority = priority;
  const std::lock_guard hold(shared().lock);
  *stream = made.get();
  shared().streams.emplace(made.get(), std::move(made));
  return note(cudaSuccess);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Shared& s = shared();
  if (is_default(handle)) return note(cudaErrorInvalidResourceHandle);
  const auto stream = find(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  {
    const std::lock_guard hold(s.lock);
    if (stream->capture) stream->capture->broken = true, s.captures.erase(stream->capture);
  }
  drain_stream(*stream);
  {
    const std::lock_guard hold(stream->lock);
    stream->stop = true;
    stream->changed.notify_all();
  }
  if (stream->worker.joinable()) stream->worker.join();
  const std::lock_guard hold(s.lock);
  s.streams.erase(handle);
  return note(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  count_wait();
  const auto stream = find(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    stream->capture->broken = true;
    complain("cudaStreamSynchronize of a stream that captures");
    return note(cudaErrorStreamCaptureUnsupported);
  }
  if (is_default(handle)) {
    if (const cudaError_t status = unsafe_call()) return note(status);
    drain_all();
  }
  drain_stream(*stream);
  return note(device_status(stream->device));
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const auto stream = find(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    stream->capture->broken = true;
    return note(cudaErrorStreamCaptureUnsupported);
  }
  if (const cudaError_t status = unsafe_call()) return note(status);
  const std::lock_guard hold(stream->lock);
  return note(stream->done < stream->given ? cudaErrorNotReady : device_status(stream->device));
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  if (!find(stream)) return note(cudaErrorInvalidResourceHandle);
  *device = device_of(stream);
  return note(cudaSuccess);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  if (!find(stream)) return note(cudaErrorInvalidResourceHandle);
  *flags = find(stream)->flags;
  return note(cudaSuccess);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  if (!find(stream)) return note(cudaErrorInvalidResourceHandle);
  *priority = find(stream)->priority;
  return note(cudaSuccess);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return note(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return note(submit(stream, {[=] { function(data); }, 0, "host function", true}));
}
cudaError_t cudaDeviceSynchronize() {
  count_wait();
  Shared& s = shared();
  {
    const std::lock_guard hold(s.lock);
    for (const auto& capture : s.captures)
      if (capture->origin->device == current_device()) {
        capture->broken = true;
        complain("cudaDeviceSynchronize while a stream of the device captures");
        return note(cudaErrorStreamCaptureUnsupported);
      }
  }
  drain_all();
  return note(device_status(current_device()));
}

// ---- events
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (!event) return note(cudaErrorInvalidValue);
  auto* made = new CUevent_st;
  made->flags = flags;
  made->device = current_device();
  const std::lock_guard hold(shared().lock);
  shared().events.insert(made);
  *event = made;
  return note(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard hold(shared().lock);
  if (!shared().events.erase(event)) return note(cudaErrorInvalidResourceHandle);
  delete event;
  return note(cudaSuccess);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
  Shared& s = shared();
  std::unique_lock hold(s.lock);
  const auto stream = find(handle);
  if (!stream || !s.events.count(event)) return note(cudaErrorInvalidResourceHandle);
  if (stream->device != event->device) {
    complain("an event is recorded in a stream of another device");
    return note(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture && !(flags & cudaEventRecordExternal)) {
    event->capture = stream->capture;
    event->tail = stream->tail;
    event->recorded = true;
    return note(stream->capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  }
  event->capture = nullptr;
  event->recorded = true;
  event->reached = std::make_shared<std::atomic<bool>>(false);
  hold.unlock();
  return note(submit(handle, {[reached = event->reached, when = event->when] {
                                *when = now();
                                const std::lock_guard lock(shared().event_lock);
                                *reached = true;
                                shared().event_reached.notify_all();
                              },
                              0, "event record"}));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return cudaEventRecordWithFlags(event, stream, 0); }
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  Shared& s = shared();
  std::unique_lock hold(s.lock);
  const auto stream = find(handle);
  if (!stream || !s.events.count(event)) return note(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (!active(event->capture)) return note(cudaErrorCapturedEvent);
    if (stream->capture && stream->capture != event->capture) return note(cudaErrorStreamCaptureMerge);
    if (!stream->capture) stream->capture = event->capture, stream->tail.clear();
    stream->tail.insert(event->tail.begin(), event->tail.end());
    return note(cudaSuccess);
  }
  if (!event->recorded) return note(cudaSuccess);
  if (stream->capture) {
    stream->capture->broken = true;
    complain("a stream that captures waits for an event from outside of the capture");
    return note(cudaErrorStreamCaptureIsolation);
  }
  auto reached = event->reached;
  hold.unlock();
  if (*reached) return note(cudaSuccess);
  return note(submit(handle, {[reached] {
                                std::unique_lock lock(shared().event_lock);
                                shared().event_reached.wait(lock, [&] { return reached->load(); });
                              },
                              0, "event wait", true}));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  {
    const std::lock_guard hold(shared().lock);
    if (!shared().events.count(event)) return note(cudaErrorInvalidResourceHandle);
    if (event->capture) return note(cudaErrorCapturedEvent);
  }
  if (const cudaError_t status = unsafe_call()) return note(status);
  if (event->reached && !*event->reached) return note(cudaErrorNotReady);
  return note(device_status(event->device));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  count_wait();
  {
    const std::lock_guard hold(shared().lock);
    if (!shared().events.count(event)) return note(cudaErrorInvalidResourceHandle);
    if (event->capture) return note(cudaErrorCapturedEvent);
  }
  if (const cudaError_t status = unsafe_call()) return note(status);
  if (auto reached = event->reached) {
    std::unique_lock lock(shared().event_lock);
    shared().event_reached.wait(lock, [&] { return reached->load(); });
  }
  return note(device_status(event->device));
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard hold(shared().lock);
  if (!shared().events.count(start) || !shared().events.count(end)) return note(cudaErrorInvalidResourceHandle);
  if ((start->flags | end->flags) & cudaEventDisableTiming || !start->reached || !end->reached)
    return note(cudaErrorInvalidResourceHandle);
  if (!*start->reached || !*end->reached) return note(cudaErrorNotReady);
  *ms = static_cast<float>(end->when->load() - start->when->load());
  return note(cudaSuccess);
}

// ---- capture
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Shared& s = shared();
  const std::lock_guard hold(s.lock);
  if (is_default(handle)) return note(cudaErrorStreamCaptureUnsupported);
  const auto stream = find(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (stream->capture) return note(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream.get();
  capture->id = s.next_capture++;
  stream->capture = capture;
  stream->tail.clear();
  s.captures.insert(capture);
  return note(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  Shared& s = shared();
  const std::lock_guard hold(s.lock);
  const auto stream = find(handle);
  if (graph) *graph = nullptr;
  if (!stream || !graph) return note(cudaErrorInvalidValue);
  const auto capture = stream->capture;
  if (!capture) return note(cudaErrorIllegalState);
  if (capture->origin != stream.get()) return note(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return note(cudaErrorStreamCaptureWrongThread);
  const auto reached = ancestors(*capture->graph, stream->tail);
  for (const auto& [other, each] : s.streams)
    if (each->capture == capture) each->capture = nullptr, each->tail.clear();
  s.captures.erase(capture);
  if (capture->broken) return note(cudaErrorStreamCaptureInvalidated);
  if (reached.size() != capture->graph->nodes.size()) {
    complain("a capture ends while a stream that joined it has work that the first one does not wait for");
    return note(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new CUgraph_st{capture->graph};
  return note(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const std::lock_guard hold(shared().lock);
  const auto stream = find(handle);
  if (!stream || !status) return note(cudaErrorInvalidValue);
  *status = !stream->capture          ? cudaStreamCaptureStatusNone
            : stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return note(cudaSuccess);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  const cudaError_t result = cudaStreamIsCapturing(handle, status);
  if (result != cudaSuccess) return result;
  const auto stream = find(handle);
  if (id) *id = stream->capture ? stream->capture->id : 0;
  if (graph) *graph = nullptr;
  if (dependencies) *dependencies = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return note(cudaSuccess);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (!mode) return note(cudaErrorInvalidValue);
  std::swap(*mode, thread_mode);
  return note(cudaSuccess);
}

// ---- graphs
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return note(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (!exec || !graph) return note(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{graph->recorded, current_device()};
  return note(cudaSuccess);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return note(cudaErrorInvalidValue);
  return note(submit(stream, {[graph = exec->recorded] {
                                for (const Node* node : contrary_order(*graph)) execute(node->operation);
                              },
                              0, "graph",
                              std::any_of(exec->recorded->nodes.begin(), exec->recorded->nodes.end(),
                                          [](const Node& n) { return n.operation.blocks; })}));
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) { return note(exec ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return note(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return note(cudaSuccess);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (!graph || !count) return note(cudaErrorInvalidValue);
  const std::size_t all = graph->recorded->nodes.size();
  if (nodes)
    for (std::size_t i = 0; i < std::min(*count, all); ++i)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(&graph->recorded->nodes[i]);
  *count = all;
  return note(cudaSuccess);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  if (!exec || !graph) return note(cudaErrorInvalidValue);
  const auto& before = exec->recorded->nodes;
  const auto& after = graph->recorded->nodes;
  bool same = before.size() == after.size();
  for (std::size_t i = 0; same && i < before.size(); ++i)
    same = std::strcmp(before[i].operation.name, after[i].operation.name) == 0 && before[i].after == after[i].after;
  if (info) *info = {}, info->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  if (!same) return note(cudaErrorGraphExecUpdateFailure);
  exec->recorded = graph->recorded;
  return note(cudaSuccess);
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  if (!graph || !path) return note(cudaErrorInvalidValue);
  std::FILE* file = std::fopen(path, "w");
  if (!file) return note(cudaErrorOperatingSystem);
  std::fprintf(file, "digraph {\n");
  for (std::size_t i = 0; i < graph->recorded->nodes.size(); ++i) {
    std::fprintf(file, "  n%zu [label=\"%s\"]\n", i, graph->recorded->nodes[i].operation.name);
    for (const std::size_t before : graph->recorded->nodes[i].after) std::fprintf(file, "  n%zu -> n%zu\n", before, i);
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
  return note(cudaSuccess);
}

}  // extern "C"
