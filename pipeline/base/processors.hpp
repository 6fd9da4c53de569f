#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace framelane {

/// How many processors this process can keep busy: those it may run on, or fewer if one of its
/// cgroups has a quota of processor time (a container's --cpus, systemd's CPUQuota=). At least 1.
/// Read once, at the first call. Any thread.
int processors();

/// Bytes of memory that this process may use: all of the machine's, or fewer if one of its cgroups
/// has a limit (a container's --memory, systemd's MemoryMax=).
std::size_t machine_memory();

/// How many threads a decoder or an encoder gets, unless its options say otherwise; 0 lets the
/// codec choose. Few for a live feed: with frame threads, each one delays the video by a frame and
/// holds a frame's memory.
int codec_threads(bool live);

/// False if the process cannot start as many threads as a codec may want.
bool can_start_threads();

/// The quota in a cgroup's cpu.max, in whole processors, rounded up; nothing if there is none.
std::optional<int> processors_of_quota(std::string_view cpu_max);
/// The limit in a cgroup's memory.max, in bytes; nothing if there is none.
std::optional<std::size_t> bytes_of_limit(std::string_view memory_max);

}  // namespace framelane
