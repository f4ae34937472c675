// SPDX-License-Identifier: Apache-2.0
// Does a data set fit the network and the loss: shapes, labels or target vectors. What does not is an exception that says which
// data set, what it has and what is wanted.
#pragma once
#include <string>

#include "../core/error.hpp"
#include "../data/view.hpp"
#include "../nn/loss/loss.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
std::string shape_text(const Extents& e);
/// Throws ShapeError where samples of these extents are not what a model takes. Those of a flat model may have any extents, which
/// are read in their order, and a last extent of 1 may be left out; else they are compared one by one. `whose` samples: "the
/// training data set's samples"; `how` the extents of flat ones are said: what stands before them.
void check_extents(const Extents& given, const Extents& wanted, const std::string& whose, const char* how);
}  // namespace detail

/// `which`: "training", for the message.
template <class Model> void check_samples(const data::DatasetView& data, const char* which) {
  if (!data) throw ArgumentError(std::string("the ") + which + " data set is missing: give one");
  detail::check_extents(data.sample_extents(), Model::input::extents, std::string("the ") + which + " data set's samples",
                        "from_tensors(x, sk::Extents{...}, y) with the extents ");
  if (is_tokens<typename Model::input> && !data.gives_tokens())
    throw ArgumentError(std::string("the model takes tokens, the ") + which +
                        " data set's samples are numbers: give it 32-bit integers, as from_tensors of integers does");
  if (!is_tokens<typename Model::input> && !data.gives_numbers())
    throw ArgumentError(std::string("the model calculates with numbers, the ") + which +
                        " data set's samples are tokens: give the model the input Tokens<T>, and a layer that looks them up");
}

/// Throws ArgumentError where a data set's samples or targets are not what the model and the loss take.
template <class Model, class Loss> void check_data(const data::DatasetView& data, const char* which) {
  check_samples<Model>(data, which);
  const std::string set = std::string("the ") + which + " data set";
  if constexpr (Loss::target == nn::TargetKind::label) {
    if (data.target().kind != data::TargetKind::label)
      throw ArgumentError("the loss compares with class labels, the targets of " + set +
                          " are numbers: give it integers (from_tensors of int), or use a loss such as Mse");
    constexpr long each = nn::labels_each(Model::output_extents);
    if (data.target().each != each)
      throw ShapeError(set + " has " + std::to_string(data.target().each) + " labels a sample, the network's output " +
                       detail::shape_text(Model::output_extents) + " has " + std::to_string(each) +
                       " positions, each with a label of its own");
  } else {
    if (data.target().kind != data::TargetKind::vector)
      throw ArgumentError("the loss compares with numbers, the targets of " + set +
                          " are class labels, as integers are: give it floats (from_tensors of float), or use CrossEntropy");
    constexpr long wanted = nn::target_length<Loss>(Model::sizes.output.count());
    if (data.target().count != wanted)
      throw ShapeError("a target of " + set + " has " + std::to_string(data.target().count) + " values, the network gives " +
                       std::to_string(wanted));
  }
}

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "data_check.ipp"
#endif
