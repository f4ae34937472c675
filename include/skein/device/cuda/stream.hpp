// SPDX-License-Identifier: Apache-2.0
// Streams and events. Every operation of the library goes to the calling thread's current stream of the device: an own one for
// each (thread, device), so that ranks that are threads never wait for each other; StreamScope puts another in its place. Work of
// one stream runs in its order; between streams there is an Event.
#pragma once
#include <array>
#include <memory>
#include <utility>

#include "status.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// A stream of the device that is current when it is made. Does not wait for the legacy default stream.
class Stream {
 public:
  Stream() : device_(current_device()) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  Stream(Stream&& o) noexcept : stream_(std::exchange(o.stream_, nullptr)), device_(o.device_) {}
  Stream& operator=(Stream&& o) noexcept {
    std::swap(stream_, o.stream_);
    std::swap(device_, o.device_);
    return *this;
  }
  ~Stream() {
    if (stream_) ignore(cudaStreamDestroy(stream_));
  }

  cudaStream_t get() const { return stream_; }
  Cuda device() const { return device_; }
  /// Blocks until all that was given to it is done. Throws DeviceError for what went wrong there since.
  void synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
  Cuda device_{};
};

/// A point in a stream, to wait for; without time stamps unless asked for.
class Event {
 public:
  Event() : Event(false) {}
  explicit Event(bool timed) {
    check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  Event(Event&& o) noexcept : event_(std::exchange(o.event_, nullptr)) {}
  Event& operator=(Event&& o) noexcept {
    std::swap(event_, o.event_);
    return *this;
  }
  ~Event() {
    if (event_) ignore(cudaEventDestroy(event_));
  }

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  /// The stream goes on only when the event has come; the host does not wait.
  void hold(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
  bool done() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }
  void synchronize() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  /// Milliseconds from `begin` to this; both timed and done.
  float since(const Event& begin) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin.event_, event_), "cudaEventElapsedTime");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

namespace detail {
inline constexpr int most_devices = 64;
/// Have the calling thread's streams ended? May be asked then, too.
inline thread_local bool streams_ended = false;

/// One thread's streams: made when they are first asked for. The thread's end waits for them: what it used may be released by
/// another thread, on a stream that knows nothing of these, and the pool would hand it out again while kernels still run.
struct ThreadStreams {
  std::array<std::unique_ptr<Stream>, most_devices> own;
  std::array<cudaStream_t, most_devices> current{};

  ThreadStreams() = default;
  ThreadStreams(const ThreadStreams&) = delete;
  ThreadStreams& operator=(const ThreadStreams&) = delete;
  ~ThreadStreams() {
    for (const auto& stream : own)
      if (stream) ignore(cudaStreamSynchronize(stream->get()));
    streams_ended = true;
  }
};
inline ThreadStreams& thread_streams() {
  thread_local ThreadStreams streams;
  return streams;
}
inline std::size_t index_of(Cuda device) {
  if (device.ordinal < 0 || device.ordinal >= most_devices)
    throw ArgumentError(text("Cuda{{}} is no ordinal of a GPU", device.ordinal));
  return static_cast<std::size_t>(device.ordinal);
}
}  // namespace detail

/// The calling thread's stream of `device`, which becomes the current device.
inline cudaStream_t stream(Cuda device) {
  use(device);
  detail::ThreadStreams& t = detail::thread_streams();
  const std::size_t i = detail::index_of(device);
  if (t.current[i]) return t.current[i];
  if (!t.own[i]) t.own[i] = std::make_unique<Stream>();
  return t.current[i] = t.own[i]->get();
}
/// The calling thread's stream of the current device.
inline cudaStream_t stream() { return stream(current_device()); }
/// Is that stream being captured: nothing of what it is given runs then.
inline bool is_capturing(Cuda device) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream(device), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// Blocks until the calling thread's stream of `device` is done. The device that is current stays so.
inline void synchronize(Cuda device) {
  const UseDevice there(device);
  check(cudaStreamSynchronize(stream(device)), "cudaStreamSynchronize");
}

/// Makes `replacement` the calling thread's stream of its device for a scope; the device that is current stays so. The thread's
/// workspace stays one: whoever gives work to both streams orders what uses it (cuBLASLt, cuDNN, reductions) by an Event.
class StreamScope {
 public:
  explicit StreamScope(const Stream& replacement) : index_(detail::index_of(replacement.device())) {
    const UseDevice there(replacement.device());
    before_ = stream(replacement.device());
    detail::thread_streams().current[index_] = replacement.get();
  }
  ~StreamScope() { detail::thread_streams().current[index_] = before_; }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  std::size_t index_;
  cudaStream_t before_ = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::cuda
