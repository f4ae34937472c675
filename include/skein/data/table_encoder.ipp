// SPDX-License-Identifier: Apache-2.0
// The bodies of table_encoder.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "../core/hash.hpp"
#include "table_categories.hpp"
#include "table_encoder.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE TableEncoder& TableEncoder::add(std::vector<std::string> names, Encoded like) {
  detail::demand_value("table encoder", ".missing", like.fill);
  detail::demand_value("table encoder", ".missing", like.missing);
  detail::demand_value("table encoder", ".unknown", like.unknown);
  detail::check_given(like.categories, names.empty() ? "" : names.front());
  std::vector<Encoded> columns = columns_;
  for (std::string& name : names) {
    for (const Encoded& e : columns)
      if (e.name == name && (e.wanted() != like.wanted() || (e.role == like.role && e.standard == like.standard)))
        throw ArgumentError("table encoder: column \"" + name +
                            (e.role != like.role ? "\" is a value of the sample and what is predicted: take it as one"
                                                 : "\" is taken twice in the same way: name it once"));
    like.name = std::move(name);
    like.learns = like.categories.empty();
    columns.push_back(like);
  }
  columns_ = std::move(columns), inputs_ = outputs_ = {};
  return *this;
}

SKEIN_INLINE TableEncoder& TableEncoder::numbers(std::vector<std::string> columns, NumberOptions o) {
  return add(std::move(columns), {.role = Role::number, .indicator = o.indicator, .fill = o.missing});
}
SKEIN_INLINE TableEncoder& TableEncoder::standardize(std::vector<std::string> columns, NumberOptions o) {
  return add(std::move(columns), {.role = Role::number, .standard = true, .indicator = o.indicator, .fill = o.missing});
}
SKEIN_INLINE TableEncoder& TableEncoder::one_hot(std::vector<std::string> columns, CategoryOptions o) {
  return add(std::move(columns),
             {.role = Role::one_hot, .missing = o.missing, .unknown = o.unknown, .categories = std::move(o.categories)});
}
SKEIN_INLINE TableEncoder& TableEncoder::index(std::vector<std::string> columns, CategoryOptions o) {
  if (o.missing == FillCategory::zeros || o.unknown == FillCategory::zeros)
    throw ArgumentError("table encoder: index() has no zeros, since 0 is a category: use FillCategory::own");
  return add(std::move(columns),
             {.role = Role::index, .missing = o.missing, .unknown = o.unknown, .categories = std::move(o.categories)});
}
SKEIN_INLINE TableEncoder& TableEncoder::label(std::string column, std::vector<std::string> classes) {
  return add({std::move(column)}, {.role = Role::label, .categories = std::move(classes)});
}
SKEIN_INLINE TableEncoder& TableEncoder::target(std::vector<std::string> columns) {
  return add(std::move(columns), {.role = Role::target});
}
SKEIN_INLINE TableEncoder& TableEncoder::standardize_target(std::vector<std::string> columns) {
  return add(std::move(columns), {.role = Role::target, .standard = true});
}

SKEIN_INLINE TableEncoder& TableEncoder::fit(const Table& training) {
  if (training.rows() == 0) throw ArgumentError("table encoder: " + training.path() + " has no rows to learn from");
  std::vector<Encoded> columns = columns_;  // where a column is refused the encoder stays as it is
  Standardizer inputs, outputs;
  for (Encoded& e : columns) {
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
  columns_ = std::move(columns), inputs_ = std::move(inputs), outputs_ = std::move(outputs);
  return *this;
}

SKEIN_INLINE void TableEncoder::learn_number(Encoded& e, const Table& table, Standardizer& standardizer) {
  const int column = table.column(e.name);
  std::vector<double> there;
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const double v = table.number(r, column); v == v) there.push_back(v);
  if ((e.fill == Fill::mean || e.fill == Fill::median) && there.empty())
    throw ArgumentError(table.path() + ": column " + in_quotes(e.name, '"') + " has no value in the training rows: leave it out");
  if (e.fill == Fill::mean) {
    e.filled = 0;
    for (const double v : there) e.filled += v / static_cast<double>(there.size());
  } else if (e.fill == Fill::median) {
    std::sort(there.begin(), there.end());
    const std::size_t n = there.size();
    e.filled = n % 2 ? there[n / 2] : there[n / 2 - 1] + (there[n / 2] - there[n / 2 - 1]) / 2;
  }
  if (e.fill != Fill::refuse) there.resize(static_cast<std::size_t>(table.rows()), e.filled);
  standardizer.add({there.data(), there.size()}, e.standard, "numbers in column " + in_quotes(e.name, '"'));
}

SKEIN_INLINE void TableEncoder::learn_categories(Encoded& e, const Table& table) {
  const int column = table.column(e.name);
  e.of_texts = table.is_text(column);
  if (e.learns) e.categories = detail::categories_of(table, column);
  else
    for (const std::string& given : e.categories) e.of_texts = e.of_texts || !detail::is_short_number(given);
  e.of_texts ? detail::check_kind(table, column) : detail::check_exact(table, column);
  if (e.learns && e.role == Role::one_hot && e.categories.size() > 1000)
    throw ArgumentError(
        skein::text("{}: column {} has {} different values, of which one_hot learns up to 1000: take numbers by standardize(), "
                    "many categories by index(), or name them in .categories",
                    table.path(), in_quotes(e.name, '"'), e.categories.size()));
  if (e.categories.empty())
    throw ArgumentError(table.path() + ": column " + in_quotes(e.name, '"') + " has no value in the training rows: leave it out");
  if (e.learns) detail::check_repeats(table, column, e.categories.size(), e.role == Role::label);
  const detail::CategoryOf category(table.of(column), e.categories, e.of_texts);
  std::vector<std::int64_t> counts(e.categories.size());
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const std::int32_t c = category(table.stored_row(r)); c >= 0) ++counts[static_cast<std::size_t>(c)];
  e.most_frequent = static_cast<std::int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

template <class To> void TableEncoder::encode_categories(const Encoded& e, const Table& table, To* to, long pitch) {
  const int column = table.column(e.name);
  if (e.of_texts) detail::check_kind(table, column);
  const detail::CategoryOf category(table.of(column), e.categories, e.of_texts);
  for (std::int64_t r = 0; r < table.rows(); ++r) {
    To* const row = to + r * pitch;
    std::int32_t c = category(table.stored_row(r));
    if (c < 0) {
      const bool missing = c == detail::CategoryOf::missing;
      const FillCategory fill = missing ? e.missing : e.unknown;
      if (fill == FillCategory::refuse && missing)
        table.refuse(r, column, "no value",
                     e.role == Role::label ? "drop such rows by drop_missing()"
                                           : "drop such rows by drop_missing(), or say .missing = sk::data::FillCategory::own");
      if (fill == FillCategory::refuse)
        table.refuse(r, column, detail::shown(table.text(r, column)),
                     e.role == Role::label
                         ? "the training rows do not have this class: name all classes in label()"
                         : "the training rows do not have it: say .unknown = sk::data::FillCategory::own or zeros");
      c = fill == FillCategory::own             ? static_cast<std::int32_t>(e.categories.size())
          : fill == FillCategory::most_frequent ? e.most_frequent
                                                : -1;
    }
    if (e.role != Role::one_hot) *row = static_cast<To>(c);
    else
      for (int k = 0; k < e.one_hot_width(); ++k) row[k] = static_cast<To>(k == c);
  }
}

template <class To>
void TableEncoder::encode_numbers(const Encoded& e, const Table& table, double mean, double deviation, To* to, long pitch) {
  const int column = table.column(e.name);
  for (std::int64_t r = 0; r < table.rows(); ++r) {
    const double number = table.number(r, column);
    const bool missing = number != number;
    if (missing && e.fill == Fill::refuse)
      table.refuse(r, column, "no value",
                   e.wanted() ? "drop such rows by drop_missing()"
                              : "drop such rows by drop_missing(), or say .missing = sk::data::Fill::median");
    const To value = static_cast<To>(((missing ? e.filled : number) - mean) / deviation);
    if (!std::isfinite(static_cast<float>(value)))
      table.refuse(r, column, detail::shortest(number), "a float holds numbers up to 3.4e38");
    to[r * pitch] = value;
    if (e.indicator) to[r * pitch + 1] = static_cast<To>(missing);
  }
}

SKEIN_INLINE bool TableEncoder::has_targets(const Table& table) const {
  for (const Encoded& e : columns_)
    if (e.wanted() && table.contains(e.name)) return true;
  return false;
}

template <class Stored> InMemory<Stored> TableEncoder::make(const Table& table) const {
  check_fitted();
  const std::size_t rows = static_cast<std::size_t>(table.rows()), width = inputs_.size(), length = outputs_.size();
  std::vector<Stored> x(rows * width);
  const bool targets = has_targets(table);
  std::vector<float> y(targets ? rows * length : 0);
  std::size_t input = 0, output = 0;
  for (const Encoded& e : columns_) {
    if (e.wanted() && !targets) continue;
    const Standardizer& standard = e.wanted() ? outputs_ : inputs_;
    std::size_t& at = e.wanted() ? output : input;
    const auto encode = [&](auto& all, std::size_t pitch) {
      auto* const to = all.data() + (rows > 0 ? at : 0);  // of no rows it is null
      if (e.categorical()) encode_categories(e, table, to, static_cast<long>(pitch));
      else encode_numbers(e, table, standard.mean(at), standard.deviation(at), to, static_cast<long>(pitch));
    };
    e.wanted() ? encode(y, length) : encode(x, width);
    at += static_cast<std::size_t>(e.width());
  }
  const Extents sample{1, {static_cast<int>(width)}};
  if (!targets) return InMemory<Stored>(sample, std::move(x));
  const bool label = length == 1 && std::any_of(columns_.begin(), columns_.end(), [](auto& e) { return e.role == Role::label; });
  if (!label) return InMemory<Stored>(sample, std::move(x), std::move(y), static_cast<int>(length));
  return InMemory<Stored>(sample, std::move(x), std::vector<std::int32_t>(y.begin(), y.end()),
                          static_cast<int>(classes().size()));
}

SKEIN_INLINE InMemory<float> TableEncoder::encode(const Table& rows) const { return make<float>(rows).made_by(origin_of(rows)); }

SKEIN_INLINE InMemory<std::int32_t> TableEncoder::tokens(const Table& rows) const {
  for (const Encoded& e : columns_)
    if (!e.wanted() && e.role != Role::index)
      throw ArgumentError("table encoder: tokens() gives integers, and column " + in_quotes(e.name, '"') +
                          " is not taken by index()");
  return make<std::int32_t>(rows).made_by(origin_of(rows));
}

template <class T> void TableEncoder::restore_row(std::span<T> outputs) const {
  check_fitted();
  std::size_t wanted = 0, at = 0, value = 0, given = outputs.size();
  for (const Encoded& e : columns_) wanted += e.outputs();
  if (wanted != given)
    throw ShapeError(skein::text("table encoder: a row of outputs has {} values, its labels and targets {}", given, wanted));
  for (const Encoded& e : columns_) {
    if (e.role == Role::target) outputs[at] = static_cast<T>(outputs[at] * outputs_.deviation(value) + outputs_.mean(value));
    at += e.outputs();
    value += e.wanted();
  }
}

SKEIN_INLINE void TableEncoder::restore(std::span<float> outputs) const { restore_row(outputs); }
SKEIN_INLINE void TableEncoder::restore(std::span<double> outputs) const { restore_row(outputs); }

SKEIN_INLINE std::uint64_t TableEncoder::fingerprint() const {
  Fnv1a hash;
  for (const Encoded& e : columns_) {
    hash.add(std::string_view(e.name)).add(static_cast<std::uint64_t>(e.role)).add(e.indicator + 2u * e.of_texts);
    for (const std::string& category : e.categories) hash.add(std::string_view(category));
  }
  return hash.add(inputs_.hash()).add(outputs_.hash()).value() | 1;
}

SKEIN_INLINE void TableEncoder::check_fitted() const {
  if (inputs_.size() == 0) throw ArgumentError("table encoder: it has learnt nothing yet: call fit(training) first");
}

SKEIN_INLINE bool TableEncoder::fits_its_moments() const {
  if (inputs_.size() == 0) return outputs_.size() == 0;  // it has learnt nothing yet
  std::size_t inputs = 0, outputs = 0;
  for (const Encoded& e : columns_) (e.wanted() ? outputs : inputs) += static_cast<std::size_t>(e.width());
  return inputs == inputs_.size() && outputs == outputs_.size();
}

SKEIN_INLINE std::vector<std::string> TableEncoder::names() const {
  check_fitted();
  std::vector<std::string> all;
  for (const Encoded& e : columns_) {
    if (e.wanted()) continue;
    if (e.role == Role::one_hot) {
      for (const std::string& category : e.categories) all.push_back(e.name + " = " + category);
      if (e.own_category()) all.push_back(e.name + " is another or missing");
      continue;
    }
    all.push_back(e.name);
    if (e.indicator) all.push_back(e.name + " is missing");
  }
  return all;
}

SKEIN_INLINE std::string TableEncoder::text() const {
  check_fitted();
  std::string lines;
  std::size_t input = 0, output = 0;
  for (const Encoded& e : columns_) {
    const Standardizer& learnt = e.wanted() ? outputs_ : inputs_;
    std::size_t& at = e.wanted() ? output : input;
    lines += e.name + ": ";
    if (e.categorical()) {
      lines += std::to_string(e.categories.size()) + (e.role == Role::label ? " classes" : " categories");
      for (std::size_t i = 0; i < std::min<std::size_t>(e.categories.size(), 5); ++i) lines += ", " + e.categories[i];
      if (e.categories.size() > 5) lines += ", ...";
    } else {
      lines += e.role == Role::target ? "a target" : "a number";
      if (e.standard)
        lines += ", mean " + detail::rounded(learnt.mean(at)) + ", deviation " + detail::rounded(learnt.deviation(at));
    }
    lines += '\n';
    at += static_cast<std::size_t>(e.width());
  }
  return lines;
}

SKEIN_INLINE const std::vector<std::string>& TableEncoder::classes() const {
  for (const Encoded& e : columns_)
    if (e.role == Role::label) return categories(e.name);
  throw ArgumentError("table encoder: no column is a label");
}

SKEIN_INLINE const std::vector<std::string>& TableEncoder::categories(std::string_view column) const {
  check_fitted();
  for (const Encoded& e : columns_)
    if (e.name == column && e.categorical()) return e.categories;
  throw ArgumentError("table encoder: column " + in_quotes(column, '"') + " is not taken as categories");
}

}  // namespace skein::inline SKEIN_ABI::data
