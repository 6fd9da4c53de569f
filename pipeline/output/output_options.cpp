#include "pipeline/output/output_options.hpp"

namespace framelane {

bool can_change_in_place(const OutputOptions& a, const OutputOptions& b) {
  OutputOptions changed = a;
  changed.reconnect = b.reconnect;
  changed.queue = b.queue;
  if (a.segment && b.segment) {
    changed.segment = b.segment;
    changed.segment->length = a.segment->length;
  }
  return changed == b;
}

}  // namespace framelane
