// SPDX-License-Identifier: Apache-2.0
// The bodies of preparation.hpp.
#pragma once
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "../data/table_encoder.hpp"
#include "preparation.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Whether the encoder that is kept under the name of its type is one of these, or nothing is known.
inline bool is_of(const data::Origin& origin, const KeptObjects& kept) {
  const std::uint64_t own = kept.fingerprint(data::TableEncoder::kept_as);
  return own == 0 || origin.encoders.empty() ||
         std::find(origin.encoders.begin(), origin.encoders.end(), own) != origin.encoders.end();
}
inline const char* another_encoder() {
  return "the TableEncoder that is kept with the model is not the one that encoded the training set, so that whoever uses the "
         "model would encode tables otherwise: trainer.keep(encoder) with that one, after encoder.fit(training)";
}
}  // namespace detail

SKEIN_INLINE void check_kept_encoder(const KeptObjects& kept, const data::DatasetView& data, const char* call) {
  if (!detail::is_of(data.origin(), kept))
    throw ArgumentError(
        std::string(call) +
        ": the samples were encoded by another TableEncoder than the one that is kept with the model: encode them "
        "by that one, kept<sk::data::TableEncoder>().encode(table), or give the table");
}

namespace detail {
inline data::Normalization kept_normalization(const KeptObjects& kept) {
  constexpr std::string_view name = data::Normalization::kept_as;
  return kept.has(name) ? kept.get<data::Normalization>(name) : data::Normalization{};
}
/// Numbers that no set normalises: the program that made them may have.
inline bool may_be_raw(const data::Normalization& kept, const data::Normalization& set) {
  return !kept.identity() && !set.mean.empty() && set.unknown() && set.whole;
}
/// The normalization that is kept is certainly another one than these samples have.
inline bool is_other(const data::Normalization& kept, const data::Normalization& set) {
  return !data::alike(kept, set) && !may_be_raw(kept, set);
}
}  // namespace detail

SKEIN_INLINE void check_kept_preparation(const KeptObjects& kept, const data::Origin& origin, const data::Normalization& set,
                                         const char* call) {
  if (!detail::is_of(origin, kept)) throw ArgumentError(std::string(call) + ": " + detail::another_encoder());
  const data::Normalization own = detail::kept_normalization(kept);
  if (detail::is_other(own, set))
    throw ArgumentError(std::string(call) + ": the normalization that is kept with the model is " +
                        data::detail::formula_of(own) + ", and the training set is served as " + data::detail::formula_of(set) +
                        ", so that whoever uses the model would normalise otherwise: trainer.keep(train.normalization()), or "
                        "normalise the training set by the kept one");
}

SKEIN_INLINE void Preparation::note_raw(const KeptObjects& kept, const data::Normalization& set, int rank, const char* call,
                                        const char* samples) const {
  const data::Normalization own = detail::kept_normalization(kept);
  if (rank != 0 || !detail::may_be_raw(own, set) || std::exchange(noted_raw_, true)) return;
  std::fprintf(stderr,
               "%s: a normalization is kept with the model, %s, and the %s no normalization: give them that one, "
               "map(set, trainer.kept<sk::data::Normalization>()), unless they come normalised by code of your own\n",
               call, data::detail::formula_of(own).c_str(), samples);
}

SKEIN_INLINE void Preparation::begin_fit(const data::DatasetView& train, const data::DatasetView& validation,
                                         const KeptObjects& kept, int rank) {
  data::check_encoders(train.origin(), validation.origin(),
                       "fit: the training set and .validate were encoded by TableEncoders that have learnt other values: fit one "
                       "encoder to the training rows, and encode both by it, .validate = encoder.encode(test)");
  if (validation) data::check_alike(train.normalization(), validation.normalization());
  check_kept_preparation(kept, train.origin(), train.normalization(), "fit");
  note_raw(kept, train.normalization(), rank, "fit", "training samples have");
  origin_ = train.origin();
  normalization_ = train.normalization();
  fitted_ = true;
}

SKEIN_INLINE void Preparation::check_kept(const KeptObjects& kept, int rank) const {
  if (!fitted_) return;
  check_kept_preparation(kept, origin_, normalization_, "keep");
  note_raw(kept, normalization_, rank, "keep", "training samples had");
}

SKEIN_INLINE void Preparation::check_samples(const KeptObjects& kept, const data::DatasetView& data, const char* call,
                                             int rank) const {
  check_kept_encoder(kept, data, call);
  const std::string who = call;
  const data::Normalization& set = data.normalization();
  if (fitted_) {
    data::check_encoders(origin_, data.origin(),
                         (who + ": the samples were encoded by another TableEncoder than the training set: encode them by that "
                                "one, encoder.encode(table)")
                             .c_str());
    if (!data::alike(normalization_, set))
      throw ArgumentError(who + ": the training set was served as " + data::detail::formula_of(normalization_) +
                          ", these samples as " + data::detail::formula_of(set) +
                          ": give them the normalization of the "
                          "training set, map(raw, train.normalization())");
    return;
  }
  const data::Normalization own = detail::kept_normalization(kept);
  if (detail::is_other(own, set))
    throw ArgumentError(who + ": the normalization that is kept with the model is " + data::detail::formula_of(own) +
                        ", and these samples are served as " + data::detail::formula_of(set) +
                        ": normalise them by the kept one, map(raw, trainer.kept<sk::data::Normalization>())");
  note_raw(kept, set, rank, call, "samples have");
}

SKEIN_INLINE std::string Preparation::missing_from(const KeptObjects& kept) const {
  for (const std::uint64_t encoder : origin_.encoders)
    if (!kept.has_fingerprint(encoder))
      return "the TableEncoder that encoded the training set is not kept, so that a Predictor of the file takes no tables: "
             "trainer.keep(encoder)";
  const bool by_the_program = origin_.encoders.empty() && !origin_.normalized_as_read;
  if (by_the_program && !normalization_.identity() && normalization_.whole && !kept.has(data::Normalization::kept_as))
    return "the normalization of the training set is not kept, so that whoever uses the file has to normalise as the training "
           "did: trainer.keep(train.normalization())";
  return {};
}

SKEIN_INLINE void Preparation::note_missing(const KeptObjects& kept, const char* call) const {
  if (noted_) return;
  const std::string note = missing_from(kept);
  noted_ = !note.empty();
  if (noted_) std::fprintf(stderr, "%s: %s before %s\n", call, note.c_str(), call);
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
