// SPDX-License-Identifier: Apache-2.0
// The bodies of not_finite.hpp.
#pragma once
#include <algorithm>

#include "../data/finite.hpp"
#include "not_finite.hpp"
#include "text.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// What a step was left out for, behind its loss.
inline std::string no_finite_number(const NotFiniteStep& s) {
  if (!std::isfinite(s.loss)) return ", no finite number; ";
  return s.own_loss ? " on this rank; that of another rank, if the step exchanged gradients, or their norm is no finite number; "
                    : ", and the norm of the gradients no finite number; ";
}
}  // namespace detail

SKEIN_INLINE std::string not_finite_message(const NotFiniteStep& s) {
  const bool left = !s.part.empty();
  std::string text = left           ? "fit: " + s.part + " after step "
                     : s.found_late ? "fit: the loss is not a finite number; found after step "
                                    : "fit: the loss of step ";
  append_integer(text, s.step);
  append_integer(text += " (epoch ", s.epoch);
  if (left) text += "), whose own loss was finite; ";
  else if (s.found_late) text += "), some steps late; ";
  else append_digits(text += ") is ", s.loss, 4), text += detail::no_finite_number(s);
  append_digits(text += "the rate is ", s.rate, 4);
  if (s.norm > 0 || std::isnan(s.norm)) append_digits(text += ", the gradients' norm ", std::fabs(s.norm), 4);
  if (!s.layer.empty()) text += "; " + s.layer;
  const bool made = s.made && !s.found_late;
  if (made) text += ". Each stage has made its update all the same, so that weights may be no finite numbers";
  else if (!left && !s.found_late) text += ". The weights are those before this step";
  if (left || made) text += ". No step mends that: begin anew, or go on from a checkpoint, and";
  return text + (left || made ? " lower" : ". Lower") +
         " the rate, set .clip_norm, or look at the samples; .on_nan says what fit does about such a step";
}

/// By the entry that the first such value lies in.
template <class Scalar> std::string first_buffer_not_finite(std::span<const Scalar> values, plan::Range part,
                                                            std::span<const plan::Entry> buffers,
                                                            std::span<const plan::PathPart> parts) {
  const long at = data::detail::first_not_finite(values);
  for (const plan::Entry& e : buffers)
    if (at >= 0 && e.offset <= part.begin + at && part.begin + at < e.offset + e.stored)
      return "the running statistic '" + std::string(std::string_view(plan::name_of(parts, e))) + "' is not finite";
  return at >= 0 ? "a running statistic is not finite" : "";
}
/// Looks at the parameters that are not frozen.
template <class Scalar> std::string first_state_not_finite(std::span<const Scalar> values, plan::Range part,
                                                           const std::string& prefix, std::span<const plan::Entry> parameters,
                                                           std::span<const plan::PathPart> parts,
                                                           std::span<const optim::ParameterGroupRange> ranges) {
  for (const plan::Entry& e : parameters) {
    const long begin = std::max(e.offset, part.begin), end = std::min(e.offset + e.stored, part.end);
    if (begin >= end || optim::range_at(ranges, e.offset).frozen) continue;
    const auto own = values.subspan(static_cast<std::size_t>(begin - part.begin), static_cast<std::size_t>(end - begin));
    if (data::detail::first_not_finite(own) >= 0)
      return "the optimizer's array '" + prefix + std::string(std::string_view(plan::name_of(parts, e))) + "' is not finite";
  }
  return {};
}
/// Looks at the part of each layer that is not frozen.
template <class Scalar> std::string first_weight_not_finite(std::span<const Scalar> values, plan::Range part,
                                                            const std::vector<LayerRange>& layers,
                                                            std::span<const optim::ParameterGroupRange> ranges) {
  const auto among = [&](long begin, long end) {
    begin = std::max(begin, part.begin), end = std::min(end, part.end);
    if (begin >= end) return false;
    const auto own = values.subspan(static_cast<std::size_t>(begin - part.begin), static_cast<std::size_t>(end - begin));
    return data::detail::first_not_finite(own) >= 0;
  };
  for (const LayerRange& l : layers) {
    bool found = ranges.empty() && among(l.begin, l.end);
    for (const optim::ParameterGroupRange& r : ranges)
      found = found || (!r.frozen && among(std::max(l.begin, r.begin), std::min(l.end, r.end)));
    if (found) return "a weight of layer '" + l.name + "' (" + l.kind + ") is not finite";
  }
  return {};
}

/// Sets the layers to their weights, one after the other from the front, until the loss is not finite.
template <class Scalar> std::string first_not_finite(std::span<const Scalar> weights, const std::vector<LayerRange>& layers,
                                                     const std::function<bool(std::span<const Scalar>)>& finite,
                                                     const std::function<bool()>& outputs_finite) {
  const auto said = [](const LayerRange& l) { return "'" + l.name + "' (" + l.kind + ")"; };
  const plan::Range all{0, static_cast<long>(weights.size())};
  if (std::string weight = first_weight_not_finite(weights, all, layers); !weight.empty()) return weight;
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
