// SPDX-License-Identifier: Apache-2.0
// The concept of a callback: a small value with any of the hooks below; what it lacks costs nothing. Callbacks run on every
// rank that trains (the servers of a ParameterServer run none), in the order in which they were given. AnyCallback and Callbacks
// hold them for a trainer.
//
//     void on_fit_begin(FitControl&)                         void on_fit_end(const History&)
//     void on_epoch_begin(int epoch, FitControl&)            void on_epoch_end(EpochRecord&, FitControl&)
//     void on_step_end(const StepRecord&, FitControl&)       void on_update(std::int64_t step), which needs no record
//
// A function of (EpochRecord&, FitControl&) or of (EpochRecord&) is a callback too: it runs at the end of each epoch. One with
// template <class Archive> void serialize(Archive&, unsigned version) keeps its state in checkpoints; with std::string saved_as()
// beside it, a file whose state in this place is of another name is refused. What void check_options() const throws, fit throws
// before it begins, so that a training that was loaded may still go on. One that asks to keep weights may say by a
// bool keeps_weights() const that it does not; a training that goes on has those of a file only where whoever kept them may be
// among its callbacks.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../fwd.hpp"
#include "archive.hpp"
#include "fit_control.hpp"
#include "records.hpp"
#include "watch.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
template <class T> concept HasFitBegin = requires(T t, FitControl c) { t.on_fit_begin(c); };
template <class T> concept HasFitEnd = requires(T t, const History& h) { t.on_fit_end(h); };
template <class T> concept HasEpochBegin = requires(T t, FitControl c) { t.on_epoch_begin(1, c); };
template <class T> concept HasEpochEnd = requires(T t, EpochRecord r, FitControl c) { t.on_epoch_end(r, c); };
template <class T> concept HasStepEnd = requires(T t, const StepRecord& r, FitControl c) { t.on_step_end(r, c); };
template <class T> concept HasUpdate = requires(T t) { t.on_update(std::int64_t{1}); };
/// At the end of an epoch it takes a record that it cannot change. A template is not asked: its body need not compile for such.
template <class T> concept ReadsEpochEnd = requires { &T::on_epoch_end; }
&&requires(T t, const EpochRecord& r, FitControl c) { t.on_epoch_end(r, c); };
template <class T> concept ReadsEpoch = requires { &T::operator(); }
&&(std::invocable<T&, const EpochRecord&, FitControl&> || std::invocable<T&, const EpochRecord&>);
template <class T> concept IsEpochFunction = std::invocable<T&, EpochRecord&, FitControl&> || std::invocable<T&, EpochRecord&>;
/// It looks at one value of the epochs, and adds none.
template <class T> concept HasWatch = requires(const T& t) {
  { t.watch } -> std::same_as<const Watch&>;
};
template <class T> concept HasState = requires(T t, OutArchive& archive) { t.serialize(archive, 0u); };
template <class T> concept ChecksOptions = requires(const T& t) { t.check_options(); };
template <class T> concept HasControl =
    HasFitBegin<T> || HasEpochBegin<T> || HasEpochEnd<T> || HasStepEnd<T> || std::invocable<T&, EpochRecord&, FitControl&>;
template <class T> concept SaysItKeeps = requires(const T& t) {
  { t.keeps_weights() } -> std::convertible_to<bool>;
};
template <class T> concept HasNamedState = HasState<T> && requires(T t) { std::string(t.saved_as()); };
}  // namespace detail

/// What it has gathered is read after the fit: it says so by static constexpr bool is_read_afterwards = true, and a copy of it is
/// refused.
template <class T> concept IsReadAfterwards = requires { requires T::is_read_afterwards; };

/// Has at least one hook.
template <class T> concept Callback = std::copy_constructible<T> &&
    (detail::HasFitBegin<T> || detail::HasFitEnd<T> || detail::HasEpochBegin<T> || detail::HasEpochEnd<T> ||
     detail::HasStepEnd<T> || detail::HasUpdate<T> || detail::IsEpochFunction<T>);

/// Says in one sentence what keeps T from being a callback.
template <class T> consteval void assert_callback() {
  static_assert(std::copy_constructible<T>,
                "a callback is a small value: give it a copy constructor, or hand it over by std::ref");
  static_assert(
      !std::copy_constructible<T> || Callback<T>,
      "a callback needs one of the hooks on_fit_begin(FitControl&), on_epoch_begin(int, FitControl&), "
      "on_update(std::int64_t step), on_step_end(const StepRecord&, FitControl&), on_epoch_end(EpochRecord&, FitControl&), "
      "on_fit_end(const History&)");
}

/// Any callback behind one type. Owns a copy, or refers to the user's through std::ref.
class AnyCallback {
  template <class T> struct Unwrapped { using type = T; };
  template <class T> struct Unwrapped<std::reference_wrapper<T>> { using type = T; };

 public:
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, AnyCallback>) AnyCallback(T&& callback) {
    using Inner = typename Unwrapped<std::remove_cvref_t<T>>::type;
    assert_callback<Inner>();
    static_assert(!std::same_as<Inner, std::remove_cvref_t<T>> || !IsReadAfterwards<Inner>,
                  "the trainer would fill a copy of this callback: hand it over by reference, .callbacks = {std::ref(log)}, and "
                  "read it afterwards");
    if constexpr (Callback<Inner>) held_ = std::make_unique<Model<std::remove_cvref_t<T>>>(std::forward<T>(callback));
  }
  AnyCallback(const AnyCallback& other) : held_(other.held_->copy()) {}
  AnyCallback(AnyCallback&&) noexcept = default;
  AnyCallback& operator=(AnyCallback other) noexcept;

  void on_fit_begin(FitControl& control) { held_->on_fit_begin(control); }
  void on_fit_end(const History& history) { held_->on_fit_end(history); }
  void on_epoch_begin(int epoch, FitControl& control) { held_->on_epoch_begin(epoch, control); }
  void on_epoch_end(EpochRecord& record, FitControl& control) { held_->on_epoch_end(record, control); }
  void on_step_end(const StepRecord& record, FitControl& control) { held_->on_step_end(record, control); }
  void on_update(std::int64_t step) { held_->on_update(step); }
  /// Throws where its options are none.
  void check_options() { held_->check_options(); }
  /// Whether the trainer has to make step records for it (the loss of a step costs a reduction over ranks).
  bool wants_steps() const { return held_->wants_steps(); }
  /// What it looks at after each epoch: its member `watch`; null where it has none.
  const Watch* watch() const { return held_->watch(); }
  /// Whether it may add scores to the record of an epoch, which callbacks behind it can watch.
  bool adds_scores() const { return held_->adds_scores(); }
  /// The name of its state in files; empty where it has none.
  std::string saved_as() { return held_->saved_as(); }
  /// Weights may be its that one of this name has kept, which keeps some again; "": of one without a name.
  bool keeps_weights_of(const std::string& name) { return held_->keeps_weights_of(name); }
  void serialize(OutArchive& archive, unsigned) { held_->save(archive); }
  void serialize(InArchive& archive, unsigned) { held_->load(archive); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual void on_fit_begin(FitControl&) = 0;
    virtual void on_fit_end(const History&) = 0;
    virtual void on_epoch_begin(int, FitControl&) = 0;
    virtual void on_epoch_end(EpochRecord&, FitControl&) = 0;
    virtual void on_step_end(const StepRecord&, FitControl&) = 0;
    virtual void on_update(std::int64_t) = 0;
    virtual void check_options() const = 0;
    virtual bool wants_steps() const = 0;
    virtual const Watch* watch() const = 0;
    virtual bool adds_scores() const = 0;
    virtual std::string saved_as() = 0;
    virtual bool keeps_weights_of(const std::string&) = 0;
    virtual void save(OutArchive&) = 0;
    virtual void load(InArchive&) = 0;
  };
  template <class T> struct Model final : Base {
    using Inner = typename Unwrapped<T>::type;
    explicit Model(T given) : callback(std::move(given)) {}
    Inner& inner() { return callback; }
    const Inner& inner() const { return callback; }
    std::unique_ptr<Base> copy() const override { return std::make_unique<Model>(*this); }
    void on_fit_begin([[maybe_unused]] FitControl& c) override {
      if constexpr (detail::HasFitBegin<Inner>) inner().on_fit_begin(c);
    }
    void on_fit_end([[maybe_unused]] const History& h) override {
      if constexpr (detail::HasFitEnd<Inner>) inner().on_fit_end(h);
    }
    void on_epoch_begin([[maybe_unused]] int epoch, [[maybe_unused]] FitControl& c) override {
      if constexpr (detail::HasEpochBegin<Inner>) inner().on_epoch_begin(epoch, c);
    }
    void on_epoch_end([[maybe_unused]] EpochRecord& r, [[maybe_unused]] FitControl& c) override {
      if constexpr (detail::HasEpochEnd<Inner>) inner().on_epoch_end(r, c);
      else if constexpr (std::invocable<Inner&, EpochRecord&, FitControl&>) inner()(r, c);
      else if constexpr (std::invocable<Inner&, EpochRecord&>) inner()(r);
    }
    void on_step_end([[maybe_unused]] const StepRecord& r, [[maybe_unused]] FitControl& c) override {
      if constexpr (detail::HasStepEnd<Inner>) inner().on_step_end(r, c);
    }
    void on_update([[maybe_unused]] std::int64_t step) override {
      if constexpr (detail::HasUpdate<Inner>) inner().on_update(step);
    }
    void check_options() const override {
      if constexpr (detail::ChecksOptions<Inner>) inner().check_options();
    }
    bool wants_steps() const override { return detail::HasStepEnd<Inner>; }
    const Watch* watch() const override {
      if constexpr (detail::HasWatch<Inner>) return &inner().watch;
      else return nullptr;
    }
    bool adds_scores() const override {
      if constexpr (detail::HasWatch<Inner>) return false;
      else if constexpr (detail::HasEpochEnd<Inner>) return !detail::ReadsEpochEnd<Inner>;
      else return detail::IsEpochFunction<Inner> && !detail::ReadsEpoch<Inner>;
    }
    std::string saved_as() override {
      if constexpr (detail::HasNamedState<Inner>) return inner().saved_as();
      else return {};
    }
    bool keeps_weights_of(const std::string& name) override {
      if constexpr (!detail::HasControl<Inner>) return false;
      else if constexpr (detail::SaysItKeeps<Inner>)
        return inner().keeps_weights() && (name.empty() || name == unknown_keeper || name == saved_as());
      else return name == unknown_keeper || name == saved_as();
    }
    void save([[maybe_unused]] OutArchive& archive) override {
      if constexpr (detail::HasState<Inner>) (archive & inner());
    }
    void load([[maybe_unused]] InArchive& archive) override {
      if constexpr (detail::HasState<Inner>) (archive & inner());
    }
    T callback;
  };
  std::unique_ptr<Base> held_;
};

/// The callbacks of a trainer, in order. Each hook calls all of them, also when one asked to stop.
class Callbacks {
 public:
  static constexpr unsigned archive_version = 1;
  Callbacks() = default;
  Callbacks(std::initializer_list<AnyCallback> all);
  Callbacks(const Callbacks&);
  Callbacks(Callbacks&&) noexcept;
  Callbacks& operator=(const Callbacks&);
  Callbacks& operator=(Callbacks&&) noexcept;
  ~Callbacks();
  void add(AnyCallback callback);
  std::size_t size() const { return all_.size(); }
  bool wants_steps() const;
  /// Throws what their check_options() throw, and ArgumentError where one watches what the fit's epochs will not have, or in the
  /// direction that is not better. `measured`: an epoch's record with what the fit itself measures.
  void check(const EpochRecord& measured);

  void on_fit_begin(FitControl& control);
  void on_fit_end(const History& history);
  void on_epoch_begin(int epoch, FitControl& control);
  void on_epoch_end(EpochRecord& record, FitControl& control);
  void on_step_end(const StepRecord& record, FitControl& control);
  /// After each optimizer step, of which no record is made.
  void on_update(std::int64_t step) {
    for (AnyCallback& each : all_) each.on_update(step);
  }

  /// The states of all that have one, each with its name and its number of bytes. Other callbacks on loading are a FileError.
  void serialize(OutArchive& archive, unsigned version);
  void serialize(InArchive& archive, unsigned version);
  /// What a file has, which is rank 0's, into those of another rank, which may be others: each with a name gets the state of that
  /// name, and one without begins anew. Returns the names that the file has not. `path` is for messages.
  std::vector<std::string> load_by_name(std::span<const std::byte> bytes, const std::string& path);
  /// How many a file has the states of.
  static std::uint64_t saved_in(std::span<const std::byte> bytes);
  /// The name of the one that has asked last, in a hook, to keep the weights; empty where it has none, or none has.
  std::string keeper();
  /// Weights that one of this name has kept may be of one of these.
  bool keeps_weights_of(const std::string& name);

 private:
  /// Calls a hook of all, and sees which one asks to keep the weights.
  template <class Hook> void each(FitControl& control, const Hook& hook);

  std::vector<AnyCallback> all_;
  std::string keeper_;
  std::size_t running_ = 0;  // the place behind that whose hook runs, which asks for them first; 0: none
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "callback.ipp"
#endif
