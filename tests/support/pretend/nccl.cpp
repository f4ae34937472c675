// SPDX-License-Identifier: Apache-2.0
// The pretend NCCL: communicators whose ranks are threads of this process, one a device. A collective is two operations of the
// stream: it lays down what it has, and waits until all ranks have; the last one calculates, in the order of the ranks. As in the
// real one a rank that does not come makes the others wait, in their streams, until they abort; the host does not wait. A call
// that does not fit the other ranks' is found here, where the real one hangs.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pretend.hpp"
#include "types.hpp"

using namespace pretend;

namespace {

enum class Kind { all_reduce, broadcast, reduce, all_gather, reduce_scatter };
constexpr const char* names[] = {"ncclAllReduce", "ncclBroadcast", "ncclReduce", "ncclAllGather", "ncclReduceScatter"};

cudaDataType_t data_type(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return CUDA_R_8I;
    case ncclUint8:
      return CUDA_R_8U;
    case ncclInt32:
    case ncclUint32:
      return CUDA_R_32I;
    case ncclInt64:
    case ncclUint64:
      return CUDA_R_64I;
    case ncclFloat16:
      return CUDA_R_16F;
    case ncclFloat32:
      return CUDA_R_32F;
    case ncclFloat64:
      return CUDA_R_64F;
    case ncclBfloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_C_32F;
  }
}
std::size_t size_of(ncclDataType_t type) { return bytes_of(data_type(type)); }
/// Of no bytes the pointers may be null, and of one rank they may be the same.
void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}
bool is_integer(ncclDataType_t type) { return type <= ncclUint64; }

struct Call {
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  unsigned long captured = 0;  // it comes with a graph that is launched: of this rank's so manieth capture with the communicator
  bool operator==(const Call& o) const {
    return kind == o.kind && count == o.count && type == o.type && op == o.op && root == o.root;
  }
};
struct Round {
  std::vector<Call> calls;
  std::vector<bool> here;
  int arrived = 0;
  bool done = false;
};
struct Message {
  const void* data;
  std::size_t bytes;
  bool taken = false;
};
struct Mail {
  std::deque<std::shared_ptr<Message>> messages;
};
struct Choice {
  int color, key;
};

/// What the ranks of one communicator share.
struct Clique {
  int size = 0;
  std::mutex lock;
  std::condition_variable changed;
  std::vector<int> devices;  // by rank, -1: not yet here
  int arrived = 0;
  ncclResult_t state = ncclInProgress;  // of the start
  std::map<unsigned long, Round> rounds;
  std::map<std::pair<int, int>, Mail> mail;
  struct Splitting {
    std::vector<Choice> choices;
    std::vector<bool> here;
    int arrived = 0;
    std::map<int, std::shared_ptr<Clique>> made;
  };
  std::map<unsigned long, Splitting> splittings;
  unsigned open() const {
    unsigned bits = 0;
    for (int d : devices)
      if (d >= 0) bits |= bit(d);
    return bits;
  }
};

struct State {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  bool blocking = true, aborted = false, finalized = false;
  ncclResult_t error = ncclSuccess;
  int busy = 0;  // how often a poll still says "in progress"
  unsigned long next_round = 0, next_split = 0;
  unsigned long captures = 0;           // that calls of this rank were part of
  unsigned long long last_capture = 0;  // the number of the last of them
  long pending = 0;                     // operations that streams still have
  // while the parent's ranks gather for a split
  std::shared_ptr<Clique> parent;
  unsigned long split = 0;
  Choice choice{};
  bool left_out = false;
  // of a split that does not block: where the part's handle belongs, which is written when this is ready
  ncclComm_t* part_at = nullptr;
  ncclComm_t part = nullptr;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<State> state;
};

namespace {

struct Registry {
  std::mutex lock;
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  std::set<ncclComm_t> live;
  std::vector<ncclComm_t*> written_late;  // by splits whose callers had given up, and have left the handles to them
  unsigned long next_id = 1;
  int failing_splits = 0;
};
Registry& registry() {
  static Registry* all = new Registry;
  return *all;
}

std::shared_ptr<State> state_of(ncclComm_t comm) {
  const std::lock_guard hold(registry().lock);
  return registry().live.count(comm) ? comm->state : nullptr;
}

template <class T> T combine(T a, T b, ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}
/// Integers are exact; floating-point values are summed in double precision, in the order of the ranks.
template <class T> void reduce_integers(const std::vector<Call>& calls, void* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    T total = static_cast<const T*>(calls[0].send)[i];
    for (std::size_t r = 1; r < calls.size(); ++r) total = combine(total, static_cast<const T*>(calls[r].send)[i], calls[0].op);
    static_cast<T*>(to)[i] = total;
  }
}
double reduce_one(const std::vector<Call>& calls, ncclRedOp_t op, cudaDataType_t type, long at) {
  double total = load(calls[0].send, type, at);
  for (std::size_t r = 1; r < calls.size(); ++r) {
    const double x = load(calls[r].send, type, at);
    total = combine(total, x, op);
  }
  return op == ncclAvg ? total / static_cast<double>(calls.size()) : total;
}

/// All ranks have come: calculates for all of them.
void finish(const Clique& clique, Round& round) {
  const Open open(clique.open());
  const Call& first = round.calls[0];
  const cudaDataType_t type = data_type(first.type);
  const std::size_t size = bytes_of(type), ranks = round.calls.size();
  switch (first.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::reduce_scatter: {
      const std::size_t n = first.kind == Kind::reduce_scatter ? first.count * ranks : first.count;
      std::vector<unsigned char> result(n * size);
      switch (first.type) {
        case ncclInt8:
          reduce_integers<std::int8_t>(round.calls, result.data(), n);
          break;
        case ncclUint8:
          reduce_integers<std::uint8_t>(round.calls, result.data(), n);
          break;
        case ncclInt32:
          reduce_integers<std::int32_t>(round.calls, result.data(), n);
          break;
        case ncclUint32:
          reduce_integers<std::uint32_t>(round.calls, result.data(), n);
          break;
        case ncclInt64:
          reduce_integers<std::int64_t>(round.calls, result.data(), n);
          break;
        case ncclUint64:
          reduce_integers<std::uint64_t>(round.calls, result.data(), n);
          break;
        default:
          for (std::size_t i = 0; i < n; ++i)
            store(result.data(), type, static_cast<long>(i), reduce_one(round.calls, first.op, type, static_cast<long>(i)));
      }
      for (std::size_t r = 0; r < ranks; ++r) {
        if (first.kind == Kind::reduce_scatter)
          copy(round.calls[r].receive, result.data() + r * first.count * size, first.count * size);
        else if (first.kind == Kind::all_reduce || static_cast<int>(r) == first.root)
          copy(round.calls[r].receive, result.data(), result.size());
      }
      break;
    }
    case Kind::broadcast:
      for (std::size_t r = 0; r < ranks; ++r)
        copy(round.calls[r].receive, round.calls[static_cast<std::size_t>(first.root)].send, first.count * size);
      break;
    case Kind::all_gather: {
      std::vector<unsigned char> all(ranks * first.count * size);
      for (std::size_t r = 0; r < ranks; ++r) copy(all.data() + r * first.count * size, round.calls[r].send, first.count * size);
      for (std::size_t r = 0; r < ranks; ++r) copy(round.calls[r].receive, all.data(), all.size());
      break;
    }
  }
  round.done = true;
}

/// One operation of a group: what the stream does first and what it does then.
struct Job {
  std::shared_ptr<State> state;
  cudaStream_t stream;
  std::function<void()> post;
  std::function<void()> wait;
  const char* name;
  bool last = false;  // a send: it waits until it was taken, so behind what takes
};
struct Group {
  int depth = 0;
  std::vector<Job> jobs;
  std::vector<std::shared_ptr<State>> starting;
  std::vector<std::pair<std::shared_ptr<State>, ncclComm_t*>> handles;
  ncclResult_t error = ncclSuccess;
};
Group& group() {
  thread_local Group g;
  return g;
}
thread_local std::string last_words;

ncclResult_t refuse(ncclResult_t result, const std::string& words) {
  last_words = words;
  complain(words);
  if (group().depth > 0 && group().error == ncclSuccess) group().error = result;
  return result;
}

Job collective(const std::shared_ptr<State>& state, Call call, cudaStream_t stream) {
  auto number = std::make_shared<unsigned long>(0);
  if (const unsigned long long now = capture_number(stream); now != 0) {
    if (state->last_capture != now) state->last_capture = now, ++state->captures;
    call.captured = state->captures;
  }
  auto post = [state, call, number] {
    Clique& clique = *state->clique;
    const std::lock_guard hold(clique.lock);
    *number = state->next_round++;
    if (state->aborted) return;
    Round& round = clique.rounds[*number];
    if (round.calls.empty()) {
      round.calls.resize(static_cast<std::size_t>(clique.size));
      round.here.resize(static_cast<std::size_t>(clique.size));
    }
    const auto rank = static_cast<std::size_t>(state->rank);
    for (std::size_t r = 0; r < round.here.size(); ++r)
      if (round.here[r] && !(round.calls[r] == call)) {
        complain("rank " + std::to_string(rank) + " calls " + names[static_cast<int>(call.kind)] + " of " +
                 std::to_string(call.count) + " values, rank " + std::to_string(r) + " calls " +
                 names[static_cast<int>(round.calls[r].kind)] + " of " + std::to_string(round.calls[r].count) +
                 ": a real NCCL hangs here, or mixes them up");
        std::abort();
      }
    for (std::size_t r = 0; r < round.here.size(); ++r)
      if (round.here[r] && round.calls[r].captured != call.captured) {
        const unsigned long other = round.calls[r].captured;
        if (call.captured && other)
          complain("ranks " + std::to_string(rank) + " and " + std::to_string(r) + " launch " +
                   names[static_cast<int>(call.kind)] + " with graphs of different captures, their " +
                   std::to_string(call.captured) + "th and " + std::to_string(other) +
                   "th: NCCL's guide wants each rank's graph to be of one collective capture");
        else
          complain("rank " + std::to_string(call.captured ? rank : r) + " launches " + names[static_cast<int>(call.kind)] +
                   " with a graph, rank " + std::to_string(call.captured ? r : rank) +
                   " without one: NCCL's guide wants all ranks to capture, or none");
        std::abort();
      }
    round.calls[rank] = call;
    round.here[rank] = true;
    if (++round.arrived == clique.size) {
      finish(clique, round);
      clique.changed.notify_all();
    }
  };
  auto wait = [state, number] {
    Clique& clique = *state->clique;
    std::unique_lock hold(clique.lock);
    clique.changed.wait(hold, [&] { return state->aborted || clique.rounds[*number].done; });
    --state->pending;
    clique.changed.notify_all();
    if (!state->aborted && *number >= 1024) clique.rounds.erase(clique.rounds.begin(), clique.rounds.lower_bound(*number - 1000));
  };
  return {state, stream, post, wait, names[static_cast<int>(call.kind)]};
}

/// Starts the jobs: all are laid down before any waits, so that one thread may serve several ranks.
ncclResult_t start(std::vector<Job> jobs) {
  ncclResult_t result = ncclSuccess;
  for (const Job& job : jobs) {
    {
      const std::lock_guard hold(job.state->clique->lock);
      if (!capturing(job.stream)) ++job.state->pending;
      if (!job.state->blocking) job.state->busy = 1, result = ncclInProgress;
    }
    const bool counted = !capturing(job.stream);
    const auto post = [counted, state = job.state, post = job.post] {
      if (!counted) {
        const std::lock_guard hold(state->clique->lock);
        ++state->pending;
      }
      post();
    };
    if (submit(job.stream, {post, 0, job.name}) != cudaSuccess)
      return refuse(ncclUnhandledCudaError, std::string(job.name) + ": the stream takes nothing");
  }
  std::stable_partition(jobs.begin(), jobs.end(), [](const Job& job) { return !job.last; });
  for (const Job& job : jobs)
    if (submit(job.stream, {job.wait, 0, job.name, true}) != cudaSuccess)
      return refuse(ncclUnhandledCudaError, std::string(job.name) + ": the stream takes nothing");
  return result;
}

ncclResult_t usable(const std::shared_ptr<State>& state, cudaStream_t stream, const char* name) {
  if (!state) return refuse(ncclInvalidArgument, std::string(name) + ": the communicator is none, or was destroyed");
  {
    const std::lock_guard hold(state->clique->lock);
    if (state->error != ncclSuccess) return refuse(state->error, std::string(name) + ": the communicator has failed");
    if (state->aborted || state->finalized)
      return refuse(ncclInvalidUsage, std::string(name) + ": the communicator was aborted or finalized");
    if (state->clique->state != ncclSuccess || state->busy > 0)
      return refuse(ncclInvalidArgument,
                    std::string(name) + ": the communicator is still in progress: poll ncclCommGetAsyncError");
  }
  if (device_of(stream) != state->device)
    return refuse(ncclInvalidArgument, std::string(name) + ": the stream is another device's than the communicator");
  return ncclSuccess;
}

ncclResult_t give(Job job) {
  Group& g = group();
  if (g.depth > 0) {
    g.jobs.push_back(std::move(job));
    return ncclSuccess;
  }
  std::vector<Job> one;
  one.push_back(std::move(job));
  return start(std::move(one));
}

ncclResult_t collect(ncclComm_t comm, Call call, cudaStream_t stream, std::size_t send_count, std::size_t receive_count) {
  const char* name = names[static_cast<int>(call.kind)];
  const auto state = state_of(comm);
  if (const ncclResult_t result = usable(state, stream, name); result != ncclSuccess) return result;
  const std::size_t size = size_of(call.type);
  if (size == 0) return refuse(ncclInvalidArgument, std::string(name) + ": this type is not pretended");
  if (call.op > ncclAvg) return refuse(ncclInvalidArgument, std::string(name) + ": this operation is not pretended");
  if (call.op == ncclAvg && is_integer(call.type))
    return refuse(ncclInvalidArgument, std::string(name) + ": ncclAvg of integers is not pretended");
  if (call.root < 0 || call.root >= state->clique->size)
    return refuse(ncclInvalidArgument, std::string(name) + ": there is no rank " + std::to_string(call.root));
  const bool sends = call.kind != Kind::broadcast || call.root == state->rank,
             receives = call.kind != Kind::reduce || call.root == state->rank;
  if ((sends && !on_device(call.send, send_count * size, state->device, name)) ||
      (receives && !on_device(call.receive, receive_count * size, state->device, name)))
    return refuse(ncclInvalidArgument, std::string(name) + ": a buffer is not the device's");
  return give(collective(state, call, stream));
}

/// The communicator's state once all ranks have come; ranks on one device are refused.
void arrive(Clique& clique, int rank, int device) {
  if (clique.devices[static_cast<std::size_t>(rank)] >= 0) {
    clique.state = ncclInvalidUsage;
    complain("two ranks " + std::to_string(rank) + " of one communicator");
  }
  for (std::size_t r = 0; r < clique.devices.size(); ++r)
    if (clique.devices[r] == device) {
      clique.state = ncclInvalidUsage;
      complain("ranks " + std::to_string(r) + " and " + std::to_string(rank) + " of one communicator are both on device " +
               std::to_string(device));
    }
  clique.devices[static_cast<std::size_t>(rank)] = device;
  if (++clique.arrived == clique.size && clique.state == ncclInProgress) clique.state = ncclSuccess;
  clique.changed.notify_all();
}

/// Of a split: the ranks of a color, by key.
void finish_split(Clique& parent, Clique::Splitting& s) {
  std::map<int, std::vector<int>> members;
  for (int r = 0; r < parent.size; ++r)
    if (s.choices[static_cast<std::size_t>(r)].color != NCCL_SPLIT_NOCOLOR)
      members[s.choices[static_cast<std::size_t>(r)].color].push_back(r);
  for (auto& [color, ranks] : members) {
    auto made = std::make_shared<Clique>();
    made->size = static_cast<int>(ranks.size());
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      return s.choices[static_cast<std::size_t>(a)].key < s.choices[static_cast<std::size_t>(b)].key;
    });
    for (int r : ranks) made->devices.push_back(parent.devices[static_cast<std::size_t>(r)]);
    made->arrived = made->size;
    made->state = ncclSuccess;
    s.made[color] = made;
  }
}

/// Whether the start of a communicator has come to its end; fills in what a split gave.
bool started(State& state) {
  if (state.parent) {
    const std::lock_guard hold(state.parent->lock);
    auto& s = state.parent->splittings[state.split];
    if (s.arrived < state.parent->size) return false;
    if (state.choice.color != NCCL_SPLIT_NOCOLOR) {
      state.clique = s.made[state.choice.color];
      int rank = 0;
      const int own = state.rank;
      for (int r = 0; r < state.parent->size; ++r) {
        const Choice& c = s.choices[static_cast<std::size_t>(r)];
        if (c.color == state.choice.color && (c.key < state.choice.key || (c.key == state.choice.key && r < own))) ++rank;
      }
      state.rank = rank;
    } else {
      state.left_out = true;
    }
    state.parent = nullptr;
    return true;
  }
  const std::lock_guard hold(state.clique->lock);
  return state.clique->state != ncclInProgress || state.aborted;
}

ncclResult_t wait_for_start(const std::shared_ptr<State>& state) {
  if (const auto parent = state->parent) {
    std::unique_lock hold(parent->lock);
    parent->changed.wait(hold, [&] { return parent->splittings[state->split].arrived >= parent->size; });
    hold.unlock();
    (void)started(*state);
    return ncclSuccess;
  }
  std::unique_lock hold(state->clique->lock);
  state->clique->changed.wait(hold, [&] { return state->clique->state != ncclInProgress || state->aborted; });
  return state->clique->state == ncclInProgress ? ncclInternalError : state->clique->state;
}

ncclResult_t enter(const std::shared_ptr<State>& state, ncclComm_t* handle) {
  Group& g = group();
  if (!state->blocking) {
    state->busy = 1;
    return ncclInProgress;
  }
  if (g.depth > 0) {
    g.starting.push_back(state);
    g.handles.emplace_back(state, handle);
    return ncclSuccess;
  }
  return wait_for_start(state);
}

ncclComm_t make_handle(const std::shared_ptr<State>& state) {
  auto* comm = new ncclComm{state};
  const std::lock_guard hold(registry().lock);
  registry().live.insert(comm);
  return comm;
}
/// The handle of a part is there when its parent is ready; where that fails, NCCL's own thread writes it later all the same.
void begin_part(State& parent, ncclComm_t* made, ncclComm_t part) {
  const std::scoped_lock hold(parent.clique->lock, registry().lock);
  parent.busy = 1;
  if (registry().failing_splits == 0) {
    parent.part_at = made, parent.part = part;
    return;
  }
  --registry().failing_splits;
  parent.error = ncclSystemError;
  registry().written_late.push_back(made);
  std::thread([made, part] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    *made = part;
  }).detach();
}
void drop_handle(ncclComm_t comm) {
  const std::lock_guard hold(registry().lock);
  registry().live.erase(comm);
  delete comm;
}

bool blocks(const ncclConfig_t* config) { return !config || config->blocking == NCCL_CONFIG_UNDEF_INT || config->blocking != 0; }

}  // namespace

extern "C" {

/// For tests: the next `n` splits that do not block fail in the background, as when the network under a real one has.
void skein_pretend_nccl_fail_splits(int n) {
  const std::lock_guard hold(registry().lock);
  registry().failing_splits = n;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
const char* ncclGetLastError(ncclComm_t) { return last_words.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard hold(registry().lock);
  std::memset(id, 0, sizeof *id);
  const std::string text = "pretend NCCL " + std::to_string(registry().next_id++);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (!comm || size < 1 || rank < 0 || rank >= size)
    return refuse(ncclInvalidArgument, "ncclCommInitRank: rank " + std::to_string(rank) + " of " + std::to_string(size));
  if (device_count() == 0) return refuse(ncclUnhandledCudaError, "ncclCommInitRank: no device");
  auto state = std::make_shared<State>();
  {
    const std::lock_guard hold(registry().lock);
    auto& clique = registry().cliques[std::string(id.internal, sizeof id.internal)];
    if (!clique) {
      clique = std::make_shared<Clique>();
      clique->size = size;
      clique->devices.assign(static_cast<std::size_t>(size), -1);
    }
    state->clique = clique;
  }
  if (state->clique->size != size) return refuse(ncclInvalidUsage, "ncclCommInitRank: the ranks do not agree on their number");
  state->rank = rank;
  state->device = current_device();
  state->blocking = blocks(config);
  {
    const std::lock_guard hold(state->clique->lock);
    arrive(*state->clique, rank, state->device);
  }
  *comm = make_handle(state);
  return enter(state, comm);
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int* list) {
  if (!comms || devices < 1) return refuse(ncclInvalidArgument, "ncclCommInitAll");
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  const int before = current_device();
  ncclGroupStart();
  for (int r = 0; r < devices; ++r) {
    if (cudaSetDevice(list ? list[r] : r) != cudaSuccess) {
      group().depth = 0;
      return refuse(ncclUnhandledCudaError, "ncclCommInitAll: no such device");
    }
    ncclCommInitRank(&comms[r], devices, id, r);
  }
  const ncclResult_t result = ncclGroupEnd();
  cudaSetDevice(before);
  return result;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  const auto parent = state_of(comm);
  if (!parent || !made) return refuse(ncclInvalidArgument, "ncclCommSplit: no communicator");
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) return refuse(ncclInvalidArgument, "ncclCommSplit: a negative color");
  auto state = std::make_shared<State>();
  state->clique = parent->clique;
  state->parent = parent->clique;
  state->rank = parent->rank;
  state->device = parent->device;
  state->blocking = config && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking != 0 : parent->blocking;
  state->choice = {color, key};
  {
    Clique& clique = *parent->clique;
    const std::lock_guard hold(clique.lock);
    state->split = parent->next_split++;
    auto& s = clique.splittings[state->split];
    if (s.choices.empty()) {
      s.choices.resize(static_cast<std::size_t>(clique.size));
      s.here.resize(static_cast<std::size_t>(clique.size));
    }
    s.choices[static_cast<std::size_t>(parent->rank)] = state->choice;
    if (++s.arrived == clique.size) finish_split(clique, s);
    clique.changed.notify_all();
  }
  const ncclComm_t part = color == NCCL_SPLIT_NOCOLOR ? nullptr : make_handle(state);
  if (state->blocking) *made = part;
  else begin_part(*parent, made, part);
  return enter(state, made);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const auto state = state_of(comm);
  if (!state || !error) return refuse(ncclInvalidArgument, "ncclCommGetAsyncError: no communicator");
  if (!started(*state)) {
    *error = ncclInProgress;
    return ncclSuccess;
  }
  const std::lock_guard hold(state->clique->lock);
  if (state->error != ncclSuccess) *error = state->error;
  else if (state->clique->state != ncclSuccess) *error = state->clique->state;
  else if (state->busy > 0) {
    --state->busy, *error = ncclInProgress;
    if (state->part_at) *std::exchange(state->part_at, nullptr) = state->part;
  } else if (state->finalized && state->pending > 0) *error = ncclInProgress;
  else *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const auto state = state_of(comm);
  if (!state) return refuse(ncclInvalidArgument, "ncclCommCount: no communicator");
  *count = state->clique->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  const auto state = state_of(comm);
  if (!state) return refuse(ncclInvalidArgument, "ncclCommUserRank: no communicator");
  *rank = state->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  const auto state = state_of(comm);
  if (!state) return refuse(ncclInvalidArgument, "ncclCommCuDevice: no communicator");
  *device = state->device;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const auto state = state_of(comm);
  if (!state) return refuse(ncclInvalidArgument, "ncclCommFinalize: no communicator");
  std::unique_lock hold(state->clique->lock);
  state->finalized = true;
  if (!state->blocking) {
    state->busy = 1;
    return ncclInProgress;
  }
  state->clique->changed.wait(hold, [&] { return state->pending <= 0 || state->aborted; });
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const auto state = state_of(comm);
  if (!state) return refuse(ncclInvalidArgument, "ncclCommDestroy: no communicator");
  {
    std::unique_lock hold(state->clique->lock);
    state->clique->changed.wait(hold, [&] { return state->pending <= 0 || state->aborted; });
    state->finalized = true;
  }
  drop_handle(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const auto state = state_of(comm);
  if (!state) return refuse(ncclInvalidArgument, "ncclCommAbort: no communicator");
  {
    const std::lock_guard hold(state->clique->lock);
    state->aborted = true;
    state->clique->changed.notify_all();
  }
  drop_handle(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* p, size_t, void** handle) {
  if (!state_of(comm) || !handle) return refuse(ncclInvalidArgument, "ncclCommRegister");
  *handle = p;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  return state_of(comm) ? ncclSuccess : refuse(ncclInvalidArgument, "ncclCommDeregister");
}
ncclResult_t ncclMemAlloc(void** p, size_t bytes) {
  return cudaMalloc(p, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* p) { return cudaFree(p) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; }

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return collect(comm, {Kind::all_reduce, send, receive, count, type, op, 0}, stream, count, count);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return collect(comm, {Kind::broadcast, send, receive, count, type, ncclSum, root}, stream, count, count);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, {Kind::reduce, send, receive, count, type, op, root}, stream, count, count);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const auto state = state_of(comm);
  return collect(comm, {Kind::all_gather, send, receive, count, type, ncclSum, 0}, stream, count,
                 state ? count * static_cast<std::size_t>(state->clique->size) : 0);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto state = state_of(comm);
  return collect(comm, {Kind::reduce_scatter, send, receive, count, type, op, 0}, stream,
                 state ? count * static_cast<std::size_t>(state->clique->size) : 0, count);
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const auto state = state_of(comm);
  if (const ncclResult_t result = usable(state, stream, "ncclSend"); result != ncclSuccess) return result;
  const std::size_t bytes = count * size_of(type);
  if (peer < 0 || peer >= state->clique->size || !on_device(send, bytes, state->device, "ncclSend"))
    return refuse(ncclInvalidArgument, "ncclSend");
  auto slot = std::make_shared<std::shared_ptr<Message>>();
  const auto post = [state, send, bytes, peer, slot] {
    const std::lock_guard hold(state->clique->lock);
    *slot = std::make_shared<Message>(Message{send, bytes});
    state->clique->mail[{state->rank, peer}].messages.push_back(*slot);
    state->clique->changed.notify_all();
  };
  const auto wait = [state, slot] {
    std::unique_lock hold(state->clique->lock);
    state->clique->changed.wait(hold, [&] { return state->aborted || (*slot)->taken; });
    --state->pending;
    state->clique->changed.notify_all();
  };
  return give({state, stream, post, wait, "ncclSend", true});
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const auto state = state_of(comm);
  if (const ncclResult_t result = usable(state, stream, "ncclRecv"); result != ncclSuccess) return result;
  const std::size_t bytes = count * size_of(type);
  if (peer < 0 || peer >= state->clique->size || !on_device(receive, bytes, state->device, "ncclRecv"))
    return refuse(ncclInvalidArgument, "ncclRecv");
  const auto wait = [state, receive, bytes, peer] {
    Clique& clique = *state->clique;
    std::unique_lock hold(clique.lock);
    Mail& mail = clique.mail[{peer, state->rank}];
    clique.changed.wait(hold, [&] { return state->aborted || !mail.messages.empty(); });
    --state->pending;
    clique.changed.notify_all();
    if (state->aborted) return;
    const auto message = mail.messages.front();
    mail.messages.pop_front();
    if (message->bytes != bytes) {
      complain("rank " + std::to_string(peer) + " sends " + std::to_string(message->bytes) + " bytes, rank " +
               std::to_string(state->rank) + " takes " + std::to_string(bytes));
      std::abort();
    }
    const Open open(clique.open());
    copy(receive, message->data, bytes);
    message->taken = true;
  };
  return give({state, stream, [] {}, wait, "ncclRecv"});
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  Group& g = group();
  if (g.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--g.depth > 0) return ncclSuccess;
  Group all = std::move(g);
  g = Group{};
  if (all.error != ncclSuccess) return all.error;
  ncclResult_t result = ncclSuccess;
  for (const auto& state : all.starting)
    if (const ncclResult_t each = wait_for_start(state); each != ncclSuccess) result = each;
  if (result != ncclSuccess) return result;
  return start(std::move(all.jobs));
}

}  // extern "C"
