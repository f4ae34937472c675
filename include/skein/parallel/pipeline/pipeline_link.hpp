// SPDX-License-Identifier: Apache-2.0
// PipelineLink: the few calls that a pipeline makes of its communicator, behind one interface: its messages are large and few, so
// that the pipeline of a network is compiled once, not once for each communicator.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../comm/concepts.hpp"
#include "../../comm/op.hpp"
#include "../../comm/queries.hpp"
#include "../../comm/rank_names.hpp"
#include "../../core/error.hpp"
#include "../../core/named_values.hpp"
#include "../../device/span.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The calls that a pipeline makes of a communicator, whichever it is.
class PipelineLink {
 public:
  virtual ~PipelineLink() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int node_size() const = 0;
  virtual bool one_process() const = 0;
  virtual bool simulated_time() const = 0;

  /// Requests are numbered 0 to n - 1; each may be under way once. They never become fewer: the train steps of one pipeline
  /// share them.
  virtual void reserve(int n) = 0;
  virtual void send(int request, const void* data, std::size_t bytes, int to, int tag) = 0;
  virtual void receive(int request, void* data, std::size_t bytes, int from, int tag) = 0;
  virtual void wait(int request) = 0;  ///< returns at once where nothing is under way
  /// Lets go of all that is under way, as a request does that is destroyed: while an exception passes, the communicator ends.
  virtual void drop() = 0;
  virtual void progress() = 0;
  /// The clock of the ranks, in seconds: a simulated one's own, else the machine's.
  virtual double now() = 0;
  /// So much time passes on it. Throws ArgumentError where the communicator has no compute(seconds).
  virtual void compute(double seconds) = 0;

  virtual void sum(DeviceSpan<float> values) = 0;
  virtual void sum(DeviceSpan<double> values) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void barrier() = 0;
  virtual void assert_same(std::string_view what, const NamedValues& values) = 0;
  virtual std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t> own) = 0;
  virtual std::vector<std::string> texts_of_all(const std::string& own) = 0;
  virtual comm::RankNames rank_names() = 0;
  virtual std::unique_ptr<PipelineLink> split(int color, int key) = 0;
};

namespace detail {
/// Comm: an lvalue's type, which is used; or a value's, which is owned.
template <class Comm> class PipelineLinkOver final : public PipelineLink {
  using C = std::remove_reference_t<Comm>;
  using Bytes = DeviceSpan<std::byte>;
  using Request = decltype(std::declval<C&>().isend(std::declval<DeviceSpan<const std::byte>>(), 0, 0));

 public:
  explicit PipelineLinkOver(Comm&& comm) : comm_(std::forward<Comm>(comm)) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  int node_size() const override { return comm::node_size(comm_); }
  bool one_process() const override { return comm::one_process(comm_); }
  bool simulated_time() const override { return comm::can<C, comm::Capability::clocks>; }
  void reserve(int n) override { requests_.resize(std::max(requests_.size(), static_cast<std::size_t>(n))); }
  void send(int request, const void* data, std::size_t bytes, int to, int tag) override {
    (void)(at(request) = comm_.isend(DeviceSpan<const std::byte>(static_cast<const std::byte*>(data), bytes), to, tag));
  }
  void receive(int request, void* data, std::size_t bytes, int from, int tag) override {
    (void)(at(request) = comm_.irecv(Bytes(static_cast<std::byte*>(data), bytes), from, tag));
  }
  void wait(int request) override { at(request).wait(); }
  void drop() override {
    for (Request& r : requests_) [[maybe_unused]] const Request dropped = std::move(r);
  }
  void progress() override { comm_.progress(); }
  double now() override { return comm::now(comm_); }
  void compute([[maybe_unused]] double seconds) override {
    if constexpr (comm::can<C, comm::Capability::computes>) comm_.compute(seconds);
    else
      throw ArgumentError("Pipeline: .lengths are for a world whose time passes by compute(seconds), such as SimComm or Delayed");
  }
  void sum(DeviceSpan<float> values) override { comm_.all_reduce(values, Sum{}); }
  void sum(DeviceSpan<double> values) override { comm_.all_reduce(values, Sum{}); }
  void broadcast(void* data, std::size_t bytes, int root) override {
    comm_.broadcast(Bytes(static_cast<std::byte*>(data), bytes), root);
  }
  void barrier() override { comm_.barrier(); }
  void assert_same(std::string_view what, const NamedValues& values) override { comm_.assert_same(what, values); }
  std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t> own) override { return comm_.all_gather(own); }
  std::vector<std::string> texts_of_all(const std::string& own) override { return comm_.all_gather(own); }
  comm::RankNames rank_names() override { return comm::names_of(comm_); }
  std::unique_ptr<PipelineLink> split([[maybe_unused]] int color, [[maybe_unused]] int key) override {
    if constexpr (comm::can<C, comm::Capability::splits>) return std::make_unique<PipelineLinkOver<C>>(comm_.split(color, key));
    else throw ArgumentError("Pipeline: .replicas want a communicator that can be split; this one cannot");
  }

 private:
  Request& at(int request) { return requests_[static_cast<std::size_t>(request)]; }

  Comm comm_;
  std::vector<Request> requests_;
};

/// While a step starts messages: an exception that leaves it ends what is under way before the memory goes that the messages
/// are in; the requests, which are the pipeline's, live on.
class MessagesOfStep {
 public:
  explicit MessagesOfStep(PipelineLink& link) : link_(link) {}
  MessagesOfStep(const MessagesOfStep&) = delete;
  MessagesOfStep& operator=(const MessagesOfStep&) = delete;
  ~MessagesOfStep() {
    if (std::uncaught_exceptions() > uncaught_) link_.drop();
  }

 private:
  PipelineLink& link_;
  int uncaught_ = std::uncaught_exceptions();
};
}  // namespace detail

/// Over a communicator that outlives the link.
template <class Comm> std::unique_ptr<PipelineLink> pipeline_link(Comm& comm) {
  assert_communicator<Comm, Cpu>();
  return std::make_unique<detail::PipelineLinkOver<Comm&>>(comm);
}

}  // namespace skein::inline SKEIN_ABI::parallel
