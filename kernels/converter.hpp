#pragma once

#include <cstdint>
#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// How results are written. kStreaming goes past the caches where rows are aligned to 64 bytes: for
/// frames that nobody reads before the caches have forgotten them. Only speed differs, and so far
/// only that of four-byte RGB to 4:2:0.
enum class Stores : std::uint8_t { kCached, kStreaming };

/// A conversion prepared for the CPU: constants worked out and the fastest exact implementation
/// chosen once, so that running it allocates nothing. Immutable after construction: any number of
/// threads may call `run` at once, on different frames.
class Converter {
 public:
  /// Requires !why_unsupported(conversion).
  static std::unique_ptr<const Converter> make(const Conversion& conversion,
                                               Stores stores = Stores::kCached);
  virtual ~Converter() = default;

  /// Converts rows [row_begin, row_end) of the target's luma together with the chroma rows they
  /// carry. row_begin is even for targets with halved chroma height; row_end is even or the
  /// height. Reads neighbouring source rows as the siting demands. Blocks for the work's duration.
  virtual void run(const ConstImageView& source, const ImageView& target, int row_begin,
                   int row_end) const = 0;
  /// "reference" or the name of the fast path, for logs and benchmarks.
  virtual const char* name() const = 0;

  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

 protected:
  Converter() = default;
};

}  // namespace framelane
