#include "pipeline/base/failure.hpp"

#include <cerrno>
#include <system_error>

namespace framelane {

std::string_view fault_code(IoFault fault) { return kIoFaultNames[index_of(fault)]; }

std::string_view fault_code(RetentionFault fault) { return kRetentionFaultNames[index_of(fault)]; }

std::string_view fault_code(FeedFault fault) {
  if (index_of(fault) < kFeedFaultNames.size()) return kFeedFaultNames[index_of(fault)];
  return fault == FeedFault::kConfiguration ? "configuration" : "source";
}

std::string_view fault_code(const std::exception& error) {
  if (const auto* io = dynamic_cast<const IoError*>(&error)) return fault_code(io->code());
  const auto* feed = dynamic_cast<const FeedError*>(&error);
  return feed != nullptr ? fault_code(feed->code()) : std::string_view();
}

IoFault io_fault_from_errno(int error) {
  switch (error) {
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
      return IoFault::kRefused;
    case ETIMEDOUT:
      return IoFault::kTimeout;
    default:
      return IoFault::kIo;
  }
}

std::string shortage_text(const std::string& cause) {
  return "threads or memory are short (" + cause + "): " + kShortageRemedy;
}

std::optional<std::string> descriptor_shortage_text(int error) {
  if (error != EMFILE && error != ENFILE) return std::nullopt;
  return "file descriptors are short (" + std::generic_category().message(error) + "): raise " +
         (error == EMFILE ? "LimitNOFILE= of the service, or ulimit -n" : "fs.file-max by sysctl");
}

}  // namespace framelane
