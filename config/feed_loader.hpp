#pragma once

#include <optional>
#include <vector>

#include "config/document.hpp"
#include "config/keys.hpp"
#include "config/output_places.hpp"
#include "config/problems.hpp"
#include "config/yaml_tree.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// Makes the feeds of a document from its limits, defaults, profiles and feeds. What it is given
/// outlives it.
class FeedLoader {
 public:
  FeedLoader(const Document& document, const LoadOptions& options, Problems& problems);

  /// All feeds. Also checks the defaults and each profile.
  std::vector<FeedOptions> load();
  FeedOptions load_feed(const Node::Entry& entry);
  /// What a feed consists of, with all that it inherits.
  Node merged(const Node::Entry& feed) const;

 private:
  Reader reader_of(const Node::Entry& feed) const;
  Node lay_over_defaults(const Node& layer) const;
  void check_layer(const Node& layer);
  bool is_named_map(const Node::Entry& entry);
  const Node* find_profile(const Node& feed, Reader& reader) const;

  const Document& document_;
  const LoadOptions& options_;
  Problems& problems_;
  std::optional<Node> base_;  // the defaults, over what the document's limits stand for
  OutputPlaces places_;
};

}  // namespace framelane
