#include "pipeline/source/unpack_check.hpp"

#include <dlfcn.h>

#include <utility>

namespace framelane {
namespace {

thread_local const UnpackCheck::Refused* t_refused = nullptr;

bool refuses() {
  if (t_refused == nullptr || !*t_refused) return false;
  (*t_refused)();
  return true;
}

}  // namespace

UnpackCheck::UnpackCheck(Refused refused)
    : refused_(std::move(refused)), outer_(std::exchange(t_refused, &refused_)) {}

UnpackCheck::~UnpackCheck() { t_refused = outer_; }

}  // namespace framelane

/// Stands in front of zlib's.
extern "C" int uncompress(unsigned char* to, unsigned long* to_size, const unsigned char* from,
                          unsigned long from_size) {
  constexpr int kDataError = -3;  // Z_DATA_ERROR
  if (framelane::refuses()) return kDataError;
  static const auto next = reinterpret_cast<decltype(&uncompress)>(dlsym(RTLD_NEXT, "uncompress"));
  return next(to, to_size, from, from_size);
}
