// SPDX-License-Identifier: Apache-2.0
// Memory of the pretend devices: an arena each, closed to the host (mprotect) but while something runs on the device. New memory
// is full of NaNs; a guard behind each allocation finds who writes too far.
#include <atomic>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "state.hpp"

namespace pretend {
namespace {

constexpr std::size_t reserved = std::size_t{8} << 30, guard = 256, unit = 512;
constexpr unsigned char nan_byte = 0xFF, guard_byte = 0xFD;

struct Block {
  std::size_t bytes, whole;  // asked for; with guard and rounding
};

/// One device's memory: first fit over an ordered map.
struct Arena {
  unsigned char* base = nullptr;
  std::size_t high = 0;  // end of what was ever used
  int open = 0;
  bool writable = false;                    // what the pages say; may stay true while nothing runs, see close_locked
  long since_change = 0;                    // how often it was closed since memory was last allocated or released
  std::map<std::size_t, Block> used;        // by offset
  std::map<std::size_t, std::size_t> free;  // offset -> bytes
};

std::mutex& lock() {
  static std::mutex* m = new std::mutex;
  return *m;
}
Arena* arenas() {
  static Arena* all = new Arena[most_devices];
  return all;
}
std::map<std::uintptr_t, std::size_t>& pinned() {
  static auto* all = new std::map<std::uintptr_t, std::size_t>;
  return *all;
}
bool always_open() {
  static const bool is = [] {
    const char* value = std::getenv("SKEIN_PRETEND_OPEN");
    return value && *value == '1';
  }();
  return is;
}

constexpr std::size_t page = 4096;
std::size_t to_page(std::size_t n) { return (n + page - 1) / page * page; }

void protect(Arena& arena) {
  const bool open = arena.open > 0 || always_open();
  arena.writable = open;
  if (!arena.base || arena.high == 0) return;
  if (mprotect(arena.base, to_page(arena.high), open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    std::perror("pretend CUDA: mprotect");
    std::abort();
  }
}

void open_locked(Arena& arena) {
  if (arena.open++ == 0 && !arena.writable) protect(arena);
}
/// Closes to the host: always in the first operations on new memory, later every eighth time, since two system calls cost more
/// than most kernels of a test and a host that touches the device's memory in a step does so in the first.
void close_locked(Arena& arena) {
  constexpr long always = 12;
  if (--arena.open > 0) return;
  if (++arena.since_change <= always || arena.since_change % 8 == 0) protect(arena);
}

/// Gives a free end of the arena back: opening costs time for each page below `high` that was ever written.
void give_back_end(Arena& arena) {
  if (arena.free.empty()) return;
  const auto last = std::prev(arena.free.end());
  if (last->first + last->second != arena.high) return;
  const std::size_t from = to_page(last->first), to = to_page(arena.high);
  if (from < to &&
      (mprotect(arena.base + from, to - from, PROT_NONE) != 0 || madvise(arena.base + from, to - from, MADV_DONTNEED) != 0)) {
    std::perror("pretend CUDA: the end of a device's memory");
    std::abort();
  }
  arena.high = last->first;
  arena.free.erase(last);
}

void check_guard(Arena& arena, std::size_t offset, const Block& block) {
  const unsigned char* end = arena.base + offset + block.bytes;
  for (std::size_t i = 0; i < block.whole - block.bytes; ++i)
    if (end[i] != guard_byte) {
      std::fprintf(stderr, "pretend CUDA: something wrote %zu bytes behind an allocation of %zu bytes\n", i, block.bytes);
      std::abort();
    }
}

}  // namespace

Open::Open(unsigned devices) : devices_(devices) {
  const std::lock_guard hold(lock());
  for (int d = 0; d < most_devices; ++d)
    if (devices_ >> d & 1) open_locked(arenas()[d]);
}
Open::~Open() {
  const std::lock_guard hold(lock());
  for (int d = 0; d < most_devices; ++d)
    if (devices_ >> d & 1) close_locked(arenas()[d]);
}

cudaError_t allocate(void** p, std::size_t bytes, int device) {
  if (!p) return cudaErrorInvalidValue;
  *p = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard hold(lock());
  Arena& arena = arenas()[device];
  if (!arena.base) {
    void* base = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return cudaErrorMemoryAllocation;
    arena.base = static_cast<unsigned char*>(base);
  }
  if (bytes > reserved) return cudaErrorMemoryAllocation;
  const std::size_t whole = (bytes + guard + unit - 1) / unit * unit;
  std::size_t offset = arena.high;
  for (auto it = arena.free.begin(); it != arena.free.end(); ++it)
    if (it->second >= whole) {
      offset = it->first;
      const std::size_t rest = it->second - whole;
      arena.free.erase(it);
      if (rest) arena.free[offset + whole] = rest;
      break;
    }
  if (offset == arena.high) {
    if (arena.high + whole > reserved) return cudaErrorMemoryAllocation;
    arena.high += whole;
  }
  arena.used[offset] = {bytes, whole};
  arena.since_change = 0;
  arena.writable = false;  // new memory may lie behind what is open
  if (arena.open > 0) protect(arena);
  open_locked(arena);
  std::memset(arena.base + offset, nan_byte, bytes);
  std::memset(arena.base + offset + bytes, guard_byte, whole - bytes);
  close_locked(arena);
  *p = arena.base + offset;
  return cudaSuccess;
}

cudaError_t release(void* p) {
  if (!p) return cudaSuccess;
  const std::lock_guard hold(lock());
  for (int d = 0; d < most_devices; ++d) {
    Arena& arena = arenas()[d];
    auto* at = static_cast<unsigned char*>(p);
    if (!arena.base || at < arena.base || at >= arena.base + arena.high) continue;
    const auto found = arena.used.find(static_cast<std::size_t>(at - arena.base));
    if (found == arena.used.end()) return cudaErrorInvalidValue;
    arena.since_change = 0;
    open_locked(arena);
    check_guard(arena, found->first, found->second);
    std::memset(at, nan_byte, found->second.bytes);
    if (found->second.whole >= (std::size_t{1} << 20)) {
      const std::uintptr_t from = (reinterpret_cast<std::uintptr_t>(at) + 4095) / 4096 * 4096;
      const std::uintptr_t to = (reinterpret_cast<std::uintptr_t>(at) + found->second.whole) / 4096 * 4096;
      madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    }
    --arena.open;  // the next operation or allocation closes it
    auto [it, added] = arena.free.emplace(found->first, found->second.whole);
    arena.used.erase(found);
    if (auto next = std::next(it); next != arena.free.end() && it->first + it->second == next->first) {
      it->second += next->second;
      arena.free.erase(next);
    }
    if (it != arena.free.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        arena.free.erase(it);
      }
    }
    give_back_end(arena);
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

Place place_of(const void* p) {
  const std::lock_guard hold(lock());
  const auto* at = static_cast<const unsigned char*>(p);
  for (int d = 0; d < most_devices; ++d) {
    Arena& arena = arenas()[d];
    if (!arena.base || at < arena.base || at >= arena.base + reserved) continue;
    Place place{Place::device, d, 0, nullptr};
    auto next = arena.used.upper_bound(static_cast<std::size_t>(at - arena.base));
    if (next == arena.used.begin()) return place;
    --next;
    const std::size_t inside = static_cast<std::size_t>(at - arena.base) - next->first;
    if (inside < next->second.bytes) place.left = next->second.bytes - inside, place.base = arena.base + next->first;
    return place;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  auto next = pinned().upper_bound(address);
  if (next != pinned().begin()) {
    --next;
    if (address < next->first + next->second)
      return {Place::pinned, -1, next->first + next->second - address, reinterpret_cast<void*>(next->first)};
  }
  return {};
}

bool on_device(const void* p, std::size_t bytes, int device, const char* what) {
  if (bytes == 0) return true;
  const Place place = place_of(p);
  const auto size = std::to_string(bytes);
  if (place.kind == Place::plain)
    complain(std::string(what) + ": " + (p ? "a pointer of the host" : "null") + " where the device wants " + size + " bytes");
  else if (place.left < bytes)
    complain(std::string(what) + " wants " + size + " bytes; the allocation has " + std::to_string(place.left) + " there");
  else if (place.kind == Place::device && place.ordinal != device)
    complain(std::string(what) + " runs on device " + std::to_string(device) + "; its memory is of device " +
             std::to_string(place.ordinal));
  else return true;
  return false;
}

std::size_t bytes_used(int device) {
  const std::lock_guard hold(lock());
  std::size_t sum = 0;
  for (const auto& [offset, block] : arenas()[device].used) sum += block.whole;
  return sum;
}
std::size_t bytes_there() { return reserved; }
long allocations(int device) {
  const std::lock_guard hold(lock());
  return static_cast<long>(arenas()[device].used.size());
}

void pin(const void* p, std::size_t bytes) {
  const std::lock_guard hold(lock());
  pinned()[reinterpret_cast<std::uintptr_t>(p)] = bytes;
}
bool unpin(const void* p) {
  const std::lock_guard hold(lock());
  return pinned().erase(reinterpret_cast<std::uintptr_t>(p)) > 0;
}

}  // namespace pretend

using namespace pretend;

namespace {

/// Faults of a copy's side: `device` is what `kind` says of it.
bool side_fits(const void* p, std::size_t bytes, bool device) {
  const Place place = place_of(p);
  if (!p) return false;
  if (device)
    return place.kind == Place::plain ? (complain("a copy takes a pointer of the host for one of the device"), false)
                                      : place.left >= bytes || (complain("a copy goes beyond its allocation"), false);
  return place.kind != Place::device || (complain("a copy takes a pointer of the device for one of the host"), false);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, bool blocking) {
  if (bytes == 0) return note(cudaSuccess);
  const Place target = place_of(to), source = place_of(from);
  bool to_device = target.kind == Place::device, from_device = source.kind == Place::device;
  switch (kind) {
    case cudaMemcpyHostToHost:
      to_device = from_device = false;
      break;
    case cudaMemcpyHostToDevice:
      to_device = true, from_device = false;
      break;
    case cudaMemcpyDeviceToHost:
      to_device = false, from_device = true;
      break;
    case cudaMemcpyDeviceToDevice:
      to_device = from_device = true;
      break;
    case cudaMemcpyDefault:
      break;
    default:
      return note(cudaErrorInvalidMemcpyDirection);
  }
  if (!side_fits(to, bytes, to_device) || !side_fits(from, bytes, from_device)) return note(cudaErrorInvalidValue);
  unsigned devices = bit(device_of(stream));
  if (target.kind == Place::device) devices |= bit(target.ordinal);
  if (source.kind == Place::device) devices |= bit(source.ordinal);
  if (capturing(stream)) {
    // Memory of the host that is not page-locked cannot be copied in a graph here: its owner may have gone when the graph runs.
    if ((to_device && !from_device && source.kind == Place::plain) ||
        (from_device && !to_device && target.kind == Place::plain)) {
      complain("a copy in a captured step wants page-locked memory of the host");
      return note(cudaErrorStreamCaptureUnsupported);
    }
    return note(submit(stream, {[=] { std::memmove(to, from, bytes); }, devices, "memcpy"}));
  }
  cudaError_t status;
  if (to_device && !from_device && source.kind == Place::plain &&
      !blocking) {  // staged: the host may change it when this returns
    auto staged = std::make_shared<std::vector<unsigned char>>(static_cast<const unsigned char*>(from),
                                                               static_cast<const unsigned char*>(from) + bytes);
    status = submit(stream, {[=] { std::memcpy(to, staged->data(), bytes); }, devices, "memcpy"});
  } else {
    status = submit(stream, {[=] { std::memmove(to, from, bytes); }, devices, "memcpy"});
    if (blocking || (from_device && !to_device && target.kind == Place::plain)) drain(stream);
  }
  return note(status);
}

cudaError_t set(void* to, int value, std::size_t bytes, cudaStream_t stream, bool blocking) {
  if (bytes == 0) return note(cudaSuccess);
  if (!on_device(to, bytes, device_of(stream), "cudaMemset")) return note(cudaErrorInvalidValue);
  const cudaError_t status = submit(stream, {[=] { std::memset(to, value, bytes); }, bit(device_of(stream)), "memset"});
  if (blocking) {
    count_wait();
    drain(stream);
  }
  return note(status);
}

}  // namespace

namespace pretend {
namespace {
std::atomic<long> allocations_made{0}, until_failure{0};
}
bool count_allocation() {
  ++allocations_made;
  return until_failure > 0 && --until_failure == 0;
}
}  // namespace pretend

extern "C" {

long skein_pretend_allocations() { return allocations_made; }
void skein_pretend_fail_allocation(long n) { until_failure = n; }

cudaError_t cudaMalloc(void** p, size_t bytes) {
  if (count_allocation()) return note(cudaErrorMemoryAllocation);
  if (const cudaError_t status = unsafe_call()) return note(status);
  return note(allocate(p, bytes, current_device()));
}
cudaError_t cudaFree(void* p) {
  count_wait();
  if (const cudaError_t status = unsafe_call()) return note(status);
  drain_all();
  return note(release(p));
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t stream) {
  if (count_allocation()) return note(cudaErrorMemoryAllocation);
  if (capturing(stream)) return note(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t status = device_status(device_of(stream))) return note(status);
  return note(allocate(p, bytes, device_of(stream)));
}
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(p, bytes, stream);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  if (capturing(stream)) return note(cudaErrorStreamCaptureUnsupported);
  if (p && place_of(p).base != p) return note(cudaErrorInvalidValue);
  return note(submit(stream, {[p] { release(p); }, 0, "free"}));
}
cudaError_t cudaMallocHost(void** p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  if (count_allocation()) return note(cudaErrorMemoryAllocation);
  if (const cudaError_t status = unsafe_call()) return note(status);
  if (!p) return note(cudaErrorInvalidValue);
  *p = bytes ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
  if (bytes && !*p) return note(cudaErrorMemoryAllocation);
  if (bytes) {
    std::memset(*p, nan_byte, bytes);
    pin(*p, bytes);
  }
  return note(cudaSuccess);
}
cudaError_t cudaFreeHost(void* p) {
  if (const cudaError_t status = unsafe_call()) return note(status);
  if (!p) return note(cudaSuccess);
  drain_all();
  if (!unpin(p)) return note(cudaErrorInvalidValue);
  std::free(p);
  return note(cudaSuccess);
}
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned) {
  if (!p || bytes == 0) return note(cudaErrorInvalidValue);
  if (place_of(p).kind != Place::plain) return note(cudaErrorHostMemoryAlreadyRegistered);
  pin(p, bytes);
  return note(cudaSuccess);
}
cudaError_t cudaHostUnregister(void* p) { return note(unpin(p) ? cudaSuccess : cudaErrorHostMemoryNotRegistered); }
cudaError_t cudaHostGetDevicePointer(void** to, void* host, unsigned) {
  if (place_of(host).kind != Place::pinned) return note(cudaErrorInvalidValue);
  *to = host;
  return note(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* p) {
  const Place place = place_of(p);
  *to = {};
  to->type = place.kind == Place::device   ? cudaMemoryTypeDevice
             : place.kind == Place::pinned ? cudaMemoryTypeHost
                                           : cudaMemoryTypeUnregistered;
  to->device = place.kind == Place::device ? place.ordinal : place.kind == Place::pinned ? 0 : -2;
  to->devicePointer = place.kind == Place::plain ? nullptr : const_cast<void*>(p);
  to->hostPointer = place.kind == Place::device ? nullptr : const_cast<void*>(p);
  return note(cudaSuccess);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = bytes_there();
  *free = bytes_there() - bytes_used(current_device());
  return note(cudaSuccess);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t status = unsafe_call()) return note(status);
  return copy(to, from, bytes, kind, nullptr, true);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy(to, from, bytes, kind, stream, false);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  if (const cudaError_t status = unsafe_call()) return note(status);
  return copy(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr, true);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int there, const void* from, int here, size_t bytes, cudaStream_t stream) {
  if (bytes && ((place_of(to).kind == Place::device && place_of(to).ordinal != there) ||
                (place_of(from).kind == Place::device && place_of(from).ordinal != here)))
    return note(cudaErrorInvalidValue);
  return copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, false);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return note(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t status = copy(static_cast<char*>(to) + row * to_pitch,
                                        static_cast<const char*>(from) + row * from_pitch, width, kind, stream, false))
      return status;
  return note(cudaSuccess);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  if (const cudaError_t status = unsafe_call()) return note(status);
  const cudaError_t status = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
  drain(nullptr);
  return status;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (const cudaError_t status = unsafe_call()) return note(status);
  return set(to, value, bytes, nullptr, true);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return set(to, value, bytes, stream, false);
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (width > pitch) return note(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t status = set(static_cast<char*>(to) + row * pitch, value, width, stream, false)) return status;
  return note(cudaSuccess);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (device < 0 || device >= device_count()) return note(cudaErrorInvalidDevice);
  static CUmemPoolHandle_st pools[most_devices];
  pools[device].device = device;
  *pool = &pools[device];
  return note(cudaSuccess);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool) { return note(pool ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) { return note(pool ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return note(pool ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (!pool || !value) return note(cudaErrorInvalidValue);
  if (attribute == cudaMemPoolAttrReleaseThreshold) pool->threshold = *static_cast<std::uint64_t*>(value);
  return note(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (!pool || !value) return note(cudaErrorInvalidValue);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      *static_cast<std::uint64_t*>(value) = pool->threshold;
      break;
    case cudaMemPoolAttrUsedMemCurrent:
    case cudaMemPoolAttrReservedMemCurrent:
      *static_cast<std::uint64_t*>(value) = bytes_used(pool->device);
      break;
    default:
      *static_cast<int*>(value) = 1;
  }
  return note(cudaSuccess);
}

}  // extern "C"
