// SPDX-License-Identifier: Apache-2.0
// A communicator that counts what its splits send, each by itself: what goes over a policy's own groups.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <skein/comm/counted.hpp>

namespace support {
namespace sk = skein;

/// Around Inner, which must outlive it. parts() has the counts of the splits, in the order in which they were made, once those
/// are gone.
template <class Inner> class CountedSplits : public sk::comm::Messages<CountedSplits<Inner>, sk::Cpu> {
 public:
  static constexpr std::string_view name = Inner::name;
  static constexpr sk::comm::Capabilities capabilities{sk::comm::Capability::splits};
  using engine_type = sk::comm::CountingEngine<typename Inner::engine_type>;
  template <class T, class Op> static constexpr bool reduces = Inner::template reduces<T, Op>;

  explicit CountedSplits(Inner& inner)
      : inner_(&inner), engine_(std::make_unique<engine_type>(inner.engine(), inner.rank(), inner.size())),
        parts_(std::make_shared<Parts>()) {}
  CountedSplits(CountedSplits&&) = default;
  ~CountedSplits() {
    if (own_) (*parts_)[part_] = engine_->counts();
  }
  int rank() const { return inner_->rank(); }
  int size() const { return inner_->size(); }
  CountedSplits split(int color, int key = 0) {
    CountedSplits s(*this);
    s.own_ = std::make_unique<Inner>(inner_->split(color, key));
    s.inner_ = s.own_.get();
    s.engine_ = std::make_unique<engine_type>(s.inner_->engine(), s.inner_->rank(), s.inner_->size());
    s.part_ = parts_->size();
    parts_->emplace_back();
    return s;
  }
  const std::vector<sk::comm::Counts>& parts() const { return *parts_; }
  engine_type& engine() { return *engine_; }

 private:
  using Parts = std::vector<sk::comm::Counts>;
  explicit CountedSplits(const CountedSplits& o) : inner_(o.inner_), parts_(o.parts_) {}

  std::unique_ptr<Inner> own_;
  Inner* inner_;
  std::unique_ptr<engine_type> engine_;
  std::shared_ptr<Parts> parts_;
  std::size_t part_ = 0;
};

}  // namespace support
