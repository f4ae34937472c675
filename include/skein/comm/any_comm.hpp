// SPDX-License-Identifier: Apache-2.0
// AnyComm: a communicator of the host whose type is not known where it is used, so that a training step over MpiComm and one over
// ThreadComm are compiled once. A call costs a virtual call more. Nothing here is for users, who give their communicators as they
// are.
#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <string_view>

#include "concepts.hpp"
#include "messages.hpp"
#include "queries.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What AnyComm hands its calls to.
class AnyEngine {
 public:
  virtual ~AnyEngine() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int node_size() const = 0;
  virtual int node_rank() const = 0;
  virtual bool one_process() const = 0;
  virtual double deadline() const = 0;
  virtual RankNames rank_names() const = 0;
  virtual void fail(const std::string& message) = 0;
  virtual SharedPages share(std::size_t bytes) = 0;

  virtual void run(const CollectiveCall& o) = 0;
  virtual Ticket start(const CollectiveCall& o) = 0;
  virtual void progress() = 0;
  virtual bool test(Ticket& t) = 0;
  virtual void wait(Ticket& t) = 0;
  virtual void abandon() = 0;
};

/// The engine of a communicator, which outlives this.
template <class C> class AnyEngineOver final : public AnyEngine {
 public:
  explicit AnyEngineOver(C& comm) : comm_(comm) {}
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  int node_size() const override { return comm::node_size(comm_); }
  int node_rank() const override { return comm::node_rank(comm_); }
  bool one_process() const override { return comm::one_process(comm_); }
  double deadline() const override { return comm::deadline(comm_); }
  RankNames rank_names() const override { return comm::rank_names(comm_.engine()); }
  void fail(const std::string& message) override { fail_all(comm_, message); }
  SharedPages share([[maybe_unused]] std::size_t bytes) override {
    if constexpr (can<C, Capability::shares>) return comm_.share(bytes);
    else return {};
  }

  void run(const CollectiveCall& o) override { comm_.engine().run(o); }
  Ticket start(const CollectiveCall& o) override { return comm_.engine().start(o); }
  void progress() override { comm_.engine().progress(); }
  bool test(Ticket& t) override { return comm_.engine().test(t); }
  void wait(Ticket& t) override { comm_.engine().wait(t); }
  void abandon() override { comm_.engine().abandon(); }

 private:
  C& comm_;
};

/// The collectives and agreements of another communicator, which outlives this.
class AnyComm : public Agreements<AnyComm, Cpu> {
 public:
  static constexpr std::string_view name = "AnyComm";
  static constexpr Capabilities capabilities{Capability::nodes,     Capability::node_places, Capability::processes,
                                             Capability::deadlines, Capability::failures,    Capability::shares};
  using engine_type = AnyEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  template <class C>
  requires(!std::same_as<C, AnyComm>) explicit AnyComm(C& comm) : engine_(std::make_unique<AnyEngineOver<C>>(comm)) {}

  int rank() const { return engine_->rank(); }
  int size() const { return engine_->size(); }
  int node_size() const { return engine_->node_size(); }
  int node_rank() const { return engine_->node_rank(); }
  bool one_process() const { return engine_->one_process(); }
  double deadline() const { return engine_->deadline(); }
  /// Ends all ranks with a CommError.
  void fail(const std::string& message) { engine_->fail(message); }
  /// None where the communicator has no such pages.
  SharedPages share(std::size_t bytes) { return engine_->share(bytes); }
  engine_type& engine() { return *engine_; }

 private:
  std::unique_ptr<AnyEngine> engine_;
};

/// AnyComm has all that this one does in a step: it is of the host, its collectives are those of Messages, and it has no clock of
/// its own.
template <class C> concept Erasable = Communicator<C> && std::same_as<typename C::device, Cpu> &&
                                      std::derived_from<C, Messages<C, Cpu>> &&
                                      (capabilities_of<C> - AnyComm::capabilities -
                                       Capabilities{Capability::orders, Capability::splits}) == Capabilities{};

}  // namespace skein::inline SKEIN_ABI::comm
