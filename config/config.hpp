#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/load_options.hpp"
#include "config/problem.hpp"
#include "config/process_config.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

struct Node;

/// The whole configuration, validated; defaults, profiles and variables are resolved. Feeds are in
/// the order of the file.
struct Config {
  LogConfig log;
  AdminConfig admin;
  WatchdogConfig watchdog;
  RecorderConfig recorder;
  std::vector<HookConfig> hooks;
  DeviceChoice device;  ///< of feeds that name none
  std::vector<FeedOptions> feeds;
  /// What was read, with what the main file includes: defaults, profiles and feeds are still
  /// separate.
  std::shared_ptr<const Node> tree{};
  std::vector<std::string> files{};  ///< their paths, as in Position::file
  /// Some value names a ${file:…}: feeds may differ when they are read again (reread_feed).
  bool names_files = false;
};

/// A configuration, or every problem in it, in file order.
using LoadResult = std::variant<Config, std::vector<Problem>>;
/// Reads the file and those that it includes and names: ${file:…}, tokens, certificates, and with
/// `options.require_files` fonts and images. Opens no source, output or device. The values of
/// ${file:…} and the passwords in URLs go to register_secret.
LoadResult load_config_file(const std::string& path, const LoadOptions& options = {});
/// The same for a text. `file_name` is for the problems.
LoadResult load_config_text(std::string_view text, const std::string& file_name,
                            const LoadOptions& options = {});

/// A feed, or every problem in it, in file order.
using FeedResult = std::variant<FeedOptions, std::vector<Problem>>;
/// Makes one of the feeds of Config::tree again, with the present contents of the ${file:…} that it
/// names. Blocks for as long as reading these does. `files`: Config::files. Any thread.
FeedResult reread_feed(const Node& tree, const std::string& feed,
                       const std::vector<std::string>& files, const LoadOptions& options = {});

/// What one of the feeds of Config::tree is made of: defaults, profile and feed, merged, with ${…}
/// as they are written. Null if there is no such feed. `files`: Config::files.
Node merged_feed(const Node& tree, const std::string& feed, const std::vector<std::string>& files);

/// A problem of the key `device` that `feed`, which is one of the configuration's, goes by: its
/// own, one that it inherits, or the file's. It shows only when devices are asked for.
Problem device_problem(const Config& config, const FeedOptions& feed, const std::string& message);

/// Where a daemon with this configuration listens.
struct AdminAddress {
  std::string listen = AdminConfig().listen;
  bool tls = false;
};
/// This alone, or its default. Problems elsewhere in the file are ignored: they may have been made
/// after the running daemon was started. Why the value could not be read (no file, no YAML, no
/// address) goes to `problems`. Opens no other file, but those of ${file:…} in the address.
AdminAddress load_admin_address(const std::string& path, std::vector<Problem>& problems);

}  // namespace framelane
