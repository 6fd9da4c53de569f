#include "config/feed_checks.hpp"

#include <chrono>

#include "config/name_checks.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

void complete_feed(const Node& node, FeedOptions& feed, Reader& reader, OutputPlaces& places) {
  const ReadFeed read{node, feed, reader};
  check_input(read);
  complete_encodes(read);
  complete_outputs(read, places);
}

void check_backoff(const Node& owner, const BackoffOptions& backoff, Problems& problems) {
  if (backoff.first <= backoff.max) return;
  if (const Node* first = owner.find({"reconnect", "first"})) {
    problems.add(*first, "must not be longer than max, which is " +
                             kDuration.format(std::chrono::microseconds(backoff.max).count()));
  } else if (const Node* max = owner.find({"reconnect", "max"})) {
    problems.add(*max, "must not be shorter than first, which is " +
                           kDuration.format(std::chrono::microseconds(backoff.first).count()));
  }
}

void check_option(const Node& node, const std::string& name, const AvNames& known,
                  const std::string& owner, Problems& problems) {
  if (const auto problem = unknown_option(name, known, owner)) {
    problems.add(node.key_position, node.path, *problem);
  }
}

bool is_raw(const FeedOptions& feed) { return feed.input.format == "rawvideo"; }

}  // namespace framelane
