// Makes spdlog's registry before there are threads, as the program's set_up_logging does. In a
// shard of tests two threads may write the first message at once: libspdlog, which is not
// instrumented, makes the registry for one of them, and ThreadSanitizer does not see that the other
// one waits.
#include <spdlog/spdlog.h>

namespace {

[[maybe_unused]] const bool g_made = (spdlog::default_logger(), true);

}  // namespace
