#pragma once

extern "C" {
#include <libavutil/dict.h>
}

#include <optional>
#include <string>
#include <utility>

#include "pipeline/base/av_option.hpp"

namespace framelane {

/// An AVDictionary filled from AvOptions.
class Dictionary {
 public:
  Dictionary() = default;
  explicit Dictionary(const AvOptions& options);
  Dictionary(Dictionary&& other) noexcept : dict_(std::exchange(other.dict_, nullptr)) {}
  Dictionary& operator=(Dictionary other) noexcept {
    std::swap(dict_, other.dict_);
    return *this;
  }
  ~Dictionary() { av_dict_free(&dict_); }

  Dictionary copy() const;
  void set(const std::string& key, const std::string& value);
  void set_default(const std::string& key, const std::string& value);
  /// For FFmpeg calls that take and replace a dictionary: what they leave was not consumed.
  AVDictionary** ptr() { return &dict_; }
  const AVDictionary* get() const { return dict_; }
  /// The first of `options` that is still here and not inherited: nothing consumed it.
  std::optional<std::string> unconsumed(const AvOptions& options) const;

 private:
  AVDictionary* dict_ = nullptr;
};

}  // namespace framelane
