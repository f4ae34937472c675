// SPDX-License-Identifier: Apache-2.0
// A model's parameters and buffers to NumPy and back, by their names: save_npz("weights.npz", model), load_npz("weights.npz",
// model). In PyTorch's layout the file is that of its state_dict.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../device/memory.hpp"
#include "../plan/program.hpp"
#include "../tensor/npz.hpp"
#include "host_copy.hpp"

namespace skein::inline SKEIN_ABI {

/// How weights lie in a file.
enum class WeightLayout {
  skein,   ///< as in the model: the output index last, images as (height, width, channels)
  pytorch  ///< Linear (out, in), Conv2d (out, in / groups, height, width); behind a Flatten, and before a Reshape that makes an
           ///< image of them, features count (channels, height, width); Rnn, Lstm and Gru (gates H, in), whose weight_ih has the
           ///< name weight_ih_l0, as that of torch's with one layer (load_npz takes both names)
};

/// Options of save_npz and load_npz of a model.
struct WeightOptions {
  WeightLayout layout = WeightLayout::skein;  ///< of the file
  bool partial = false;                       ///< load_npz: arrays that the file lacks, or has too many, are no fault,
                                              ///< unless none is the model's
  std::string except{};  ///< load_npz: arrays of such names are left as they are, "13.*": of another head, which has other sizes
  std::size_t limit = npz_limit;  ///< load_npz: bytes that an array may unpack to
};

namespace train::detail {
/// Throws the ArgumentError of a number that is none of these.
inline void demand_value(const char* who, const char* setting, WeightLayout value) {
  skein::detail::demand_value(who, setting, value, WeightLayout::pytorch, "skein or pytorch");
}
/// One array in the arena and in the file: up to four extents to walk through, with the strides of both.
struct ArrayInFile {
  std::array<long, 4> extents{1, 1, 1, 1}, arena{}, file{};
  std::vector<long> shape;  // of the file's array
};
/// Where entry e of the program's layers, the array of that name, lies in the file. Throws FileError where PyTorch's order of
/// its features is not known: a flattened image reaches it through a layer that may reorder features or join them with others.
ArrayInFile array_in_file(std::span<const plan::LayerNode> layers, const plan::Entry& e, WeightLayout layout,
                          const std::string& path, std::string_view name);
/// The name of entry e of the program's layers, `name` in the model, in a file: in PyTorch's layout those of an Rnn, Lstm and Gru
/// end with "_l0".
std::string name_in_file(std::span<const plan::LayerNode> layers, const plan::Entry& e, WeightLayout layout,
                         std::string_view name);
/// Names of a file, with those of a pair's second as its first: what the model calls it.
std::vector<std::string> names_in_model(std::vector<std::string> found,
                                        const std::vector<std::pair<std::string, std::string>>& renamed);
/// The names of a program's parameters and buffers.
std::vector<std::string> names_of_arrays(std::span<const plan::Entry> parameters, std::span<const plan::Entry> buffers,
                                         std::span<const plan::PathPart> paths);
/// Is the array left as it is: options.except names it.
bool is_excepted(const WeightOptions& options, std::string_view name);
/// Throws FileError where `found` is another shape than the file's array must have; `known`: the names of the model's arrays.
void check_shape(const std::string& path, const std::string& name, std::span<const long> found, const ArrayInFile& wanted,
                 const std::vector<std::string>& known);
/// Throws FileError for names that only the file or only the model has; if `partial`, where none is in both. Throws
/// ArgumentError where options.except names none of the model's arrays, or all.
void check_names(const std::string& path, std::vector<std::string> found, std::vector<std::string> known,
                 const WeightOptions& options);

/// What a file's comment says of its layout; and throws FileError where a file says another one than is asked for.
std::string comment_of(WeightLayout layout);
void check_layout(const std::string& path, std::string_view comment, WeightLayout asked);

/// Values between the arena and a dense array: copy(arena value, file value).
template <class Arena, class File, class Copy> void walk(const ArrayInFile& a, Arena* arena, File* file, Copy&& copy) {
  for (long i = 0; i < a.extents[0]; ++i)
    for (long j = 0; j < a.extents[1]; ++j)
      for (long k = 0; k < a.extents[2]; ++k)
        for (long l = 0; l < a.extents[3]; ++l)
          copy(arena[i * a.arena[0] + j * a.arena[1] + k * a.arena[2] + l * a.arena[3]],
               file[i * a.file[0] + j * a.file[1] + k * a.file[2] + l * a.file[3]]);
}
/// Calls f with the rank of an array, 1 to 5, as a constant.
template <class Function> void with_rank(std::size_t rank, Function&& f) {
  if (rank == 1) f(std::integral_constant<int, 1>{});
  else if (rank == 2) f(std::integral_constant<int, 2>{});
  else if (rank == 3) f(std::integral_constant<int, 3>{});
  else if (rank == 4) f(std::integral_constant<int, 4>{});
  else f(std::integral_constant<int, 5>{});
}
template <int Rank> Dims<Rank> dims_of(std::span<const long> extents) {
  Dims<Rank> d;
  for (int i = 0; i < Rank; ++i) d.e[i] = extents[static_cast<std::size_t>(i)];
  return d;
}
}  // namespace train::detail

/// Writes the parameters and buffers of a model, of any device, as arrays with their names ("0.weight"), without the padding of
/// rows. `numpy.load` reads it; with {.layout = WeightLayout::pytorch} it is a `state_dict`, that of modules of one layer and
/// direction where the network has an Rnn, Lstm or Gru. Throws FileError.
template <class Model>
requires requires { Model::program; }
void save_npz(const std::string& path, const Model& model, const WeightOptions& options = {}) {
  using Scalar = typename Model::Scalar;
  train::detail::demand_value("save_npz", ".layout", options.layout);
  NpzWriter out(path);
  const auto add = [&](auto arena, std::span<const plan::Entry> entries) {
    train::HostCopy<Scalar, typename Model::device> copy;
    const Scalar* data = copy.read(arena.data, arena.size, model.where());
    for (const plan::Entry& e : entries) {
      const auto place = train::detail::array_in_file(Model::program.layers(), e, options.layout, path, Model::program.name(e));
      std::vector<Scalar> dense(static_cast<std::size_t>(e.extents.count()));
      train::detail::walk(place, data + e.offset, dense.data(), [](const Scalar& from, Scalar& to) { to = from; });
      train::detail::with_rank(place.shape.size(), [&]<int Rank>(std::integral_constant<int, Rank>) {
        const auto extents = train::detail::dims_of<Rank>(place.shape);
        out.add(train::detail::name_in_file(Model::program.layers(), e, options.layout, Model::program.name(e)),
                TensorView<const Scalar, Rank, Cpu>(dense.data(), extents, row_major(extents)));
      });
    }
  };
  add(model.parameters(), Model::program.parameters());
  add(model.buffers(), Model::program.buffers());
  out.set_comment(train::detail::comment_of(options.layout));
  out.close();
}

/// Reads the parameters and buffers of a model out of what save_npz, or numpy.savez of a state_dict, wrote. Numbers of another
/// type are converted. Throws FileError for arrays that are missing, too many or of another shape, if partial where there is none
/// of the model's, and for a file that save_npz wrote in the other layout; the model is as before then.
template <class Model>
requires requires { Model::program; }
void load_npz(const std::string& path, Model& model, const WeightOptions& options = {}) {
  using Scalar = typename Model::Scalar;
  train::detail::demand_value("load_npz", ".layout", options.layout);
  const NpzFile file(path, options.limit);
  train::detail::check_layout(path, file.comment(), options.layout);
  const std::vector<std::string> known =
      train::detail::names_of_arrays(Model::program.parameters(), Model::program.buffers(), Model::program.parts());
  std::vector<std::pair<std::string, std::string>> renamed;  // the name in the model, and in this file
  const auto staged = [&](auto arena, std::span<const plan::Entry> entries) {
    train::HostCopy<Scalar, typename Model::device> copy;
    const Scalar* now = copy.read(arena.data, arena.size, model.where());
    std::vector<Scalar> next(now, now + arena.size);
    for (const plan::Entry& e : entries) {
      const std::string name(std::string_view(Model::program.name(e)));
      std::string stored = train::detail::name_in_file(Model::program.layers(), e, options.layout, name);
      if (!file.contains(stored)) stored = name;
      if (stored != name) renamed.emplace_back(name, stored);
      if (train::detail::is_excepted(options, name) || !file.contains(stored)) continue;  // check_names() speaks of what it lacks
      const auto place = train::detail::array_in_file(Model::program.layers(), e, options.layout, path, name);
      train::detail::check_shape(path, name, file.shape(stored), place, known);
      train::detail::with_rank(place.shape.size(), [&]<int Rank>(std::integral_constant<int, Rank>) {
        const Tensor<Scalar, Rank, Cpu> found = file.get<Scalar, Rank>(stored, NpyTypes::convert);
        train::detail::walk(place, next.data() + e.offset, found.data(), [](Scalar& to, const Scalar& from) { to = from; });
      });
    }
    return next;
  };
  const auto parameters = staged(std::as_const(model).parameters(), Model::program.parameters());
  const auto buffers = staged(std::as_const(model).buffers(), Model::program.buffers());
  train::detail::check_names(path, train::detail::names_in_model(file.names(), renamed), known, options);
  const auto weights = model.modify();
  train::HostCopy<Scalar, typename Model::device>::write(weights.data(), parameters.data(), parameters.size(), model.where());
  train::HostCopy<Scalar, typename Model::device>::write(model.buffers().data, buffers.data(), buffers.size(), model.where());
}

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "weights_npz.ipp"
#endif
