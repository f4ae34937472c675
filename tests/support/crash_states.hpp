// SPDX-License-Identifier: Apache-2.0
// What a disk may have of a folder when the machine's power fails within a record of file operations (file_calls.hpp). POSIX
// promises what fsync has covered: a file's bytes by its own, a name by that of its folder. Of the rest any part may be there:
// names in any order, bytes lost, cut or zero.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <skein/core/random.hpp>

#include "file_calls.hpp"

namespace support {

/// The names and bytes that a disk has. Folder 0 is the one of the record.
struct DiskState {
  struct Name {
    bool folder = false;
    int number = 0;
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  std::map<int, std::map<std::string, Name>> folders{{0, {}}};
  std::map<int, std::string> files;

  /// Everything below folder 0, in a folder that is there.
  void write(const std::string& path, int folder = 0) const {
    const auto found = folders.find(folder);
    if (found == folders.end()) return;
    for (const auto& [name, to] : found->second) {
      const std::string at = path + "/" + name;
      if (to.folder) {
        std::filesystem::create_directory(at);
        write(at, to.number);
        continue;
      }
      std::FILE* const file = std::fopen(at.c_str(), "wb");
      const auto bytes = files.find(to.number);
      if (file && bytes != files.end()) (void)!std::fwrite(bytes->second.data(), 1, bytes->second.size(), file);
      if (file) std::fclose(file);
    }
  }
  /// The same for states that are alike below folder 0.
  std::string text(int folder = 0) const {
    std::string all;
    const auto found = folders.find(folder);
    if (found == folders.end()) return all;
    for (const auto& [name, to] : found->second) {
      const auto bytes = files.find(to.number);
      all += name + (to.folder ? "/" + text(to.number) : ":" + (bytes == files.end() ? "" : bytes->second)) + ";";
    }
    return all;
  }
};

/// A record, and the states that it may leave.
class CrashStates {
 public:
  /// Of the operations on `folder`. Without `file_syncs`, or `folder_syncs`: as if the program had made none.
  CrashStates(std::vector<FileOperation> operations, const std::string& folder, bool file_syncs = true, bool folder_syncs = true)
      : operations_(std::move(operations)), root_(folder), file_syncs_(file_syncs), folder_syncs_(folder_syncs) {
    resolve();
  }

  std::size_t size() const { return operations_.size(); }
  /// The number of the last mark before operation `end`; 0 where there is none.
  int mark_before(std::size_t end) const {
    int mark = 0;
    for (std::size_t i = 0; i < end; ++i)
      if (operations_[i].kind == FileOperation::Kind::mark) mark = operations_[i].file;
    return mark;
  }
  /// The state after the first `end` operations. Trial 0 has all of them, 1 what is synced alone, 2 all names and no bytes that
  /// are not synced, 3 all names and some bytes, 4 the first names and some bytes, all others some names and some bytes.
  DiskState state(std::size_t end, std::uint64_t trial) const {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) { return skein::random_below(trial, end, draw++, n); };
    DiskState disk;
    const std::vector<bool> sure = synced_names(end);
    const std::uint64_t first = trial == 4 ? below(end + 1) : 0;
    for (std::size_t i = 0; i < end; ++i) {
      const bool kept =
          sure[i] || trial == 0 || trial == 2 || trial == 3 || (trial == 4 && i < first) || (trial > 4 && below(2) > 0);
      if (kept) name(disk, i);
    }
    for (const int file : files_) disk.files[file] = bytes_of(file, end, trial, below);
    return disk;
  }

 private:
  using Kind = FileOperation::Kind;
  struct Place {
    int folder = 0;  // -1: not below the root
    std::string name;
  };
  struct Resolved {
    Place at, to;
    DiskState::Name moved;  // of create and make_folder: what is made
    int synced = -1;        // of sync_folder
  };

  /// Paths become folders that stay the same when they are renamed.
  void resolve() {
    std::map<std::string, DiskState::Name> now;  // by path
    int folders = 0;
    const auto place = [&](const std::string& path) {
      const std::size_t slash = path.rfind('/');
      const std::string parent = path.substr(0, slash);
      const auto found = now.find(parent);
      return Place{parent == root_ ? 0 : found == now.end() ? -1 : found->second.number, path.substr(slash + 1)};
    };
    const auto move = [&](const std::string& from, const std::string& to) {
      std::map<std::string, DiskState::Name> moved;
      for (auto i = now.lower_bound(from); i != now.end() && i->first.starts_with(from);) {
        const bool below = i->first.size() == from.size() || i->first[from.size()] == '/';
        if (below) moved[to + i->first.substr(from.size())] = i->second;
        i = below ? now.erase(i) : std::next(i);
      }
      return moved;
    };
    for (const FileOperation& o : operations_) {
      Resolved r;
      if (!o.path.empty() && o.kind != Kind::sync_file) r.at = place(o.path);
      if (!o.to.empty()) r.to = place(o.to);
      switch (o.kind) {
        case Kind::create:
          r.moved = now[o.path] = {false, o.file};
          break;
        case Kind::make_folder:
          r.moved = now[o.path] = {true, ++folders};
          break;
        case Kind::sync_folder:
          r.synced = o.path == root_ ? 0 : now.contains(o.path) ? now[o.path].number : -1;
          break;
        case Kind::unlink:
        case Kind::remove_folder:
          now.erase(o.path);
          break;
        case Kind::rename: {
          auto moved = move(o.path, o.to);
          now.erase(o.to);
          now.merge(moved);
          break;
        }
        case Kind::exchange: {
          auto moved = move(o.path, o.to), other = move(o.to, o.path);
          now.merge(moved);
          now.merge(other);
          break;
        }
        default:
          break;
      }
      if (o.file != 0 && o.kind != Kind::mark) files_.insert(o.file);
      resolved_.push_back(std::move(r));
    }
  }
  /// Which names no crash after `end` operations can take back.
  std::vector<bool> synced_names(std::size_t end) const {
    std::vector<bool> sure(end, false);
    std::set<int> synced;
    for (std::size_t i = end; i-- > 0;) {
      const Resolved& r = resolved_[i];
      const bool two = operations_[i].kind == Kind::rename || operations_[i].kind == Kind::exchange;
      sure[i] = synced.contains(r.at.folder) && (!two || synced.contains(r.to.folder));
      if (r.synced >= 0 && folder_syncs_) synced.insert(r.synced);
    }
    return sure;
  }
  /// A change of names, where those that it needs are there.
  void name(DiskState& disk, std::size_t i) const {
    const Resolved& r = resolved_[i];
    if (r.at.folder < 0 || r.to.folder < 0 || r.at.name.empty()) return;
    auto& at = disk.folders[r.at.folder];
    const auto found = at.find(r.at.name);
    const auto is_empty = [&](const DiskState::Name& n) { return !n.folder || disk.folders[n.number].empty(); };
    switch (operations_[i].kind) {
      case Kind::create:
        at[r.at.name] = r.moved;
        break;
      case Kind::make_folder:
        if (found == at.end()) at[r.at.name] = r.moved;
        break;
      case Kind::unlink:
        if (found != at.end() && !found->second.folder) at.erase(found);
        break;
      case Kind::remove_folder:
        if (found != at.end() && found->second.folder && is_empty(found->second)) at.erase(found);
        break;
      case Kind::rename:
      case Kind::exchange: {
        auto& to = disk.folders[r.to.folder];
        const auto other = to.find(r.to.name);
        if (found == at.end()) break;
        if (operations_[i].kind == Kind::exchange) {
          if (other != to.end()) std::swap(found->second, other->second);
        } else if (other == to.end() || is_empty(other->second)) {
          const DiskState::Name moved = found->second;
          at.erase(found);
          to[r.to.name] = moved;
        }
        break;
      }
      default:
        break;
    }
  }
  template <class Below> std::string bytes_of(int file, std::size_t end, std::uint64_t trial, Below&& below) const {
    std::string bytes;
    std::vector<const FileOperation*> pending;
    const auto apply = [](std::string& to, const FileOperation& o, std::size_t count) {
      if (o.kind == Kind::truncate) return to.resize(static_cast<std::size_t>(o.offset));
      const auto at = static_cast<std::size_t>(o.offset);
      if (to.size() < at + count) to.resize(at + count, '\0');
      to.replace(at, count, o.bytes, 0, count);
    };
    for (std::size_t i = 0; i < end; ++i) {
      const FileOperation& o = operations_[i];
      if (o.file != file) continue;
      if (o.kind == Kind::write || o.kind == Kind::truncate) pending.push_back(&o);
      if (o.kind != Kind::sync_file || !file_syncs_) continue;
      for (const FileOperation* p : pending) apply(bytes, *p, p->bytes.size());
      pending.clear();
    }
    for (const FileOperation* p : pending) {
      const std::uint64_t kind = trial == 0 ? 0 : trial <= 2 ? 3 : below(4);
      if (kind == 0) apply(bytes, *p, p->bytes.size());
      else if (kind == 1 && !p->bytes.empty()) apply(bytes, *p, below(p->bytes.size()));
      else if (kind == 2 && bytes.size() < static_cast<std::size_t>(p->offset) + p->bytes.size())
        bytes.resize(static_cast<std::size_t>(p->offset) + p->bytes.size(), '\0');  // its length, and nothing of it
    }
    return bytes;
  }

  std::vector<FileOperation> operations_;
  std::string root_;
  bool file_syncs_, folder_syncs_;
  std::vector<Resolved> resolved_;
  std::set<int> files_;
};

}  // namespace support
