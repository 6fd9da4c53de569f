#include "pipeline/feed/feed_options.hpp"

namespace framelane {

bool blocks_when_full(OnFull on_full, bool live) {
  switch (on_full) {
    case OnFull::kBlock:
      return true;
    case OnFull::kDrop:
      return false;
    case OnFull::kAuto:
      break;
  }
  return !live;
}

}  // namespace framelane
