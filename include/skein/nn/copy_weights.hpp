// SPDX-License-Identifier: Apache-2.0
// Weights of one model into another that is in memory too: a target network that follows the one which learns, a critic behind
// the generator that it judges, a body under another head. Files are the other way: Model::load.
#pragma once
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../device/copy.hpp"
#include "model.hpp"

namespace skein::inline SKEIN_ABI {

/// Whose weights copy_weights takes, and what they are there. `{.to = "1."}`: parameters and buffers `x` become `1.x`, a layer of
/// a Sequential; `{.from = "0."}`: `0.x` become `x`. Without them names are the same in both.
struct CopyNames {
  std::string from{}, to{};
};

namespace nn::detail {
/// An array of one side: its name there, and what of it both sides have.
struct NamedEntry {
  std::string name, rest;
  plan::Entry entry;
};
struct CopiedEntry {
  long from = 0, to = 0, stored = 0;
};
template <class Program>
std::vector<NamedEntry> entries_below(const Program& program, std::span<const plan::Entry> entries, const std::string& prefix) {
  std::vector<NamedEntry> found;
  for (const plan::Entry& e : entries)
    if (const std::string name{std::string_view(program.name(e))}; name.starts_with(prefix))
      found.push_back({name, name.substr(prefix.size()), e});
  return found;
}
/// Throws ArgumentError where no name of the network begins with what an option, .from or .to, says.
template <class Program> void check_beginning(const Program& program, const char* option, const std::string& prefix) {
  if (entries_below(program, program.parameters(), prefix).empty() && entries_below(program, program.buffers(), prefix).empty())
    throw ArgumentError(std::string("copy_weights: no parameter's name begins with .") + option + " = \"" + prefix +
                        "\": what is given is how names begin, without a *, {.from = \"0.\"}");
}
/// What goes where. Throws ArgumentError for an array without a partner of its size.
inline std::vector<CopiedEntry> pair_up(const std::vector<NamedEntry>& from, const std::vector<NamedEntry>& to) {
  const auto fault = [](const std::string& what) {
    throw ArgumentError("copy_weights: " + what + ": names are those of sk::summary(model)");
  };
  const auto partner = [&](const NamedEntry& of, const std::vector<NamedEntry>& among, std::size_t likely) {
    for (std::size_t i = 0; i < among.size(); ++i)  // a network has its arrays in one order: found at once
      if (const NamedEntry& e = among[(likely + i) % among.size()]; e.rest == of.rest) return &e;
    fault("'" + of.name + "' is on one side alone");
    return &of;
  };
  std::vector<CopiedEntry> pairs;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const NamedEntry& at = *partner(from[i], to, i);
    if (!(at.entry.extents == from[i].entry.extents)) fault("'" + from[i].name + "' and '" + at.name + "' differ in size");
    pairs.push_back({from[i].entry.offset, at.entry.offset, at.entry.stored});
  }
  for (std::size_t i = 0; i < to.size(); ++i) (void)partner(to[i], from, i);
  return pairs;
}
}  // namespace nn::detail

/// Copies parameters and buffers (running statistics) of `from` to `to`: `sk::copy_weights(online, target)`;
/// `sk::copy_weights(critic, judged, {.to = "1."})` to the layer 1 of another network; `sk::copy_weights(model, model,
/// {.from = "0.", .to = "2."})` from one layer to another. Both are on one device and of one scalar. Throws ArgumentError where a
/// name, or a size, has no partner on the other side; nothing is changed then.
template <class From, class To> void copy_weights(const From& from, To& to, const CopyNames& names = {}) {
  using Device = typename To::device;
  static_assert(std::same_as<typename From::Scalar, typename To::Scalar> && std::same_as<typename From::device, Device>,
                "copy_weights: both models are on one device and of one scalar");
  nn::detail::check_beginning(From::program, "from", names.from);
  nn::detail::check_beginning(To::program, "to", names.to);
  const auto pairs = [&](std::span<const plan::Entry> a, std::span<const plan::Entry> b) {
    return nn::detail::pair_up(nn::detail::entries_below(From::program, a, names.from),
                               nn::detail::entries_below(To::program, b, names.to));
  };
  const auto parameters = pairs(From::program.parameters(), To::program.parameters());
  const auto buffers = pairs(From::program.buffers(), To::program.buffers());
  const auto source = from.parameters();
  if (source.data == to.parameters().data && names.from == names.to) return;  // with_input(): the same weights
  const auto lease = to.modify();
  const auto copy = [&](const std::vector<nn::detail::CopiedEntry>& which, const auto* x, auto* y) {
    for (const nn::detail::CopiedEntry& e : which)
      Copy<Device, Device>::run(y + e.to, x + e.from, static_cast<std::size_t>(e.stored) * sizeof *y, to.where(), from.where());
  };
  copy(parameters, source.data, lease.data());
  copy(buffers, from.buffers().data, to.buffers().data);
}

}  // namespace skein::inline SKEIN_ABI
