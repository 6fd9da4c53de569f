#include "pipeline/av/optional_libraries.hpp"

extern "C" {
#include <libavformat/version.h>
}

#include <dlfcn.h>

#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

void load_avdevice() {
  // FFmpeg raises the major versions of libavformat and libavdevice together.
  const std::string major = std::to_string(LIBAVFORMAT_VERSION_MAJOR);
  const std::string library = "libavdevice.so." + major;
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = handle != nullptr ? ::dlsym(handle, "avdevice_register_all") : nullptr;
  if (symbol == nullptr) {
    throw FeedError(FeedFault::kConfiguration, "test sources and capture devices need " + library +
                                                   ", which cannot be loaded; install the package "
                                                   "libavdevice" +
                                                   major);
  }
  reinterpret_cast<void (*)()>(symbol)();
}

}  // namespace

void require_avdevice() {
  // A failed call leaves `loaded` uninitialized, so the next one tries again: the package may have
  // been installed meanwhile.
  [[maybe_unused]] static const bool loaded = (load_avdevice(), true);
}

}  // namespace framelane
