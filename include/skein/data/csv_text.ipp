// SPDX-License-Identifier: Apache-2.0
// The bodies of csv_text.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "csv_cursor.hpp"
#include "csv_text.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE std::vector<std::size_t> CsvText::ends_of_blocks(std::string_view ahead, int most, bool long_line) const {
  const std::size_t parts =
      std::clamp<std::size_t>(ahead.size() / least_bytes, 1, long_line ? 1024 : static_cast<std::size_t>(most));
  std::vector<std::size_t> ends = line_cuts(ahead, separator_, static_cast<int>(parts));
  if (long_line && !ends.empty()) return ends.resize(1), ends;
  if (ended_ && !ahead.empty()) {  // the last line may have no end
    if (ends.empty() || (ends.back() < ahead.size() && ends.size() < parts)) ends.push_back(ahead.size());
    ends.back() = ahead.size();
    if (long_line) ends = {ahead.size()};
  }
  return ends;
}

SKEIN_INLINE std::vector<std::string_view> CsvText::next(int most) {
  const std::size_t usual = static_cast<std::size_t>(most) * block_bytes;
  const std::size_t longest = std::max<std::size_t>(usual, limit_ / 16);
  for (std::size_t wanted = usual;; wanted = std::min(2 * wanted, longest)) {
    const std::string_view rest = ahead(wanted);
    const std::size_t mark = gone_ + used_ == 0 && rest.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // belongs to no field
    std::vector<std::size_t> ends = ends_of_blocks(rest.substr(mark), most, wanted > usual);
    for (std::size_t& end : ends) end += mark;
    if (ends.empty() && !ended_ && wanted == longest)
      throw FileError(path_, static_cast<long long>(gone_ + used_),
                      text("has a line of more than {} bytes, which begins there: is a quote never closed? If the line is right, "
                           "give the options of read_csv a larger .limit, of which a line may take a 16th",
                           longest));
    if (ends.empty() && !ended_) continue;  // a line is longer than that
    std::vector<std::string_view> blocks;
    for (std::size_t begin = 0; const std::size_t end : ends) blocks.push_back(rest.substr(begin, end - begin)), begin = end;
    stretch_ = used_;
    if (!ends.empty()) used_ += ends.back();
    return blocks;
  }
}

SKEIN_INLINE std::string_view CsvText::ahead(std::size_t wanted) {
  if (!file_) {
    ended_ = text_.size() - used_ <= wanted;
    return text_.substr(used_, wanted);
  }
  if (const std::size_t there = buffer_.size() - used_; !read_all_ && there < wanted) {
    if (there > 0) std::memmove(buffer_.data(), buffer_.data() + used_, there);
    gone_ += std::exchange(used_, 0);
    buffer_.resize(wanted);
    buffer_.resize(there + file_->read(buffer_.data() + there, wanted - there));
    read_all_ = buffer_.size() < wanted;
    if (gone_ + buffer_.size() > limit_) file_->fail(file_->offset(), text("is larger than the limit of {} bytes", limit_));
  }
  const std::size_t rest = buffer_.size() - used_;
  ended_ = read_all_ && rest <= wanted;
  return {buffer_.data() + used_, std::min(rest, wanted)};
}

}  // namespace skein::inline SKEIN_ABI::data::detail
