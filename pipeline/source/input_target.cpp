#include "pipeline/source/input_target.hpp"

#include "pipeline/av/device_formats.hpp"
#include "pipeline/av/optional_libraries.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/url.hpp"

namespace framelane {

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
  if (target.format.empty()) return nullptr;
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
