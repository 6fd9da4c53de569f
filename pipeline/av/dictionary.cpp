#include "pipeline/av/dictionary.hpp"

#include <new>

namespace framelane {

Dictionary::Dictionary(const AvOptions& options) {
  for (const AvOption& option : options) set(option.key, option.value);
}

Dictionary Dictionary::copy() const {
  Dictionary result;
  if (av_dict_copy(&result.dict_, dict_, 0) < 0) throw std::bad_alloc();
  return result;
}

void Dictionary::set(const std::string& key, const std::string& value) {
  if (av_dict_set(&dict_, key.c_str(), value.c_str(), 0) < 0) throw std::bad_alloc();
}

void Dictionary::set_default(const std::string& key, const std::string& value) {
  if (av_dict_set(&dict_, key.c_str(), value.c_str(), AV_DICT_DONT_OVERWRITE) < 0) {
    throw std::bad_alloc();
  }
}

std::optional<std::string> Dictionary::unconsumed(const AvOptions& options) const {
  for (const AvOption& option : options) {
    if (!option.inherited && av_dict_get(dict_, option.key.c_str(), nullptr, 0) != nullptr) {
      return option.key;
    }
  }
  return std::nullopt;
}

}  // namespace framelane
