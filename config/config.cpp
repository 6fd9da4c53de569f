#include "config/config.hpp"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "config/document.hpp"
#include "config/feed_keys.hpp"
#include "config/problems.hpp"
#include "config/yaml_tree.hpp"

namespace framelane {
namespace {

constexpr std::size_t kLargestFile = 16U << 20U;

/// Makes feeds of the parts of a document.
class FeedLoader {
 public:
  FeedLoader(const Document& document, const LoadOptions& options, Problems& problems)
      : document_(document), options_(options), problems_(problems) {}

  std::vector<FeedOptions> load() {
    // Feeds are read with everything merged, and then every value is looked at that has an effect.
    // These look at the others: an error in a profile that no feed uses is an error.
    if (document_.defaults != nullptr) check_layer(*document_.defaults);
    if (document_.profiles != nullptr) {
      for (const Node::Entry& profile : document_.profiles->entries) {
        if (is_named_map(profile)) check_layer(lay_over_defaults(profile.value));
      }
    }
    std::vector<FeedOptions> feeds;
    if (document_.feeds == nullptr) return feeds;
    if (document_.feeds->entries.empty()) {
      problems_.add(*document_.feeds, "is empty; name at least one feed");
    }
    for (const Node::Entry& feed : document_.feeds->entries) {
      if (is_named_map(feed)) feeds.push_back(load_feed(feed));
    }
    return feeds;
  }

 private:
  Node lay_over_defaults(const Node& layer) const {
    return document_.defaults == nullptr ? layer : merge(*document_.defaults, layer);
  }

  void check_layer(const Node& layer) {
    FeedOptions ignored;
    Reader reader(problems_, VariableScope{options_, "", std::nullopt, true});
    layer_keys().read(layer, ignored, reader);
  }

  bool is_named_map(const Node::Entry& entry) {
    if (!is_identifier(entry.key)) {
      problems_.add(entry.value.key_position, entry.value.path,
                    "must be " + std::string(kIdentifier.expected));
      return false;
    }
    if (entry.value.kind == Node::Kind::kNull) {
      problems_.add(entry.value, "has no value; write {} for one that only has the defaults");
      return false;
    }
    Reader reader(problems_, VariableScope{options_, std::nullopt, std::nullopt, false});
    return reader.require_map(entry.value, layer_keys().shape());
  }

  FeedOptions load_feed(const Node::Entry& entry) {
    FeedOptions feed;
    feed.name = entry.key;
    Reader reader(problems_, VariableScope{options_, entry.key, std::nullopt, false});
    const Node* profile = find_profile(entry.value, reader);
    const Node node = profile == nullptr ? lay_over_defaults(entry.value)
                                         : merge(lay_over_defaults(*profile), entry.value);
    feed_keys().read(node, feed, reader);
    complete_feed(node, feed, reader, places_);
    return feed;
  }

  const Node* find_profile(const Node& feed, Reader& reader) {
    const Node* name = feed.find("profile");
    if (name == nullptr || name->kind != Node::Kind::kScalar) return nullptr;
    const auto value = reader.scalar(*name, of(kIdentifier));
    if (!value) return nullptr;
    std::vector<std::string_view> known;
    if (document_.profiles != nullptr) {
      const Node* profile = document_.profiles->find(value->text);
      if (profile != nullptr) return profile->is_map() ? profile : nullptr;
      for (const Node::Entry& entry : document_.profiles->entries) known.emplace_back(entry.key);
    }
    problems_.add(
        *name, "there is no profile " + in_quotes(name->text) +
                   (known.empty() ? "; define it under profiles" : "; there are: " + join(known)));
    return nullptr;
  }

  const Document& document_;
  const LoadOptions& options_;
  Problems& problems_;
  OutputPlaces places_;
};

Config load(const Node& root, const LoadOptions& options, Problems& problems) {
  Document document;
  Reader reader(problems, VariableScope{options, std::nullopt, std::nullopt, false});
  if (root.kind == Node::Kind::kNull) {
    problems.add(root, "the file is empty; it needs at least feeds");
    return {};
  }
  if (!root.is_map()) {
    problems.add(root, "the file must be a map of keys: " + std::string("feeds and others"));
    return {};
  }
  document_keys().read(root, document, reader);
  if (root.find("feeds") == nullptr) {
    problems.add(root, "feeds is missing; name at least one feed under it");
  }
  std::vector<FeedOptions> feeds = FeedLoader(document, options, problems).load();
  return {document.log, document.admin, document.device, std::move(feeds)};
}

/// The text, or errno's value.
std::variant<std::string, int> read_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno != 0 ? errno : EIO;
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || errno == EISDIR) return errno != 0 ? errno : EIO;
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kLargestFile) return EFBIG;
  return text;
}

}  // namespace

LoadResult load_config_text(std::string_view text, const std::string& file_name,
                            const LoadOptions& options) {
  Problems problems(file_name);
  const Node root = parse_yaml(text, problems);
  // After a syntax error there is no tree, and its absence is nothing to report.
  const bool nothing_read = root.kind == Node::Kind::kNull && !problems.empty();
  Config config = nothing_read ? Config{} : load(root, options, problems);
  if (!problems.empty()) return problems.take();
  return config;
}

LoadResult load_config_file(const std::string& path, const LoadOptions& options) {
  const auto text = read_file(path);
  if (const int* error = std::get_if<int>(&text)) {
    Problems problems(path);
    problems.add({}, "",
                 "cannot be read: " + std::generic_category().message(*error) +
                     "; name another file with -c");
    return problems.take();
  }
  return load_config_text(std::get<std::string>(text), path, options);
}

}  // namespace framelane
