// SPDX-License-Identifier: Apache-2.0
// What a training is on disk: a checkpoint with a section for each parameter, buffer and optimizer array, by the names of the
// model's table (logical values, so that padding is no part of the format), and the place in the data.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../nn/loss/loss.hpp"
#include "../plan/program.hpp"
#include "checkpoint.hpp"
#include "history.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Where a training stands: epochs before this fit, epochs and steps of it, and the sums of the epoch that is going on.
struct Place {
  std::int64_t base = 0, epoch = 0, step = 0;
  std::int64_t samples = 0;
  nn::LossSums sums{};
  bool running = false;                             // saved within a fit

  template <class Archive> void serialize(Archive& archive, unsigned) {
    archive & base & epoch & step & samples & sums.loss & sums.weight & sums.correct & running;
  }
};

namespace detail {
/// Calls visit(section name, entry, base pointer) for each array of the training.
template <class Stepper, class Visit> void for_each_array(Stepper& stepper, Visit&& visit) {
  auto& model = stepper.model();
  using Model = std::remove_cvref_t<decltype(model)>;
  auto* parameters = const_cast<typename Model::Scalar*>(std::as_const(model).parameters().data);
  for (const plan::Entry& e : Model::program.parameters())
    visit("parameters/" + std::string(std::string_view(Model::program.name(e))), e, parameters + e.offset);
  for (const plan::Entry& e : Model::program.buffers())
    visit("buffers/" + std::string(std::string_view(Model::program.name(e))), e, model.buffers().data + e.offset);
  for (int k = 0; k < stepper.optimizer().arrays(); ++k)
    for (const plan::Entry& e : Model::program.parameters())
      visit("optimizer/" + std::to_string(k) + "/" + std::string(std::string_view(Model::program.name(e))), e,
            stepper.optimizer().array(k).data + e.offset);
}
}  // namespace detail

template <class Stepper> void save_training(const std::string& path, Stepper& stepper, const Place& place, const History& history, const std::string& callbacks) {
  CheckpointWriter writer;
  detail::for_each_array(stepper, [&](const std::string& name, const plan::Entry& e, const auto* data) {
    writer.add(name, e.extents, data, row_pitch(e.extents.last()));
  });
  const std::int64_t steps = stepper.steps();
  writer.add_object("steps", steps);
  writer.add_object("place", place);
  writer.add_object("history", history);
  writer.add_object("callbacks", callbacks);        // bytes: what they are is known to the fit that has them
  writer.commit(path);
}

template <class Stepper> void load_training(const std::string& path, Stepper& stepper, Place& place, History& history, std::string& callbacks) {
  CheckpointReader reader{path};                    // every hash is checked before anything is changed
  std::int64_t steps = 0;
  Place at;
  History past;
  reader.read_object("steps", steps);
  reader.read_object("place", at);
  reader.read_object("history", past);
  std::string states;
  reader.read_object("callbacks", states);
  // First into memory of our own, so that a file of another network changes nothing.
  using Scalar = typename std::remove_cvref_t<decltype(stepper.model())>::Scalar;
  std::vector<std::unique_ptr<Scalar[]>> staged;
  detail::for_each_array(stepper, [&](const std::string& name, const plan::Entry& e, const Scalar*) {
    staged.push_back(std::make_unique<Scalar[]>(static_cast<std::size_t>(e.stored)));
    reader.read(name, e.extents, staged.back().get(), row_pitch(e.extents.last()));
  });
  reader.finish();
  std::size_t next = 0;
  detail::for_each_array(stepper, [&](const std::string&, const plan::Entry& e, Scalar* data) {
    std::copy_n(staged[next++].get(), e.stored, data);
  });
  (void)stepper.model().parameters();
  stepper.set_steps(steps);
  place = at;
  history = past;
  callbacks = states;
}

}  // namespace skein::inline SKEIN_ABI::train
