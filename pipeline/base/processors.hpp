#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace framelane {

/// How many processors this process can keep busy: those it may run on, or fewer where a cgroup
/// that it is in has a quota of processor time (a container's --cpus, systemd's CPUQuota=). Read
/// once.
int processors();

/// Bytes of memory that this process may have: the machine's, or fewer where a cgroup that it is in
/// has a limit (a container's --memory, systemd's MemoryMax=).
std::size_t machine_memory();

/// The threads that a decoder or an encoder gets unless its options say; 0 leaves it to the codec.
/// Few for a live feed: where threads work on a frame each, every one of them is a frame of delay
/// and of memory.
int codec_threads(bool live);

/// What the content of a cgroup's cpu.max allows, in whole processors, rounded up; nothing when
/// there is no limit.
std::optional<int> processors_of_quota(std::string_view cpu_max);
/// What the content of a cgroup's memory.max allows, in bytes; nothing when there is no limit.
std::optional<std::size_t> bytes_of_limit(std::string_view memory_max);

}  // namespace framelane
