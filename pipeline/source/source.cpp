#include "pipeline/source/source.hpp"

#include "pipeline/source/raw_source.hpp"
#include "pipeline/source/shm_source.hpp"
#include "pipeline/source/stream_source.hpp"

namespace framelane {

std::unique_ptr<Source> open_source(const InputOptions& input, const SourceContext& context) {
  if (input.raw && shm_socket(input.url)) return std::make_unique<ShmSource>(input, context);
  if (input.raw) return std::make_unique<RawSource>(input, context);
  return std::make_unique<StreamSource>(input, context);
}

}  // namespace framelane
