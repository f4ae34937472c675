// SPDX-License-Identifier: Apache-2.0
// What prepared the samples of a training, a TableEncoder or a normalization, and whether the objects that are kept with the
// model say the same: a program that uses the model would prepare its samples otherwise, and get wrong numbers without a word.
#pragma once
#include <string>

#include "../data/view.hpp"
#include "kept_objects.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Throws ArgumentError where samples of `call` ("predict") were encoded by another TableEncoder than the one that is kept.
void check_kept_encoder(const KeptObjects& kept, const data::DatasetView& data, const char* call);

/// Throws ArgumentError where the TableEncoder or the Normalization that is kept is certainly not that of the training set.
void check_kept_preparation(const KeptObjects& kept, const data::Origin& origin, const data::Normalization& set,
                            const char* call);

/// What prepared the training set of a trainer's last fit.
class Preparation {
 public:
  /// Before a fit. Throws ArgumentError where the training and the validation set were prepared differently, or what is kept is
  /// of another preparation than theirs. Where a normalization is kept and the set has none, rank 0 says so on stderr, once.
  void begin_fit(const data::DatasetView& train, const data::DatasetView& validation, const KeptObjects& kept, int rank);
  /// After keep(): the same of what is kept.
  void check_kept(const KeptObjects& kept, int rank) const;
  /// Throws ArgumentError for samples of `call` ("evaluate") that were prepared otherwise than the training set of the last
  /// fit, else than what is kept says.
  void check_samples(const KeptObjects& kept, const data::DatasetView& data, const char* call, int rank) const;
  /// The weights are of another training now.
  void forget_fit() { fitted_ = false; }
  /// What of the preparation a file that is saved now does not have, as one sentence; empty where nothing is missing.
  std::string missing_from(const KeptObjects& kept) const;
  /// Prints that sentence on stderr, once, for a file that `call` ("save") writes.
  void note_missing(const KeptObjects& kept, const char* call) const;

 private:
  /// On stderr, once: a normalization is kept, and `call` gets samples that may have none.
  void note_raw(const KeptObjects& kept, const data::Normalization& set, int rank, const char* call, const char* samples) const;

  data::Origin origin_;
  data::Normalization normalization_;
  bool fitted_ = false;  // the weights are of a fit with them
  mutable bool noted_ = false, noted_raw_ = false;
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "preparation.ipp"
#endif
