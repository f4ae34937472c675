// SPDX-License-Identifier: Apache-2.0
// Does a data set fit the network and the loss: shapes, labels or target vectors. What does not is an exception that says which
// data set, what it has and what is wanted.
#pragma once
#include <string>

#include "../core/error.hpp"
#include "../data/view.hpp"
#include "../nn/check_batch.hpp"

namespace skein::inline SKEIN_ABI::train {

/// `which`: "training", for the message.
template <class Model> void check_samples(const data::DatasetView& data, const char* which) {
  if (!data) throw ArgumentError(std::string("the ") + which + " data set is missing: give one");
  nn::check_extents(data.sample_extents(), Model::input::extents, std::string("the ") + which + " data set's samples",
                    "from_tensors(x, sk::Extents{...}, y) with the extents ");
  if (is_tokens<typename Model::input> && !data.gives_tokens())
    throw ArgumentError(std::string("the model takes tokens, the ") + which +
                        " data set's samples are numbers: give it 32-bit integers, as from_tensors of integers does");
  if (!is_tokens<typename Model::input> && !data.gives_numbers())
    throw ArgumentError(std::string("the model calculates with numbers, the ") + which +
                        " data set's samples are tokens: give the model the input Tokens<T>, and a layer that looks them up");
}

namespace detail {
inline nn::GivenTargets given_targets(const data::Target& t) {
  return t.kind == data::TargetKind::label    ? nn::GivenTargets::labels
         : t.kind == data::TargetKind::vector ? nn::GivenTargets::vectors
                                              : nn::GivenTargets::none;
}
}  // namespace detail

/// Throws ArgumentError where a data set's samples or targets are not what the model and the loss take.
template <class Model, class Loss> void check_data(const data::DatasetView& data, const char* which) {
  check_samples<Model>(data, which);
  const std::string set = std::string("the ") + which + " data set";
  if constexpr (Loss::target == nn::TargetKind::label) {
    if (data.target().kind != data::TargetKind::label)
      nn::refuse_targets(Loss::target, detail::given_targets(data.target()), set, data.target().count);
    constexpr long each = nn::labels_each(Model::output_extents);
    if (data.target().each != each)
      throw ShapeError(set + " has " + std::to_string(data.target().each) + " labels a sample, the network's output " +
                       nn::shape_text(Model::output_extents) + " has " + std::to_string(each) +
                       " positions, each with a label of its own");
  } else {
    if (data.target().kind != data::TargetKind::vector)
      nn::refuse_targets(Loss::target, detail::given_targets(data.target()), set, data.target().count);
    constexpr long wanted = nn::target_length<Loss>(Model::sizes.output.count());
    if (data.target().count != wanted) nn::refuse_target_length(data.target().count, wanted, set);
  }
}

}  // namespace skein::inline SKEIN_ABI::train
