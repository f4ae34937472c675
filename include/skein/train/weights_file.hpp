// SPDX-License-Identifier: Apache-2.0
// Weights into a file, and out of one, without optimizer and place: for inference, for fine-tuning, for another head. Names and
// extents of what is taken have to be those of the model; where they are not, one message names all that differ.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../nn/load_options.hpp"
#include "../plan/program.hpp"
#include "../parallel/training_arrays.hpp"
#include "checkpoint_reader.hpp"
#include "host_copy.hpp"
#include "kept_objects.hpp"
#include "saved_array.hpp"

namespace skein::inline SKEIN_ABI {
namespace train {

/// Called with the hash of a file that is read and checked, before anything of it is taken: what it throws leaves all as it was.
using FileRead = std::function<void(std::uint64_t hash)>;

/// An array of weights as a file has it: "parameters/0.weight".
struct WeightArray {
  std::string section;
  Extents extents{};
};
/// Throws FileError where the file lacks one of the model's arrays that `options` takes, has it with other extents, or has one
/// that the model has not; ArgumentError where a pattern is no name of the model's, or nothing is left to take.
void check_weights(const CheckpointReader& reader, const std::string& path, const std::vector<WeightArray>& model,
                   const LoadOptions& options);
/// Is the array taken: "parameters/0.weight" by {.only = "0.*"}. Without patterns all are.
bool weight_matches(const LoadOptions& options, std::string_view section);

/// The layers without parameters that change values, "Relu, MaxPool2d, Relu": what the names and sizes of weights do not say.
std::string layers_without_weights(std::span<const plan::LayerNode> layers);
/// Throws FileError where the file was saved from a network with another such layer in its place. One of the two may end earlier,
/// as without the Softmax that only predictions have.
void check_layers(CheckpointReader& reader, const std::string& path, const std::string& own);

/// A line on stderr where a model alone, which cannot carry it, was loaded from a file that keeps what prepares samples; once for
/// loads of one file, and of the ranks of a job on the first.
void say_left(const std::string& path, const KeptObjects& kept);

/// The arrays of a program as a file has them.
template <class Program> std::vector<WeightArray> weight_arrays(const Program& program) {
  std::vector<WeightArray> arrays;
  for (const plan::Entry& e : program.parameters())
    arrays.push_back({"parameters/" + std::string(std::string_view(program.name(e))), e.extents});
  for (const plan::Entry& e : program.buffers())
    arrays.push_back({"buffers/" + std::string(std::string_view(program.name(e))), e.extents});
  return arrays;
}

/// Fills the whole arrays of a network's parameters and buffers, in the host's memory, with what the options take of a file.
/// Returns the hash of the file. Throws FileError for a file of another network, and for a damaged one; nothing is changed then.
template <class Program, class Scalar> std::uint64_t read_weights(const std::string& path, const Program& program,
                                                                  const LoadOptions& options, Scalar* parameters, Scalar* buffers,
                                                                  KeptObjects* kept = nullptr) {
  CheckpointReader reader{path};  // every hash is checked before anything is changed
  check_weights(reader, path, weight_arrays(program), options);
  if (options.whole()) check_layers(reader, path, layers_without_weights(program.layers()));
  KeptObjects objects;
  objects.read(reader);
  const auto read = [&](const std::string& prefix, std::span<const plan::Entry> entries, Scalar* to) {
    for (const plan::Entry& e : entries)
      if (const std::string section = prefix + std::string(std::string_view(program.name(e))); weight_matches(options, section))
        reader.read(section, e.extents, to + e.offset, row_pitch(e.extents.last()));
  };
  read("parameters/", program.parameters(), parameters);
  read("buffers/", program.buffers(), buffers);
  if (kept) *kept = std::move(objects);
  return reader.hash();
}

/// The parameters and buffers of a saved training, or of saved weights, into a model; `kept` gets what Trainer::keep put beside
/// them. Returns the hash of the file.
template <class Model> std::uint64_t load_weights(const std::string& path, Model& model, const LoadOptions& options = {},
                                                  KeptObjects* kept = nullptr, const FileRead& before_change = {}) {
  using Scalar = typename Model::Scalar;
  using Copy = HostCopy<Scalar, typename Model::device>;
  const auto of = [&](const auto& arena) {
    Copy copy;
    const Scalar* from = copy.read(arena.data, arena.size, model.where());
    return std::vector<Scalar>(from, from + arena.size);
  };
  std::vector<Scalar> parameters = of(model.parameters()), buffers = of(model.buffers());
  const std::uint64_t hash = read_weights(path, Model::program, options, parameters.data(), buffers.data(), kept);
  if (before_change) before_change(hash);
  const auto lease = model.modify();
  Copy::write(lease.data(), parameters.data(), parameters.size(), model.where());
  Copy::write(model.buffers().data, buffers.data(), buffers.size(), model.where());
  return hash;
}
/// Writes the parameters and buffers of a model, which load_weights reads. A call of this rank alone. Throws FileError.
template <class Model> void save_weights(const std::string& path, const Model& model, const KeptObjects& kept = {}) {
  using Scalar = typename Model::Scalar;
  CheckpointWriter writer;
  kept.write(writer);
  writer.add_object("layers", layers_without_weights(Model::program.layers()));
  HostCopy<Scalar, typename Model::device> parameters, buffers;
  const auto add = [&](auto& copy, const auto& arena, const char* prefix, std::span<const plan::Entry> entries) {
    detail::add_array(writer, {prefix, entries, Model::program.parts(), section_type<Scalar>()},
                      {0, static_cast<long>(arena.size)}, copy.read(arena.data, arena.size, model.where()));
  };
  add(parameters, model.parameters(), "parameters/", Model::program.parameters());
  add(buffers, model.buffers(), "buffers/", Model::program.buffers());
  writer.commit(path);
}

/// Loads all of a file's weights into the stages of a pipeline. Throws ArgumentError where only some are wanted.
template <class TrainStep> std::uint64_t scatter_weights(const std::string& path, TrainStep& train_step,
                                                         const LoadOptions& options, KeptObjects* kept = nullptr,
                                                         const FileRead& before_change = {}) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  if (!options.whole())
    throw ArgumentError(
        "load_weights: under a Pipeline no rank has all weights, so that .only and .except are not there: leave them out");
  std::vector<typename Model::Scalar> parameters(static_cast<std::size_t>(Model::sizes.stored)),
      buffers(static_cast<std::size_t>(Model::sizes.buffers));
  const std::uint64_t hash = read_weights(path, Model::program, options, parameters.data(), buffers.data(), kept);
  if (before_change) before_change(hash);
  const auto lease = train_step.model().modify();
  train_step.arrays().set(parallel::training_arrays::parameters, parameters.data());
  train_step.arrays().set(parallel::training_arrays::buffers, buffers.data());
  return hash;
}
}  // namespace train

/// What Model::load calls.
template <class Model> void load_into(Model& model, const std::string& path, const LoadOptions& options) {
  train::KeptObjects left;
  train::load_weights(path, model, options, &left);
  if (options.whole()) train::say_left(path, left);
}

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "weights_file.ipp"
#endif
