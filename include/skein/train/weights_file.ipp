// SPDX-License-Identifier: Apache-2.0
// The bodies of weights_file.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <utility>

#include "../comm/launch/started_ranks.hpp"
#include "../data/normalization.hpp"
#include "../data/table_encoder.hpp"
#include "../optim/groups.hpp"
#include "hash.hpp"
#include "weights_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
inline std::string_view weight_name(std::string_view section) { return section.substr(section.find('/') + 1); }
inline bool is_weight(std::string_view section) { return section.starts_with("parameters/") || section.starts_with("buffers/"); }
/// The first of the faults, as one sentence.
inline std::string listed(const std::vector<std::string>& faults) {
  constexpr std::size_t most = 6;
  TextList list("; ");
  for (std::size_t i = 0; i < std::min(most, faults.size()); ++i) list.add(faults[i]);
  if (faults.size() > most) list.add(text("and {} more", faults.size() - most));
  return list.text();
}
}  // namespace detail

SKEIN_INLINE bool weight_matches(const LoadOptions& options, std::string_view section) {
  const std::string_view name = detail::weight_name(section);
  return (options.only.empty() || optim::matches(options.only, name)) &&
         (options.except.empty() || !optim::matches(options.except, name));
}

SKEIN_INLINE std::string layers_without_weights(std::span<const plan::LayerNode> layers) {
  constexpr std::string_view harmless[] = {"Dropout", "Flatten", "Reshape", "Identity"};
  TextList names;
  for (const plan::LayerNode& node : layers) {
    const std::string_view name = node.bare_kind();
    if (node.logical_parameters > 0 || name.empty()) continue;
    if (std::find(std::begin(harmless), std::end(harmless), name) != std::end(harmless)) continue;
    names.add(name);
  }
  return names.text();
}

SKEIN_INLINE void check_layers(CheckpointReader& reader, const std::string& path, const std::string& own) {
  if (!reader.contains("layers")) return;
  std::string saved;
  reader.read_object("layers", saved);
  std::string_view theirs = saved, ours = own;
  for (int i = 1; !theirs.empty() && !ours.empty(); ++i) {
    const std::string_view one = theirs.substr(0, theirs.find(", ")), other = ours.substr(0, ours.find(", "));
    if (one != other)
      throw FileError(path, -1,
                      skein::text("was saved from a network whose layer without parameters number {} is {}, and this model's is "
                                  "{}: write the network as it was trained; {.only = \"*\"} takes the weights alone",
                                  i, one, other));
    theirs.remove_prefix(std::min(theirs.size(), one.size() + 2));
    ours.remove_prefix(std::min(ours.size(), other.size() + 2));
  }
}

namespace detail {
/// Throws where a pattern is no name of the model's, or the two leave nothing to take.
inline void check_patterns(const std::vector<WeightArray>& model, const LoadOptions& options) {
  const auto names = [&](const LoadOptions& of) {
    return std::any_of(model.begin(), model.end(), [&](const WeightArray& a) { return weight_matches(of, a.section); });
  };
  for (const auto& [option, pattern] : {std::pair{".only", &options.only}, std::pair{".except", &options.except}})
    if (!pattern->empty() && !names({.only = *pattern}))
      throw ArgumentError("load_weights: " + std::string(option) + " = \"" + *pattern +
                          "\" is no name of the model's parameters and buffers, which begin with '" +
                          std::string(weight_name(model.empty() ? "" : std::string_view(model.front().section))) + "'");
  if (!model.empty() && !names(options))
    throw ArgumentError("load_weights: .except = \"" + options.except + "\" leaves nothing to take");
}
/// The layer, or the block of layers, that all these arrays are of: "13." of 13.weight and 13.bias. Empty: there is none.
inline std::string layer_of(const std::vector<std::string_view>& names) {
  std::string_view all = names.empty() ? "" : names.front();
  for (const std::string_view name : names)
    all = all.substr(
        0, static_cast<std::size_t>(std::mismatch(all.begin(), all.end(), name.begin(), name.end()).first - all.begin()));
  return std::string(all.substr(0, all.rfind('.') + 1));
}
/// How to take what model and file both have, where that is all but one layer, or nothing.
inline std::string advice(const std::vector<WeightArray>& model, const std::vector<std::string_view>& at_fault) {
  const std::string layer = layer_of(at_fault), pattern = layer + "*";
  const auto left = [&](const WeightArray& a) { return !optim::matches(pattern, weight_name(a.section)); };
  if (layer.empty() || std::none_of(model.begin(), model.end(), left)) return "";
  return ". Take all others with {.except = \"" + pattern + "\"}";
}
}  // namespace detail

SKEIN_INLINE void check_weights(const CheckpointReader& reader, const std::string& path, const std::vector<WeightArray>& model,
                                const LoadOptions& options) {
  detail::check_patterns(model, options);
  std::vector<std::string> faults;
  std::vector<std::string_view> names;
  const auto fault = [&](std::string_view section, const std::string& what) {
    names.push_back(detail::weight_name(section));
    faults.push_back("'" + std::string(names.back()) + "' " + what);
  };
  for (const WeightArray& a : model) {
    if (!weight_matches(options, a.section)) continue;
    const auto found = std::find_if(reader.sections().begin(), reader.sections().end(),
                                    [&](const SectionInfo& s) { return s.name == a.section; });
    if (found == reader.sections().end()) fault(a.section, "is in the model alone");
    else if (!std::equal(found->extents.begin(), found->extents.end(), a.extents.begin(), a.extents.end()))
      fault(a.section, text("is {} in the file and {} in the model", joined(found->extents, " x "), joined(a.extents, " x ")));
  }
  for (const SectionInfo& s : reader.sections())
    if (detail::is_weight(s.name) && weight_matches(options, s.name) &&
        std::none_of(model.begin(), model.end(), [&](const WeightArray& a) { return a.section == s.name; }))
      fault(s.name, "is in the file alone");
  if (!faults.empty())
    throw FileError(path, -1, "has the weights of another network: " + detail::listed(faults) + detail::advice(model, names));
}

SKEIN_INLINE void say_left(const std::string& path, const KeptObjects& kept) {
  const bool encodes = kept.has(data::TableEncoder::kept_as), normalizes = kept.has(data::Normalization::kept_as);
  if (!encodes && !(normalizes && !kept.get<data::Normalization>(data::Normalization::kept_as).identity())) return;
  static std::atomic<std::uint64_t> last{0};
  const std::uint64_t name = hash64(path.data(), path.size()) | 1;
  if (comm::launch::started_rank().rank != 0 || last.exchange(name) == name) return;
  std::fprintf(stderr,
               "load: %s keeps a %s, which a model has no place for, so that samples have to come %s: Predictor::load and "
               "Trainer::load_weights read it with the weights\n",
               in_quotes(path).c_str(), encodes ? "TableEncoder" : "normalization", encodes ? "encoded" : "normalised");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
