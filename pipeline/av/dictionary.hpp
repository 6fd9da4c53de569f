#pragma once

extern "C" {
#include <libavutil/dict.h>
}

#include <optional>
#include <string>
#include <utility>

#include "pipeline/base/av_option.hpp"

namespace framelane {

/// An AVDictionary. Calls that allocate throw std::bad_alloc.
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
  /// Sets the value unless the key has one.
  void set_default(const std::string& key, const std::string& value);
  /// For calls of FFmpeg's that take options and replace the dictionary by those that they did not
  /// consume.
  AVDictionary** ptr() { return &dict_; }
  const AVDictionary* get() const { return dict_; }
  /// The key of the first of `options` that nothing has consumed, leaving inherited ones out.
  std::optional<std::string> unconsumed(const AvOptions& options) const;

 private:
  AVDictionary* dict_ = nullptr;
};

}  // namespace framelane
