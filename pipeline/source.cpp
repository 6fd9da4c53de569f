#include "pipeline/source.hpp"

#include "pipeline/raw_source.hpp"
#include "pipeline/stream_source.hpp"

namespace framelane {

std::unique_ptr<Source> open_source(const InputOptions& input, const SourceContext& context) {
  if (input.raw) return std::make_unique<RawSource>(input, context);
  return std::make_unique<StreamSource>(input, context);
}

}  // namespace framelane
