#include "pipeline/source/input_target.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "pipeline/av/device_formats.hpp"
#include "pipeline/av/optional_libraries.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {
namespace {

/// FFmpeg (5.1 to 7.1) recognizes MPEG-TS only in at least this many bytes. The last segment of a
/// playlist may have less; some of those it takes for MPEG-PS, and finds nothing in them.
constexpr std::uintmax_t kProbedBytes = 10 * 204;

bool is_short_transport_stream(const std::string& url) {
  constexpr std::size_t kPacketBytes = 188;
  constexpr char kSync = 0x47;
  const auto path = local_path(url);
  std::error_code error;
  if (!path || !std::filesystem::is_regular_file(*path, error)) return false;
  const std::uintmax_t size = std::filesystem::file_size(*path, error);
  if (error || size < 3 * kPacketBytes || size >= kProbedBytes) return false;
  std::string bytes(size, '\0');
  if (!std::ifstream(*path, std::ios::binary).read(bytes.data(), std::ssize(bytes))) return false;
  for (std::size_t at = 0; at < bytes.size(); at += kPacketBytes) {
    if (bytes[at] != kSync) return false;
  }
  return true;
}

}  // namespace

InputTarget target_of(const InputOptions& input) {
  const std::string scheme = url_scheme(input.url);
  if (device_of_scheme(scheme) != nullptr) return {input.url.substr(scheme.size() + 1), scheme};
  if (input.format.empty() && names_v4l2_device(input.url)) return {input.url, "v4l2"};
  return {input.url, input.format};
}

bool is_v4l2(const InputTarget& target) {
  const DeviceFormat* device = device_format(target.format);
  return device != nullptr && device->kind == DeviceFormat::Kind::kV4l2;
}

const AVInputFormat* find_demuxer(const InputTarget& target) {
  if (target.format.empty()) {
    return is_short_transport_stream(target.url) ? av_find_input_format("mpegts") : nullptr;
  }
  if (device_format(target.format) != nullptr) require_avdevice();
  const AVInputFormat* format = av_find_input_format(target.format.c_str());
  if (format == nullptr) {
    throw FeedError(FeedFault::kConfiguration,
                    "FFmpeg has no demuxer named " + target.format +
                        "; correct input.format, or leave it out to have the format probed");
  }
  return format;
}

}  // namespace framelane
