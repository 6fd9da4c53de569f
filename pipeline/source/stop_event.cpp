#include "pipeline/source/stop_event.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "pipeline/source/source_failure.hpp"

namespace framelane {
namespace {

int make_event() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw io_error(errno, "cannot create an eventfd");
  return fd;
}

}  // namespace

StopEvent::StopEvent(const std::stop_token& stop)
    : event_(make_event()), on_stop_(stop, [fd = event_.get()] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
      }) {}

}  // namespace framelane
