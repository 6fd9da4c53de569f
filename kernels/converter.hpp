#pragma once

#include <cstdint>
#include <memory>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

/// How results are written. kStreaming bypasses the caches if rows are aligned to 64 bytes: for
/// frames that are read so late that the caches would not have them any more. The bytes are the
/// same. So far only conversions from full-range RGB to planes or NV12 make a difference.
enum class Stores : std::uint8_t { kCached, kStreaming };

/// A conversion prepared for the CPU: constants are computed and the fastest exact implementation
/// is chosen once, and running it allocates nothing. Immutable: any number of threads may call
/// `run` at once, on different rows or frames.
class Converter {
 public:
  /// Requires !why_unsupported(conversion).
  static std::unique_ptr<const Converter> make(const Conversion& conversion,
                                               Stores stores = Stores::kCached);
  virtual ~Converter() = default;

  /// Converts rows [row_begin, row_end) of the target's luma, and the chroma rows that belong to
  /// them. For targets with halved chroma height, row_begin is even and row_end is even or the
  /// height. Reads as many neighbouring source rows as the siting needs; where the size changes,
  /// those that the rows are made of. Returns when the work is done.
  virtual void run(const ConstImageView& source, const ImageView& target, int row_begin,
                   int row_end) const = 0;
  /// For logs and benchmarks: the implementation's name, such as "reference".
  virtual const char* name() const = 0;

  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

 protected:
  Converter() = default;
};

}  // namespace framelane
