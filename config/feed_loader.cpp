#include "config/feed_loader.hpp"

#include <string>
#include <string_view>

#include "config/feed_keys.hpp"

namespace framelane {

FeedLoader::FeedLoader(const Document& document, const LoadOptions& options, Problems& problems)
    : document_(document), options_(options), problems_(problems) {
  if (document.limits != nullptr) base_ = layer_of_limits(*document.limits);
  if (document.defaults != nullptr) {
    base_ = base_ ? merge(*base_, *document.defaults) : *document.defaults;
  }
}

std::vector<FeedOptions> FeedLoader::load() {
  // Feeds are read after everything is merged into them, so only values with an effect are
  // checked. The defaults and profiles are also checked alone: an error in a profile that no feed
  // uses is an error.
  if (base_) check_layer(*base_);
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

FeedOptions FeedLoader::load_feed(const Node::Entry& entry) {
  FeedOptions feed;
  feed.name = entry.key;
  Reader reader = reader_of(entry);
  const Node node = merged(entry);
  feed_keys().read(node, feed, reader);
  complete_feed(node, feed, reader, places_);
  return feed;
}

Node FeedLoader::merged(const Node::Entry& feed) const {
  Reader reader = reader_of(feed);
  const Node* const profile = find_profile(feed.value, reader);
  return profile == nullptr ? lay_over_defaults(feed.value)
                            : merge(lay_over_defaults(*profile), feed.value);
}

Reader FeedLoader::reader_of(const Node::Entry& feed) const {
  return {problems_, VariableScope{options_, feed.key, std::nullopt, false}};
}

Node FeedLoader::lay_over_defaults(const Node& layer) const {
  return base_ ? merge(*base_, layer) : layer;
}

void FeedLoader::check_layer(const Node& layer) {
  FeedOptions ignored;
  Reader reader(problems_, VariableScope{options_, "", std::nullopt, true});
  layer_keys().read(layer, ignored, reader);
}

bool FeedLoader::is_named_map(const Node::Entry& entry) {
  if (!is_identifier(entry.key)) {
    problems_.add(entry.value.key_position, entry.value.path,
                  "must be " + std::string(kIdentifier.expected));
    return false;
  }
  if (entry.value.kind == Node::Kind::kNull) {
    problems_.add(entry.value, "has no value; write {} if it has nothing but the defaults");
    return false;
  }
  Reader reader(problems_, VariableScope{options_, std::nullopt, std::nullopt, false});
  return reader.require_map(entry.value, layer_keys().shape());
}

const Node* FeedLoader::find_profile(const Node& feed, Reader& reader) const {
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
  problems_.add(*name,
                "there is no profile " + in_quotes(name->text) +
                    (known.empty() ? "; define it under profiles" : "; there are: " + join(known)));
  return nullptr;
}

}  // namespace framelane
