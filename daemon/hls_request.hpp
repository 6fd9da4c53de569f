#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/admin_server.hpp"
#include "daemon/disk_readers.hpp"
#include "daemon/supervisor.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// The playlist that an output writes, and that a player is to open; nothing if it writes none, or
/// if its playlist names segments on another server (hls_base_url).
std::optional<std::filesystem::path> playlist_of(const FeedOptions& feed, std::string_view output);

/// Answers GET /api/v1/feeds/NAME/hls/OUTPUT/FILE: the output's playlist, or a file that this or
/// one of its renditions' playlists names at present. Nothing else is sent, and nothing through a
/// link. Any thread. Blocks as DiskReaders::answer() does. Throws RequestError.
HttpResponse answer_hls(const HttpRequest& request, const Supervisor& supervisor,
                        DiskReaders& readers, const std::string& feed, const std::string& output,
                        const std::string& file);

}  // namespace framelane
