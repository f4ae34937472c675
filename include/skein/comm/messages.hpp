// SPDX-License-Identifier: Apache-2.0
// What a communicator offers beside collectives over spans: messages between two ranks, and the convenient forms for single
// values and strings, with which ranks agree on plans and errors. Those may allocate; the messages do not.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../core/named_values.hpp"
#include "../core/text.hpp"
#include "collectives.hpp"
#include "tags.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

/// The sender that recv and irecv take for whoever comes first.
inline constexpr int any_rank = -1;

namespace comm {

/// Whether all are the first.
inline bool all_equal(const std::vector<std::uint64_t>& numbers) {
  for (const std::uint64_t n : numbers)
    if (n != numbers[0]) return false;
  return true;
}
/// The texts of all ranks, which stand joined, by their lengths.
std::vector<std::string> split_texts(std::string_view joined, const std::vector<std::size_t>& lengths);
/// Throws the CommError of assert_same: who believes what; and which value is another where.
[[noreturn]] void fail_differing(std::string_view what, const std::vector<std::uint64_t>& hashes,
                                 const std::vector<std::string>& beliefs, const RankNames& names);
[[noreturn]] void fail_differing(std::string_view what, const std::vector<std::string>& lines, const RankNames& names);

/// What ranks agree on: single values, texts, plans; values of the host on every device. Derived as for Collectives; a
/// communicator of another device than Cpu has control(), a communicator of the host over the same ranks.
template <class Derived, DeviceTag Device> class Agreements : public Collectives<Derived, Device> {
  using Base = Collectives<Derived, Device>;

 public:
  using Base::all_gather, Base::all_reduce, Base::broadcast;

  /// The reduction of one value a rank. Blocking; deterministic.
  template <class T, class Op = Sum>
  requires std::is_arithmetic_v<T> T all_reduce(T x, Op op = {}) {
    host().all_reduce(DeviceSpan<T, Cpu>{&x, 1}, op);
    return x;
  }
  /// Root's value, on every rank. Blocking.
  template <class T>
  requires std::is_arithmetic_v<T> T broadcast(T x, int root = 0) {
    host().broadcast(DeviceSpan<T, Cpu>{&x, 1}, root);
    return x;
  }
  /// The values of all ranks. Blocking; allocates the result.
  template <class T>
  requires(Transportable<T> && !SpanLike<T> && !std::is_array_v<T> &&
           !std::is_pointer_v<T>) std::vector<T> all_gather(const T& x) {
    std::vector<T> all(this->ranks());
    host().all_gather(DeviceSpan<const T, Cpu>{&x, 1}, DeviceSpan<T, Cpu>{all.data(), all.size()});
    return all;
  }
  /// The same of several values a rank, of each as many: those of rank 0 first.
  template <class T, std::size_t N>
  requires Transportable<std::remove_const_t<T>> std::vector<std::remove_const_t<T>> all_gather(std::span<T, N> own) {
    std::vector<std::remove_const_t<T>> all(this->ranks() * own.size());
    host().all_gather(DeviceSpan<const T, Cpu>{own.data(), own.size()},
                      DeviceSpan<std::remove_const_t<T>, Cpu>{all.data(), all.size()});
    return all;
  }
  /// The texts (or serialised objects) of all ranks. Blocking; allocates.
  std::vector<std::string> all_gather(const std::string& text) {
    const std::vector<std::size_t> counts = all_gather(text.size());
    std::size_t sum = 0;
    for (const std::size_t c : counts) sum += c;
    std::string joined(sum, '\0');
    host().all_gather_v(text, std::span<const std::size_t>(counts.data(), counts.size()), joined);
    return split_texts(joined, counts);
  }
  /// Root's text (or serialised object), on every rank. Blocking; allocates.
  [[nodiscard]] std::string broadcast(std::string text, int root) {
    text.resize(broadcast(text.size(), root));
    host().broadcast(DeviceSpan<char, Cpu>{text.data(), text.size()}, root);
    return text;
  }

  /// Every rank gives what it believes about `what` (a plan, a hash); where two differ, every rank throws the same CommError that
  /// lists who believes what. Blocking; one short all_gather where all agree.
  void assert_same(std::string_view what, const std::string& belief) {
    const std::vector<std::uint64_t> hashes = all_gather(hash_bytes(belief.data(), belief.size()));
    if (all_equal(hashes)) return;
    fail_differing(what, hashes, all_gather(belief.substr(0, 400)), names());
  }
  /// Compares several values (`what` in the plural: "the models of DataParallel"): the error names the first that differs.
  void assert_same(std::string_view what, const NamedValues& values) {
    if (all_equal(all_gather(values.hash()))) return;
    fail_differing(what, all_gather("+" + values.lines()), names());
  }
  void assert_same(std::string_view what, std::uint64_t hash) { assert_same(what, skein::text("hash {}", hash)); }

  /// Spans of the host, where the communicator moves memory of another device. Blocking.
  template <class T, class Op = Sum>
  requires(!std::same_as<Device, Cpu>) void all_reduce(DeviceSpan<T, Cpu> data, Op op = {}) { host().all_reduce(data, op); }
  template <class T>
  requires(!std::same_as<Device, Cpu>) void broadcast(DeviceSpan<T, Cpu> data, int root = 0) { host().broadcast(data, root); }
  template <class T, class U>
  requires(!std::same_as<Device, Cpu>) void all_gather(DeviceSpan<T, Cpu> send, DeviceSpan<U, Cpu> recv) {
    host().all_gather(send, recv);
  }

 protected:
  auto& host() {
    if constexpr (std::same_as<Device, Cpu>) return this->self();
    else return this->self().control();
  }

 private:
  RankNames names() { return names_of(host()); }
};

/// Agreements, and messages between two ranks. Derived as for Agreements.
template <class Derived, DeviceTag Device> class Messages : public Agreements<Derived, Device> {
 public:
  /// Sends the values to one rank. Blocking until the span may be written again: short messages (up to 4 kB; between machines,
  /// by MPI, what that sends without asking the receiver, such as 4000 bytes) do not wait for the receiver, longer ones may.
  /// Messages of one pair and tag arrive in order. Tags are 0 to 32000. Policies send with some of them on the communicator that
  /// they are given (comm/tags.hpp): while a fit runs, messages of one's own go over another one, from split().
  template <SpanLike R> void send(R&& data, int to, int tag = 0) { isend(data, to, tag).wait(); }
  /// Starts a send().
  template <SpanLike R> auto isend(R&& data, int to, int tag = 0) {
    const auto s = span_of<Device>(data);
    static_assert(Transportable<typename decltype(s)::value_type>,
                  "what travels between ranks must be trivially copyable: serialise it first");
    this->checked_rank(to, "send");
    return request(this->engine().start_send(s.data, s.size * sizeof(*s.data), to, checked_tag(tag)));
  }
  /// Receives exactly data.size values from one rank, or from any_rank. Blocking. Returns the sender. A message of another length
  /// is a CommError.
  template <SpanLike R> int recv(R&& data, int from, int tag = 0) {
    auto r = irecv(data, from, tag);
    r.wait();
    return r.peer();
  }
  /// Starts a recv(); request.peer() is the sender once it is done.
  template <SpanLike R> auto irecv(R&& data, int from, int tag = 0) {
    const auto s = span_of<Device>(data);
    static_assert(Transportable<typename decltype(s)::value_type>,
                  "what travels between ranks must be trivially copyable: serialise it first");
    if (from != any_rank) this->checked_rank(from, "recv");
    return request(this->engine().start_recv(s.data, s.size * sizeof(*s.data), from, checked_tag(tag)));
  }

 private:
  auto request(Ticket t) { return Request<typename Derived::engine_type>(this->engine(), t); }
  static int checked_tag(int tag) {
    if (tag < 0 || tag > tags::last) throw ArgumentError(text("a message's tag must be 0 to {}; it is {}", tags::last, tag));
    return tag;
  }
};

}  // namespace comm
}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "messages.ipp"
#endif
