// SPDX-License-Identifier: Apache-2.0
// TableEncoder: what becomes of each column of a table in a data set. It learns from the training rows (means, deviations,
// categories), does the same to any other rows, and goes into the file with the model:
//
//     sk::data::TableEncoder encoder;
//     encoder.standardize({"age", "fare"}, {.missing = sk::data::Fill::median}).one_hot({"sex", "port"}).label("survived");
//     const auto train = encoder.fit(training).encode(training), test = encoder.encode(others);
//     trainer.keep(encoder);
//
// and where the model is used: predictor.load("titanic.skein");  predictor.predict(sk::data::read_csv("new.csv")).
//
// It remembers whether a column of categories had texts or numbers. Rows in which the other kind was read are taken as the kind
// of the training rows: a file with the one postcode 02114 has a column of numbers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "standardizer.hpp"
#include "table.hpp"

namespace skein::inline SKEIN_ABI::data {

/// What a missing number becomes: an error that names the row; the mean or the median of the training rows; 0.
enum class Fill { refuse, mean, median, zero };
/// What a missing category becomes, or one that the training rows do not have: an error that names the row; 0 in all columns of a
/// one_hot; the most frequent category; a category of its own, the last.
enum class FillCategory { refuse, zeros, most_frequent, own };

namespace detail {
/// Throw the ArgumentError of a number that is none of these.
inline void demand_value(const char* who, const char* setting, Fill value) {
  skein::detail::demand_value(who, setting, value, Fill::zero, "refuse, mean, median or zero");
}
inline void demand_value(const char* who, const char* setting, FillCategory value) {
  skein::detail::demand_value(who, setting, value, FillCategory::own, "refuse, zeros, most_frequent or own");
}
}  // namespace detail

/// How columns of numbers are encoded.
struct NumberOptions {
  Fill missing = Fill::refuse;
  bool indicator = false;  ///< a value more: 1 where the number is missing, else 0
};
/// How columns of categories, which are texts or numbers, are encoded.
struct CategoryOptions {
  FillCategory missing = FillCategory::refuse;
  FillCategory unknown = FillCategory::refuse;
  std::vector<std::string> categories{};  ///< in this order; empty: those of the training rows, sorted
};

/// Columns of a table to the values of a sample, in the order of the calls; and to labels and targets.
class TableEncoder {
 public:
  /// Where Trainer::keep puts it in a file.
  static constexpr std::string_view kept_as = "table encoder";

  /// Numbers as they are.
  TableEncoder& numbers(std::vector<std::string> columns, NumberOptions options = {});
  /// Numbers as (number - mean) / deviation of the training rows.
  TableEncoder& standardize(std::vector<std::string> columns, NumberOptions options = {});
  /// A value for each category: 1 for that of the row, else 0.
  TableEncoder& one_hot(std::vector<std::string> columns, CategoryOptions options = {});
  /// The number of the category, from 0, as one value: for embeddings. See tokens().
  TableEncoder& index(std::vector<std::string> columns, CategoryOptions options = {});
  /// The column that is predicted, as the number of its class. Empty classes: the values of the training rows, sorted.
  TableEncoder& label(std::string column, std::vector<std::string> classes = {});
  /// Columns that are predicted, as numbers. Where there is a label beside, it is one value of the same target vector, as
  /// nn::graph_loss takes it; the order is that of the calls.
  TableEncoder& target(std::vector<std::string> columns);
  /// Columns that are predicted as target() has them, but each as (number - mean) / deviation; restore() goes back.
  TableEncoder& standardize_target(std::vector<std::string> columns);

  /// Learns from the training rows. Throws ArgumentError for a column that is not there or has nothing to learn from.
  TableEncoder& fit(const Table& training);
  /// The rows as a data set. Labels and targets are there unless the table has none of their columns. Throws ArgumentError that
  /// names column and row for what has no encoding.
  InMemory<float> encode(const Table& rows) const;
  /// The rows as encode() gives them, but with samples of integers, for a model of sk::Tokens<columns>: where all columns are
  /// taken by index().
  InMemory<std::int32_t> tokens(const Table& rows) const;
  /// A row of outputs of the network in the units of the table, in place: what standardize_target() did is undone. A label takes
  /// as many outputs as it has classes.
  void restore(std::span<float> outputs) const;
  void restore(std::span<double> outputs) const;

  /// Values of a sample, after fit(); and their names, such as "age", "age is missing", "sex = female".
  int width() const { return static_cast<int>(inputs_.size()); }
  std::vector<std::string> names() const;
  /// Names of the classes of the label, after fit(). Throws ArgumentError where there is no label.
  const std::vector<std::string>& classes() const;
  /// Categories of a column that one_hot, index or label takes, after fit().
  const std::vector<std::string>& categories(std::string_view column) const;
  /// A number that is the same for encoders that make the same samples of rows without missing values, and another for others.
  /// A data set that was encoded carries it, so that trainers and predictors see which encoder it was.
  std::uint64_t fingerprint() const;
  /// What became of each column, a line each, after fit(): "sex: 2 categories, female, male".
  std::string text() const;

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & columns_ & inputs_ & outputs_);
    if constexpr (Archive::is_loading::value)
      if (!fits_its_moments()) archive.refuse("the columns of the table encoder and what it has learnt do not fit each other");
  }

 private:
  enum class Role { number, one_hot, index, label, target };
  struct Encoded {
    std::string name{};
    Role role = Role::number;
    bool standard = false, indicator = false;
    Fill fill = Fill::refuse;
    FillCategory missing = FillCategory::refuse, unknown = FillCategory::refuse;
    double filled = 0;                // what a missing number becomes
    std::int32_t most_frequent = -1;  // category
    std::vector<std::string> categories{};
    bool learns = true;     // its categories, from the rows that fit() is given
    bool of_texts = false;  // categories are texts, not numbers

    bool wanted() const { return role == Role::label || role == Role::target; }
    bool categorical() const { return role == Role::one_hot || role == Role::index || role == Role::label; }
    bool own_category() const { return missing == FillCategory::own || unknown == FillCategory::own; }
    int one_hot_width() const { return static_cast<int>(categories.size()) + own_category(); }
    /// Values of a sample, or of a target.
    int width() const { return role == Role::one_hot ? one_hot_width() : 1 + indicator; }
    /// Outputs of a network.
    std::size_t outputs() const { return role == Role::label ? categories.size() : role == Role::target; }

    template <class Archive> void serialize(Archive& archive, unsigned) {
      (archive & name & role & standard & indicator & fill & missing & unknown & filled & most_frequent & categories & learns &
       of_texts);
    }
  };

  TableEncoder& add(std::vector<std::string> names, Encoded like);
  void check_fitted() const;
  /// Has a mean and a deviation for each value that the columns become; a file may say anything.
  bool fits_its_moments() const;
  static void learn_number(Encoded& e, const Table& table, Standardizer& standardizer);
  static void learn_categories(Encoded& e, const Table& table);
  /// Writes the column's values to to[row * pitch].
  template <class To> static void encode_categories(const Encoded& e, const Table& table, To* to, long pitch);
  template <class To>
  static void encode_numbers(const Encoded& e, const Table& table, double mean, double deviation, To* to, long pitch);
  template <class Stored> InMemory<Stored> make(const Table& table) const;
  Origin origin_of(const Table& table) const { return {.encoders = {fingerprint()}, .split = table.split()}; }
  bool has_targets(const Table& table) const;
  template <class T> void restore_row(std::span<T> outputs) const;

  std::vector<Encoded> columns_;
  Standardizer inputs_, outputs_;  // a value of a sample each, of a target
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "table_encoder.ipp"
#endif
