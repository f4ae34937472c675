// SPDX-License-Identifier: Apache-2.0
// oneDNN's C interface, 2.6 and 3.x, behind a small interface: memory descriptors, primitives with a scratchpad of the thread,
// execution on the calling thread. Only where SKEIN_WITH_ONEDNN is set; the C header, since <dnnl.hpp> crashes nvcc 13.0.
#pragma once
#include "gemm_onednn.hpp"

#if SKEIN_WITH_ONEDNN
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../../device/memory.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu::onednn {

/// Throws DeviceError, with what failed, where oneDNN reports no success.
inline void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) throw DeviceError(text("oneDNN: {} failed (status {})", what, static_cast<int>(status)));
}

/// The processor as oneDNN's engine: one for the process, never destroyed.
inline dnnl_engine_t engine() {
  static dnnl_engine_t e = [] {
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "making the engine");
    return made;
  }();
  return e;
}

/// What a thread has of its own: a stream, and one scratchpad for all its primitives.
struct Thread {
  dnnl_stream_t stream = nullptr;
  Arena<std::byte> scratchpad;

  Thread() { check(dnnl_stream_create(&stream, engine(), dnnl_stream_default_flags), "making a stream"); }
  Thread(const Thread&) = delete;
  ~Thread() { dnnl_stream_destroy(stream); }
  void reserve(std::size_t bytes) {
    if (bytes > scratchpad.size()) scratchpad = Arena<std::byte>(bytes);
  }
  static Thread& here() {
    static thread_local Thread t;
    return t;
  }
};

#if DNNL_VERSION_MAJOR >= 3
using DescriptionRef = const_dnnl_memory_desc_t;
#else
using DescriptionRef = const dnnl_memory_desc_t*;
#endif

/// Extents and layout of an array of floats.
class Description {
 public:
  using Dims = std::vector<long>;
  /// By strides, or (no strides) in whatever layout a primitive likes best.
  Description(const Dims& extents, const Dims& strides) {
    dnnl_dims_t e{}, s{};
    int n = 0;
    for (long v : extents) e[n++] = v;
    int m = 0;
    for (long v : strides) s[m++] = v;
#if DNNL_VERSION_MAJOR >= 3
    if (m) check(dnnl_memory_desc_create_with_strides(&d_, n, e, dnnl_f32, s), "describing memory");
    else check(dnnl_memory_desc_create_with_tag(&d_, n, e, dnnl_f32, dnnl_format_tag_any), "describing memory");
#else
    if (m) check(dnnl_memory_desc_init_by_strides(&d_, n, e, dnnl_f32, s), "describing memory");
    else check(dnnl_memory_desc_init_by_tag(&d_, n, e, dnnl_f32, dnnl_format_tag_any), "describing memory");
#endif
  }
#if DNNL_VERSION_MAJOR >= 3
  explicit Description(DescriptionRef d) { check(dnnl_memory_desc_clone(&d_, d), "describing memory"); }
  Description(const Description& o) { check(dnnl_memory_desc_clone(&d_, o.d_), "describing memory"); }
  Description& operator=(Description o) {
    std::swap(d_, o.d_);
    return *this;
  }
  ~Description() { dnnl_memory_desc_destroy(d_); }
  DescriptionRef get() const { return d_; }
#else
  explicit Description(DescriptionRef d) : d_(*d) {}
  DescriptionRef get() const { return &d_; }
#endif
  std::size_t bytes() const { return dnnl_memory_desc_get_size(get()); }
  friend bool operator==(const Description& a, const Description& b) { return dnnl_memory_desc_equal(a.get(), b.get()) != 0; }

 private:
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t d_ = nullptr;
#else
  dnnl_memory_desc_t d_{};
#endif
};

/// Attributes that ask for the caller's scratchpad.
class Attributes {
 public:
  Attributes() {
    check(dnnl_primitive_attr_create(&a_), "making attributes");
    check(dnnl_primitive_attr_set_scratchpad_mode(a_, dnnl_scratchpad_mode_user), "making attributes");
  }
  Attributes(const Attributes&) = delete;
  ~Attributes() { dnnl_primitive_attr_destroy(a_); }
  dnnl_primitive_attr_t get() const { return a_; }

 private:
  dnnl_primitive_attr_t a_ = nullptr;
};

/// Owns a primitive's description.
class Plan {
 public:
  explicit Plan(dnnl_primitive_desc_t p = nullptr) : p_(p) {}
  Plan(Plan&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Plan& operator=(Plan&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Plan() {
    if (p_) dnnl_primitive_desc_destroy(p_);
  }
  dnnl_primitive_desc_t get() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  DescriptionRef query(dnnl_query_t what) const { return dnnl_primitive_desc_query_md(p_, what, 0); }

 private:
  dnnl_primitive_desc_t p_ = nullptr;
};

/// One argument of a primitive: which, and in what layout.
struct Argument {
  int index;
  DescriptionRef layout;
};

/// A primitive with its arguments, made once, by a thread without an OpenMP team, to which it belongs; run() takes the pointers
/// in the same order.
class Primitive {
 public:
  Primitive(const Plan& plan, std::initializer_list<Argument> arguments) {
    check(dnnl_primitive_create(&p_, plan.get()), "making a primitive");
    for (const Argument& a : arguments) add(a);
    add({DNNL_ARG_SCRATCHPAD, plan.query(dnnl_query_scratchpad_md)});
    Thread::here().reserve(dnnl_memory_desc_get_size(plan.query(dnnl_query_scratchpad_md)));
  }
  Primitive(const Primitive&) = delete;
  ~Primitive() {
    for (std::size_t i = 0; i < pointers_.size(); ++i) dnnl_memory_destroy(arguments_[i].memory);
    dnnl_primitive_destroy(p_);
  }
  void run(std::initializer_list<const void*> pointers) {
    const NoOmpTeam alone;
    Thread& t = Thread::here();
    std::size_t i = 0;
    for (const void* p : pointers) point(i++, const_cast<void*>(p));
    point(i, t.scratchpad.data());
    check(dnnl_primitive_execute(p_, t.stream, static_cast<int>(pointers_.size()), arguments_), "running a primitive");
    check(dnnl_stream_wait(t.stream), "waiting");
  }

 private:
  void add(const Argument& a) {
    if (pointers_.size() == most) throw DeviceError("oneDNN: a primitive takes more arguments than Primitive::most");
    dnnl_exec_arg_t& e = arguments_[pointers_.size()];
    e.arg = a.index;
    check(dnnl_memory_create(&e.memory, a.layout, engine(), DNNL_MEMORY_NONE), "making memory");
    pointers_.push_back(nullptr);
  }
  void point(std::size_t i, void* p) {
    if (pointers_[i] == p) return;
    check(dnnl_memory_set_data_handle(arguments_[i].memory, p), "setting memory");
    pointers_[i] = p;
  }
  dnnl_primitive_t p_ = nullptr;
  static constexpr std::size_t most = 12;
  dnnl_exec_arg_t arguments_[most] = {};  // no std::vector: nvcc 13.0 crashes on one of a C struct without a name
  std::vector<void*> pointers_;
};

/// A copy from one layout to another.
inline std::unique_ptr<Primitive> make_reorder(const Description& from, const Description& to) {
  Attributes attributes;
  dnnl_primitive_desc_t p = nullptr;
  check(dnnl_reorder_primitive_desc_create(&p, from.get(), engine(), to.get(), engine(), attributes.get()), "planning a copy");
  return std::make_unique<Primitive>(Plan(p),
                                     std::initializer_list<Argument>{{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}});
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu::onednn
#endif
