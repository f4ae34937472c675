// SPDX-License-Identifier: Apache-2.0
// The bodies of training_file.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <new>

#include "../core/text.hpp"
#include "../plan/placement.hpp"
#include "training_file.hpp"
#include "weights_file.hpp"
#include "while_busy.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {
namespace detail {

/// Whose values these are, "ClipNorm, Sgd, the chain": of lines as NamedValues makes them.
inline std::string owners_of(std::string_view lines) {
  TextList owners;
  std::string last;
  while (!lines.empty()) {
    const std::string_view name = lines.substr(0, std::min(lines.find('\t'), lines.size()));
    const std::size_t of = name.find(" of ");
    const std::string owner(of == name.npos ? name : name.substr(of + 4));
    if (owner != last) owners.add(owner);
    last = owner;
    const std::size_t end = lines.find('\n');
    lines.remove_prefix(end == lines.npos ? lines.size() : end + 1);
  }
  return owners.text();
}

/// Throws FileError where a file's optimizer is another than this one, of which these are the lines and the number of arrays.
inline void check_optimizer(CheckpointReader& reader, const std::string& own, int arrays) {
  std::string saved;  // of files of older versions: not known
  if (reader.contains("optimizer")) reader.read_object("optimizer", saved);
  const std::string theirs = owners_of(saved), ours = owners_of(own);
  int there = 0;
  for (const SectionInfo& s : reader.sections()) {
    int number = -1;
    if (constexpr std::string_view begin = "optimizer/"; s.name.starts_with(begin))
      (void)std::from_chars(s.name.data() + begin.size(), s.name.data() + s.name.size(), number);
    there = std::max(there, number + 1);
  }
  if ((saved.empty() || theirs == ours) && there == arrays) return;
  if (theirs == ours && theirs != "the optimizer")  // which is what one without describe() is called
    throw FileError(
        reader.path(), -1,
        text("the file has {} arrays of state a parameter ({}), this training's optimizer has {}; .momentum to or from "
             "0, .amsgrad and .centered change their number, and transforms without describe(): go on with the file's; "
             "load_weights(path) takes the "
             "weights alone",
             there, theirs, arrays));
  throw FileError(reader.path(), -1,
                  text("the file was saved with another optimizer ({} and {} arrays of state a parameter) than this training has "
                       "({} and {}): go on with that one; load_weights(path) takes the weights alone",
                       saved.empty() ? "another" : std::string_view(theirs), there, ours, arrays));
}

/// Throws FileError where the file was saved with another loss.
inline void check_loss(CheckpointReader& reader, const std::string& own) {
  std::string saved = own;  // of files of older versions: not known
  if (reader.contains("loss")) reader.read_object("loss", saved);
  if (saved == own) return;
  throw FileError(reader.path(), -1,
                  text("the file was saved with another loss ({}) than this training has ({}): go on with that one; "
                       "load_weights(path) takes the weights alone",
                       saved, own));
}

/// What rank r of n writes of an array that all have: whole rows of the table, where the shares are about even then.
inline plan::Range share_of_file(std::span<const plan::Entry> entries, long stored, int n, int r) {
  constexpr long little = 16 * 1024;
  const std::vector<plan::Range> rows = plan::slices_at_rows(entries, stored, n);
  long largest = 0;
  for (const plan::Range& part : rows) largest = std::max(largest, part.end - part.begin);
  if (largest <= stored / n + stored / n / 4 + little) return rows[static_cast<std::size_t>(r)];
  return plan::even_range(stored, n, r);
}

SKEIN_INLINE void while_ranks_meet(SavedTraining& training, const std::function<void()>& work) {
  if (training.ranks() == 1) return work();
  const auto any_is_busy = [&](bool busy) {
    double ranks[1] = {busy ? 1.0 : 0.0};
    training.reduce(ranks);
    return ranks[0] > 0;
  };
  if (!training.simulated_time()) return while_busy(work, any_is_busy);
  work();
  (void)any_is_busy(false);
}

SKEIN_INLINE const void* SnapshotMemory::copy(const void* from, std::size_t bytes) {
  if (next_ == blocks_.size()) blocks_.emplace_back();
  Block& block = blocks_[next_++];
  if (block.size < bytes) block = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]), bytes};
  if (!block.bytes) {
    block.size = 0;
    return nullptr;
  }
  return std::memcpy(block.bytes.get(), from, bytes);
}

/// Into a writer.
struct WriterSink final : SectionSink {
  WriterSink(CheckpointWriter& w, SnapshotMemory* s, std::string& why) : writer(w), snapshot(s), fault(why) {}
  void array(const SavedArray& a, plan::Range range, const void* values) override {
    const std::size_t bytes = static_cast<std::size_t>(range.end - range.begin) * static_cast<std::size_t>(value_bytes(a.type));
    if (bytes == 0) return;
    if (snapshot) values = snapshot->copy(values, bytes);
    if (values) noting(fault, [&] { add_array(writer, a, range, values); });
    else fault = text("there is no memory for a copy of {} bytes, which .checkpoint.async takes", bytes);
  }
  void object(const char* name, std::vector<std::byte>&& bytes) override {
    noting(fault, [&] { writer.add_object_bytes(name, std::move(bytes)); });
  }
  plan::Range share(std::span<const plan::Entry> entries, long stored, int n, int r) override {
    return share_of_file(entries, stored, n, r);
  }
  CheckpointWriter& writer;
  SnapshotMemory* snapshot;
  std::string& fault;  // of the file, which what is saved does not hear of
};
/// Out of a reader.
struct ReaderSource final : SectionSource {
  ReaderSource(CheckpointReader& r, const FileRead& before) : reader(r), before_change(before) {}
  bool has(const SavedArray& a) override { return !a.entries.empty() && reader.contains(section_of(a, a.entries.front())); }
  void array(const SavedArray& a, void* values) override {
    for (const plan::Entry& e : a.entries)
      reader.read_values(section_of(a, e), a.type, e.extents, static_cast<std::byte*>(values) + e.offset * value_bytes(a.type),
                         row_pitch(e.extents.last()));
  }
  bool object(const char* name, std::vector<std::byte>& bytes) override {
    if (!reader.contains(name)) return false;
    bytes = reader.read_object_bytes(name);
    reader.take(name);
    return true;
  }
  void leave(const char* prefix) override {
    for (const SectionInfo& s : reader.sections())
      if (s.name.starts_with(prefix)) reader.take(s.name);
  }
  void finish() override {
    reader.finish();
    if (before_change) before_change(reader.hash());
  }
  const std::string& path() const override { return reader.path(); }
  CheckpointReader& reader;
  const FileRead& before_change;
};

SKEIN_INLINE void add_training(CheckpointWriter& writer, SavedTraining& training, const RecordsView& records, SavedPart part,
                               FileFailure& failure) {
  std::string fault;
  WriterSink sink(writer, part.snapshot, fault);
  std::exception_ptr gone;  // another rank: nothing can be told to the others
  failure.note([&] {
    try {
      training.save_to(sink, part.whole);
    } catch (const CommError&) { gone = std::current_exception(); }
  });
  if (gone) std::rethrow_exception(gone);
  if (!failure.failed()) failure.reason = fault;
  if (training.rank() != 0 || failure.failed()) return;
  if (records.callback_failure.failed())
    failure = {"a callback cannot be saved: " + records.callback_failure.reason, records.callback_failure.exception};
  failure.note([&] {
    writer.add_object("steps", training.steps());
    writer.add_object("optimizer", training.optimizer_lines());
    writer.add_object("loss", training.loss_name());
    writer.add_object("layers", layers_without_weights(training.layers()));
    writer.add_object("place", records.position);
    writer.add_object("history", records.history);
    writer.add_object("callbacks", records.callbacks);
    records.kept.write(writer);
  });
}

}  // namespace detail

SKEIN_INLINE void save_training(const std::string& path, SavedTraining& training, const RecordsView& records) {
  CheckpointWriter writer;
  FileFailure failure;
  detail::add_training(writer, training, records, {}, failure);
  failure.meet([&] {
    detail::while_ranks_meet(training, [&] {
      if (training.rank() == 0 && !failure.failed()) noting(failure.reason, [&] { writer.commit(path); });
    });
    training.saved();
    const auto throw_own = [&] { failure.raise(path, "could not be saved: "); };
    if (training.has_servers()) {  // which may be serving
      double failed[1] = {failure.failed() ? 1.0 : 0.0};
      training.reduce(failed);
      if (failure.failed()) throw_own();
      if (failed[0] > 0) throw CommError("save: rank 0 could not write '" + path + "': see its message");
      return;
    }
    (void)agree_on_failure(training, {}, failure.reason, throw_own, [&](int rank, const std::string& reason) {
      return text("save: rank {} could not write '{}': {}", rank, path, reason);
    });
  });
}

SKEIN_INLINE LoadedTraining load_training(const std::string& path, SavedTraining& training, Verify verify,
                                          const FileRead& before_change) {
  CheckpointReader reader{path, verify};  // every hash is checked before anything is changed
  if (!reader.contains("steps"))
    throw FileError(path, -1, "has weights alone, and no training that could go on: load_weights(path) takes them");
  detail::check_optimizer(reader, training.optimizer_lines(), training.state_arrays());
  detail::check_loss(reader, training.loss_name());
  check_layers(reader, path, layers_without_weights(training.layers()));
  LoadedTraining loaded;
  std::int64_t steps = 0;
  reader.read_object("steps", steps);
  reader.read_object("place", loaded.records.position);
  if (steps < loaded.records.position.first_step || steps > (std::int64_t{1} << 53))
    throw FileError(path, -1, text("says that {} optimizer steps were made: it is damaged", steps));
  reader.read_object("history", loaded.records.history);
  reader.read_object("callbacks", loaded.records.callbacks);
  loaded.records.kept.read(reader);
  if (reader.contains("optimizer")) reader.read_object("optimizer", loaded.records.optimizer);
  detail::ReaderSource source(reader, before_change);
  training.load_from(source);
  training.set_steps(steps);
  loaded.hash = reader.hash();
  return loaded;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
