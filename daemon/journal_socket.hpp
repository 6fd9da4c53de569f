#pragma once

#include <string>
#include <string_view>

#include "daemon/socket_address.hpp"

namespace framelane {

/// journald's socket for records with fields. One thread at a time.
///
/// Not sd_journal_sendv(3): it waits for as long as journald does not read, and reports success
/// where there is no journald.
class JournalSocket {
 public:
  explicit JournalSocket(const std::string& path = "/run/systemd/journal/socket");

  /// Hands over one record of the "Journal Native Protocol". False if journald does not take it at
  /// once. Never blocks.
  bool send(std::string_view record);

 private:
  const UnixAddress address_;
  FileDescriptor socket_;  // opened when it is first needed
};

}  // namespace framelane
