// SPDX-License-Identifier: Apache-2.0
// The bodies of preparation.hpp.
#pragma once
#include <algorithm>
#include <cstdio>
#include <string>

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

SKEIN_INLINE void Preparation::begin_fit(const data::DatasetView& train, const data::DatasetView& validation,
                                         const KeptObjects& kept) {
  data::check_encoders(train.origin(), validation.origin(),
                       "fit: the training set and .validate were encoded by TableEncoders that have learnt other values: fit one "
                       "encoder to the training rows, and encode both by it, .validate = encoder.encode(test)");
  if (validation) data::check_alike(train.normalization(), validation.normalization());
  if (!detail::is_of(train.origin(), kept)) throw ArgumentError(std::string("fit: ") + detail::another_encoder());
  origin_ = train.origin();
  normalization_ = train.normalization();
}

SKEIN_INLINE void Preparation::check_kept(const KeptObjects& kept) const {
  if (!detail::is_of(origin_, kept)) throw ArgumentError(std::string("keep: ") + detail::another_encoder());
}

SKEIN_INLINE std::string Preparation::missing_from(const KeptObjects& kept) const {
  for (const std::uint64_t encoder : origin_.encoders)
    if (!kept.has_fingerprint(encoder))
      return "the TableEncoder that encoded the training set is not kept, so that a Predictor of the file takes no tables: "
             "trainer.keep(encoder) before save";
  const bool by_the_program = origin_.encoders.empty() && !origin_.normalized_as_read;
  if (by_the_program && !normalization_.identity() && normalization_.whole && !kept.has(data::Normalization::kept_as))
    return "the normalization of the training set is not kept, so that whoever uses the file has to normalise as the training "
           "did: trainer.keep(train.normalization()) before save";
  return {};
}

SKEIN_INLINE void Preparation::note_missing(const KeptObjects& kept) const {
  if (noted_) return;
  const std::string note = missing_from(kept);
  noted_ = !note.empty();
  if (noted_) std::fprintf(stderr, "save: %s\n", note.c_str());
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
