// SPDX-License-Identifier: Apache-2.0
// The bodies of not_finite.hpp.
#pragma once
#include <algorithm>

#include "not_finite.hpp"
#include "text.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string not_finite_message(const NotFiniteStep& s) {
  std::string text = s.found_late ? "fit: the loss is not a finite number; found after step " : "fit: the loss of step ";
  append_integer(text, s.step);
  append_integer(text += " (epoch ", s.epoch);
  text += s.found_late ? "), some steps late; " : ") is ";
  if (!s.found_late) append_digits(text, s.loss, 4), text += ", no finite number; ";
  append_digits(text += "the rate is ", s.rate, 4);
  append_digits(text += ", the gradients' norm ", std::fabs(s.norm), 4);
  if (!s.layer.empty()) text += "; " + s.layer;
  if (!s.found_late) text += ". The weights are those before this step";
  return text + ". Lower the rate, set .clip_norm, or look at the samples; .on_nan says what fit does about such a step";
}

/// Sets the layers to their weights, one after the other from the front, until the loss is not finite.
template <class Scalar> std::string first_not_finite(std::span<const Scalar> weights, const std::vector<LayerRange>& layers,
                                                     const std::function<bool(std::span<const Scalar>)>& finite,
                                                     const std::function<bool()>& outputs_finite) {
  const auto said = [](const LayerRange& l) { return "'" + l.name + "' (" + l.kind + ")"; };
  for (const LayerRange& l : layers)
    if (!std::all_of(weights.begin() + l.begin, weights.begin() + l.end, [](Scalar w) { return std::isfinite(w); }))
      return "a weight of layer " + said(l) + " is not finite";
  std::vector<Scalar> some(weights.size(), Scalar(0));
  if (!finite({some.data(), some.size()}))
    return outputs_finite()
               ? "with all weights zero the outputs are finite and the loss of them is not, so that the targets hold "
                 "such a value, or the loss makes one"
               : "with all weights zero the outputs are not finite either, so that the samples hold such a value, or "
                 "a layer makes one of any input";
  for (const LayerRange& l : layers) {
    std::copy(weights.begin() + l.begin, weights.begin() + l.end, some.begin() + l.begin);
    if (finite({some.data(), some.size()})) continue;
    if (&l == &layers.back() && outputs_finite()) return "the network's outputs are finite, the loss of them is not";
    return "the first layer whose output is not finite is " + said(l);
  }
  return "it is finite without dropout and with the statistics of the training";
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
