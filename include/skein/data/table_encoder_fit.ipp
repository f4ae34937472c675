// SPDX-License-Identifier: Apache-2.0
// The bodies of table_encoder.hpp that learn from rows, and say what has been learnt.
#pragma once
#include <algorithm>
#include <bit>

#include "../core/hash.hpp"
#include "table_categories.hpp"
#include "table_encoder.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE TableEncoder& TableEncoder::fit(const Table& training) {
  if (training.rows() == 0) throw ArgumentError("table encoder: " + training.path() + " has no rows to learn from");
  Standardizer inputs, outputs;
  for (Encoded& e : columns_) {
    Standardizer& values = e.wanted() ? outputs : inputs;
    if (e.categorical()) {
      learn_categories(e, training);
      for (int i = 0; i < e.width(); ++i) values.add({}, false);
    } else {
      learn_number(e, training, values);
      if (e.indicator) values.add({}, false);
    }
  }
  if (inputs.size() == 0)
    throw ArgumentError("table encoder: no column is a value of the sample: name some by standardize(), numbers() or one_hot()");
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
  return *this;
}

SKEIN_INLINE void TableEncoder::learn_number(Encoded& e, const Table& table, Standardizer& standardizer) {
  const int column = table.column(e.name);
  std::vector<double> there;
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const double v = table.number(r, column); v == v) there.push_back(v);
  if ((e.fill == Fill::mean || e.fill == Fill::median) && there.empty())
    throw ArgumentError(table.path() + ": column \"" + e.name + "\" has no value in the training rows: leave it out");
  if (e.fill == Fill::mean) {
    e.filled = 0;
    for (const double v : there) e.filled += v / static_cast<double>(there.size());
  } else if (e.fill == Fill::median) {
    std::sort(there.begin(), there.end());
    const std::size_t n = there.size();
    e.filled = n % 2 ? there[n / 2] : there[n / 2 - 1] + (there[n / 2] - there[n / 2 - 1]) / 2;
  }
  if (e.fill != Fill::refuse) there.resize(static_cast<std::size_t>(table.rows()), e.filled);
  standardizer.add(there, e.standard);
}

SKEIN_INLINE void TableEncoder::learn_categories(Encoded& e, const Table& table) {
  const int column = table.column(e.name);
  e.of_texts = table.is_text(column);
  if (e.learns) e.categories = detail::categories_of(table, column);
  else
    for (const std::string& given : e.categories) e.of_texts = e.of_texts || !detail::is_short_number(given);
  if (e.of_texts) detail::check_kind(table, column);
  if (e.learns && e.role == Role::one_hot && e.categories.size() > 1000)
    throw ArgumentError(table.path() + ": column \"" + e.name + "\" has " + std::to_string(e.categories.size()) +
                        " different values, of which one_hot learns up to 1000: take numbers by standardize(), many categories "
                        "by index(), or name them in .categories");
  if (e.categories.empty())
    throw ArgumentError(table.path() + ": column \"" + e.name + "\" has no value in the training rows: leave it out");
  if (e.learns) detail::check_repeats(table, column, e.categories.size(), e.role == Role::label);
  const detail::CategoryOf category(table.of(column), e.categories, e.of_texts);
  std::vector<std::int64_t> counts(e.categories.size());
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const std::int32_t c = category(table.stored_row(r)); c >= 0) ++counts[static_cast<std::size_t>(c)];
  e.most_frequent = static_cast<std::int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

/// Numbers as floats, since another machine may learn them with another last digit.
SKEIN_INLINE std::uint64_t TableEncoder::fingerprint() const {
  Fnv1a hash;
  const auto number = [&](double value) { hash.add(std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(value))}); };
  for (const Encoded& e : columns_) {
    hash.add(std::string_view(e.name)).add(static_cast<std::uint64_t>(e.role)).add(e.indicator + 2u * e.of_texts);
    for (const std::string& category : e.categories) hash.add(std::string_view(category));
  }
  for (const Standardizer* learnt : {&inputs_, &outputs_})
    for (std::size_t i = 0; i < learnt->size(); ++i) number(learnt->mean(i)), number(learnt->deviation(i));
  return hash.value() | 1;
}

}  // namespace skein::inline SKEIN_ABI::data
