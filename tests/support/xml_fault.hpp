// SPDX-License-Identifier: Apache-2.0
// Whether a picture is well-formed XML.
#pragma once
#include <string>
#include <vector>

namespace support {

/// Empty where every element is closed in its order, attributes are quoted and no bare '&' or '<' stands in a text.
inline std::string xml_fault(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] == '&') {
      const std::size_t end = xml.find(';', at);
      const std::string entity = xml.substr(at, end == std::string::npos ? 1 : end - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;")
        return "bare & at " + std::to_string(at);
    }
    if (xml[at] == '>') return "bare > at " + std::to_string(at);
    if (xml[at] != '<') {
      if (open.empty() && xml[at] != '\n') return "text outside of the root";
      ++at;
      continue;
    }
    bool quoted = false;
    std::size_t end = at + 1;
    for (; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (xml[end] == '<') return "< within a tag at " + std::to_string(end);
    }
    if (end == xml.size()) return "a tag that does not end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

}  // namespace support
