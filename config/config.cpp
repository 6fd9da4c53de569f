#include "config/config.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "config/document.hpp"
#include "config/feed_loader.hpp"
#include "config/keys.hpp"
#include "config/problems.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {
namespace {

constexpr std::size_t kLargestFile = 16U << 20U;
constexpr std::string_view kFileVariable = "${file:";

/// What feeds are made of.
Document parts_for_feeds(const Node& tree) {
  Document document;
  document.limits = tree.find("limits");
  document.defaults = tree.find("defaults");
  document.profiles = tree.find("profiles");
  document.feeds = tree.find("feeds");
  return document;
}

const Node::Entry& entry_of(const std::string& feed, const Document& document) {
  const auto entry = std::ranges::find(document.feeds->entries, feed, &Node::Entry::key);
  assert(entry != document.feeds->entries.end());
  return *entry;
}

Config load(const Node& root, const LoadOptions& options, Problems& problems) {
  Document document;
  Reader reader(problems, VariableScope{options, std::nullopt, std::nullopt, false});
  if (root.kind == Node::Kind::kNull) {
    problems.add(root, "the file is empty; it needs at least feeds");
    return {};
  }
  if (!root.is_map()) {
    problems.add(root, "the file must be a map of keys: feeds and others");
    return {};
  }
  document_keys().read(root, document, reader);
  if (root.find("feeds") == nullptr) {
    problems.add(root, root.find("include") == nullptr
                           ? "feeds is missing; name at least one feed under it"
                           : "no file that is included has feeds; name at least one feed in one");
  }
  std::vector<FeedOptions> feeds = FeedLoader(document, options, problems).load();
  return {document.log,   document.admin,  document.watchdog, document.recorder,
          document.hooks, document.device, std::move(feeds)};
}

/// A file that the shell has opened, perhaps a pipe: -c /dev/stdin, -c <(command).
bool is_open_already(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

/// Why a file or folder cannot be read, and what helps if the system denies it.
std::string reason_of(int error) {
  const char* const remedy = error == EACCES ? " (let framelane's user read it)" : "";
  return std::generic_category().message(error) + remedy;
}

std::string unreadable_main(const std::string& problem) {
  return "cannot be read: " + problem + "; name another file with -c";
}

/// Reads `fd` to its end. A failure is explained in `problem`.
void read_all(int fd, std::string& text, std::string& problem) {
  std::array<char, 65536> buffer;
  while (text.size() <= kLargestFile) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return;
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      problem = reason_of(errno);
      return;
    }
  }
  problem = reason_of(EFBIG);
}

/// The text of a file; nothing, with the reason in `problem`, if it cannot be read.
std::optional<std::string> read_file(const std::string& path, std::string& problem) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    problem = reason_of(errno);
    return std::nullopt;
  }
  std::string text;
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    problem = reason_of(errno);
  } else if (S_ISDIR(status.st_mode)) {
    problem = reason_of(EISDIR);
  } else if (!S_ISREG(status.st_mode) && !is_open_already(path)) {
    problem = "it is not a regular file";
  } else {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    read_all(fd, text, problem);
  }
  ::close(fd);
  if (!problem.empty()) return std::nullopt;
  return text;
}

/// What the glob() under way could not look at, although it is there; 0: nothing.
thread_local int glob_error;

int note_glob_error(const char* /*path*/, int error) {
  if (error != ENOENT && error != ENOTDIR) glob_error = error;
  return 0;
}

/// The files that a pattern of `include` names, in the order of their names. A relative pattern
/// begins in the folder of the main file.
std::vector<std::string> included_by(const Node& node, const std::string& pattern,
                                     Problems& problems) {
  namespace fs = std::filesystem;
  std::string folder = fs::path(problems.files().front()).parent_path().string();
  for (std::size_t i = 0; i < folder.size(); ++i) {  // these are names, no patterns
    if (std::strchr("*?[\\", folder[i]) != nullptr) folder.insert(i++, 1, '\\');
  }
  const std::string full = (fs::path(folder) / pattern).string();
  glob_error = 0;
  // glob() takes a file for missing if its folder must not be searched. So it asks through these.
  glob_t found{};
  found.gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  found.gl_readdir = [](void* open) {
    errno = 0;
    dirent* const entry = ::readdir(static_cast<DIR*>(open));
    if (entry == nullptr && errno != 0) note_glob_error("", errno);
    return entry;
  };
  found.gl_closedir = [](void* open) { ::closedir(static_cast<DIR*>(open)); };
  found.gl_lstat = found.gl_stat = [](const char* path, struct stat* info) {
    const int result = ::stat(path, info);
    if (result != 0) note_glob_error(path, errno);
    return result;
  };
  if (::glob(full.c_str(), GLOB_ALTDIRFUNC, note_glob_error, &found) == GLOB_NOSPACE) {
    glob_error = ENOMEM;
  }
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (glob_error != 0) {
    problems.add(node, "a folder of " + in_quotes(pattern) + " cannot be read: " +
                           reason_of(glob_error) + "; mend that, or name other files");
  } else if (paths.empty() && pattern.find_first_of("*?[") == std::string::npos) {
    problems.add(node, "there is no file " + in_quotes(pattern) + "; make it, or correct the name");
  }
  return paths;
}

void set_file(Node& node, int file) {
  node.position.file = node.key_position.file = file;
  for (Node& item : node.items) set_file(item, file);
  for (Node::Entry& entry : node.entries) set_file(entry.value, file);
}

/// Puts the names of an included map, which is `feeds` or `profiles`, beside those that are there.
void add_names(Node& root, Node::Entry part, const Node& include, Problems& problems) {
  if (!part.value.is_map()) {
    problems.add(part.value, "must be a map of names and their values");
    return;
  }
  auto target = std::ranges::find(root.entries, part.key, &Node::Entry::key);
  if (target == root.entries.end()) {
    Node map = include;  // for its place
    map.kind = Node::Kind::kMap;
    map.path = part.key;
    map.text.clear();
    map.items.clear();
    root.entries.push_back({part.key, std::move(map)});
    target = std::prev(root.entries.end());
  }
  if (!target->value.is_map()) return;  // which is reported when it is read
  for (Node::Entry& entry : part.value.entries) {
    if (const Node* other = target->value.find(entry.key)) {
      problems.add(entry.value.key_position, entry.value.path,
                   "is already in " +
                       problems.files()[static_cast<std::size_t>(other->key_position.file)] +
                       ", line " + std::to_string(other->key_position.line) +
                       "; give one of them another name");
    } else {
      target->value.entries.push_back(std::move(entry));
    }
  }
}

/// Reads the files that the document includes, and adds their feeds and profiles to it. Sets
/// `names_files` if one of them has a ${file:…}.
void include_files(Node& root, const LoadOptions& options, Problems& problems, bool& names_files) {
  const Node* const key = root.find("include");
  if (key == nullptr) return;
  const Node include = *key;  // the root's entries move
  Reader reader(problems, VariableScope{options, std::nullopt, std::nullopt, false});
  std::vector<std::string> seen;
  for (const Node& item : include.items_or_self()) {
    if (item.kind != Node::Kind::kScalar) continue;  // reported when the document is read
    const auto pattern = reader.scalar(item, of(kText));
    if (!pattern || !reader.is_certain(item)) continue;
    for (const std::string& path : included_by(item, pattern->text, problems)) {
      if (std::ranges::find(seen, path) != seen.end()) continue;  // two patterns name it
      seen.push_back(path);
      std::error_code error;
      if (std::filesystem::equivalent(path, problems.files().front(), error)) {
        problems.add(item, "names this file itself; put the others into a folder of their own");
        continue;
      }
      std::string problem;
      const std::optional<std::string> text = read_file(path, problem);
      if (!text) {
        problems.add(item, "includes " + path + ", which cannot be read: " +
                               problem.append("; mend that, or name other files"));
        continue;
      }
      names_files = names_files || text->find(kFileVariable) != std::string::npos;
      const int file = problems.add_file(path);
      Problems of_file(path);
      Node tree = parse_yaml(*text, of_file);
      set_file(tree, file);
      problems.add_all(file, std::move(of_file));
      if (tree.kind != Node::Kind::kNull && !tree.is_map()) {
        problems.add(tree, "the file must be a map of keys: feeds, profiles or both");
      }
      for (Node::Entry& entry : tree.entries) {
        if (entry.key == "feeds" || entry.key == "profiles") {
          add_names(root, std::move(entry), include, problems);
        } else {
          problems.add(entry.value.key_position, entry.value.path,
                       "an included file has feeds and profiles only; move this to " +
                           problems.files().front());
        }
      }
    }
  }
}

}  // namespace

LoadResult load_config_text(std::string_view text, const std::string& file_name,
                            const LoadOptions& options) {
  Problems problems(file_name);
  auto root = std::make_shared<Node>(parse_yaml(text, problems));
  bool names_files = text.find(kFileVariable) != std::string_view::npos;
  // After a syntax error the tree may be missing, which is no further problem.
  const bool nothing_read = root->kind == Node::Kind::kNull && !problems.empty();
  Config config;
  if (!nothing_read) {
    if (root->is_map()) include_files(*root, options, problems, names_files);
    config = load(*root, options, problems);
  }
  if (!problems.empty()) return problems.take();
  config.tree = std::move(root);
  config.files = problems.files();
  config.names_files = names_files;
  return config;
}

FeedResult reread_feed(const Node& tree, const std::string& feed,
                       const std::vector<std::string>& files, const LoadOptions& options) {
  const Document document = parts_for_feeds(tree);
  Problems problems(files);
  FeedOptions result = FeedLoader(document, options, problems).load_feed(entry_of(feed, document));
  if (!problems.empty()) return problems.take();
  return result;
}

Node merged_feed(const Node& tree, const std::string& feed, const std::vector<std::string>& files) {
  if (tree.find({"feeds", feed}) == nullptr) return {};
  const Document document = parts_for_feeds(tree);
  const LoadOptions options{.require_environment = false};
  Problems problems(files);
  return FeedLoader(document, options, problems).merged(entry_of(feed, document));
}

Problem device_problem(const Config& config, const FeedOptions& feed, const std::string& message) {
  Problems problems(config.files);
  if (!feed.device) {
    const Node* const device = config.tree->find("device");
    problems.add(device == nullptr ? *config.tree : *device, message);
    return problems.take().front();
  }
  const Document document = parts_for_feeds(*config.tree);
  const LoadOptions options{.require_environment = false};
  const Node merged = FeedLoader(document, options, problems).merged(entry_of(feed.name, document));
  const Node* const device = merged.find("device");
  problems.add(device == nullptr ? merged : *device, message);
  return problems.take().front();
}

LoadResult load_config_file(const std::string& path, const LoadOptions& options) {
  std::string problem;
  const std::optional<std::string> text = read_file(path, problem);
  if (!text) {
    Problems problems(path);
    problems.add({}, "", unreadable_main(problem));
    return problems.take();
  }
  return load_config_text(*text, path, options);
}

AdminAddress load_admin_address(const std::string& path, std::vector<Problem>& problems) {
  AdminAddress address;
  Problems found(path);
  std::string unreadable;
  if (const std::optional<std::string> text = read_file(path, unreadable)) {
    const Node root = parse_yaml(*text, found);
    LoadOptions options;
    options.require_environment = false;
    if (root.is_map()) found.take();  // problems elsewhere are ignored, see the header
    if (const Node* listen = root.find({"admin", "listen"})) {
      Reader reader(found, VariableScope{options, std::nullopt, std::nullopt, false});
      const auto value = reader.scalar(*listen, of(kListenAddress));
      if (value) address.listen = value->text;
    }
    address.tls = root.find({"admin", "tls"}) != nullptr;
  } else {
    found.add({}, "", unreadable_main(unreadable));
  }
  problems = found.take();
  return address;
}

}  // namespace framelane
