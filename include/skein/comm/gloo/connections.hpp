// SPDX-License-Identifier: Apache-2.0
// What a GlooComm rank has between machines: gloo's connections to the other ranks, and the threads that work on them.
#pragma once
#include <optional>
#include <string>
#include <system_error>

#include "collectives.hpp"
#include "messages.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// A rank that cannot start the threads of its connections.
inline std::string threads_text(const std::string& rank, const std::system_error& e) {
  return rank + " cannot start a thread (" + e.what() +
         "): GlooComm has one for each other rank, two for those that it sends to; see ulimit -u";
}

/// The connections of one rank, with a thread for its collectives and those of its messages. What goes wrong in one of these is
/// told to the coordinator.
class GlooConnections {
 public:
  using Device = std::shared_ptr<gloo::transport::Device>;

  /// Collective over the control's ranks, which must outlive this. `device`: a split's, of its parent. `piece`: as GlooMesh's.
  GlooConnections(ControlComm& control, Device device, bool one_machine, std::size_t piece)
      : control_(control), mesh_(control, device ? std::move(device) : gloo_device(control, one_machine), piece) {
    collectives_.emplace(mesh_, [this](const std::string& call, const std::string& why, int ended) {
      const bool left = ended >= 0 && turns_out_left(ended);
      const std::string reason = left ? client().why_left(control_.engine().group()) : "";
      const std::string what = !reason.empty() ? reason : left ? mesh_.names().name(ended) + will_not_arrive : why;
      if (!control_.engine().failed()) control_.engine().fail(ended < 0 || !reason.empty() ? what : call + what);
    });
    messages_.emplace(mesh_, [this](int ended, const std::string& why) {
      if (turns_out_left(ended)) return true;
      if (!control_.engine().failed()) control_.engine().fail(why);
      return false;
    });
  }
  GlooConnections(const GlooConnections&) = delete;
  GlooConnections& operator=(const GlooConnections&) = delete;
  ~GlooConnections() { stop(); }

  static constexpr const char* will_not_arrive = " returned and will not arrive";

  const Device& device() const { return mesh_.device(); }
  GlooCollectives& collectives() { return *collectives_; }
  GlooMessages& messages() { return *messages_; }
  /// Something has come or gone since the last call.
  bool moved() { return mesh_.moved(); }
  /// Ends all waits, and the threads: nobody touches a caller's memory any more.
  void stop() {
    mesh_.abort();
    if (collectives_) collectives_->stop();
    if (messages_) messages_->stop();
  }
  /// Ends the waits and the thread of the collectives, whose text then says what is missing.
  void stop_collectives() { mesh_.abort(), collectives_->stop(); }

 private:
  control::Client& client() { return control_.engine().client(); }
  // By a thread. The connection to a rank has ended: because it has left? If the coordinator says nothing in ten seconds, no.
  bool turns_out_left(int rank) {
    const auto has_left = [&] { return client().has_left(control_.engine().group(), rank); };
    for (int i = 0; i < 1000 && !control_.engine().failed() && !mesh_.aborted() && !has_left(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return has_left();
  }

  ControlComm& control_;
  GlooMesh mesh_;
  std::optional<GlooCollectives> collectives_;
  std::optional<GlooMessages> messages_;
};

}  // namespace skein::inline SKEIN_ABI::comm
