#include "pipeline/part_file.hpp"

extern "C" {
#include <libavformat/avformat.h>
}
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>
#include <tuple>
#include <utility>

#include "pipeline/interrupt.hpp"
#include "pipeline/log.hpp"
#include "pipeline/muxer.hpp"
#include "pipeline/redact.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

/// A disk may have to wake up; a demuxer that probing picks may follow a playlist for minutes.
constexpr std::chrono::seconds kLongestLook{5};

[[noreturn]] void fail(const std::string& doing, const std::string& path, int error) {
  throw_io_error(AVERROR(error), "cannot " + doing + " " + redact(path) + ": " +
                                     std::error_code(error, std::generic_category()).message());
}

[[noreturn]] void refuse(const std::string& name, const char* what) {
  throw IoError(IoFault::kIo,
                "cannot write " + redact(name) + ": it " + what + "; -y overwrites it");
}

/// Whether this is the open file's name: whoever had locked it may have renamed it before.
bool is_at(int fd, const std::string& path) {
  struct stat file {};
  struct stat named {};
  return fstat(fd, &file) == 0 && stat(path.c_str(), &named) == 0 && file.st_dev == named.st_dev &&
         file.st_ino == named.st_ino;
}

/// So that a power cut does not take a name back. Not every file system can (FUSE, CIFS); the name
/// stands already, and the next start gives it again to a .part.
void sync_folder(const fs::path& folder) {
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

/// Renames without replacing; false when `to` exists.
bool rename_to_free(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS) fail("rename", from, errno);
  // Not every file system can (NFS, some FUSE): a hard link does not replace
  // either.
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return true;
  }
  if (errno == EEXIST) return false;
  // Nor can every one link (FAT): here alone a file that appears in between
  // would be lost.
  if (access(to.c_str(), F_OK) == 0) return false;
  if (std::rename(from.c_str(), to.c_str()) != 0) fail("rename", from, errno);
  return true;
}

}  // namespace

PartFile::PartFile(std::string name, int number, Existing existing, int fd)
    : name_(std::move(name)),
      number_(number),
      existing_(existing),
      part_(numbered_name(name_, number).append(kPartSuffix)),
      fd_(fd) {}

PartFile::PartFile(PartFile&& other) noexcept
    : name_(std::move(other.name_)),
      number_(other.number_),
      existing_(other.existing_),
      part_(std::move(other.part_)),
      fd_(std::exchange(other.fd_, -1)) {}

PartFile::~PartFile() {
  if (fd_ >= 0) close(fd_);
}

PartFile PartFile::create(const std::string& name, int first_number, Existing existing) {
  const fs::path parent = fs::path(name).parent_path();
  std::error_code error;
  if (!parent.empty() && !fs::create_directories(parent, error) && error) {
    fail("create directory", parent.string(), error.value());
  }
  for (int number = std::max(first_number, 1);; ++number) {
    const std::string final_name = numbered_name(name, number);
    const std::string part = final_name + std::string(kPartSuffix);
    if (existing != Existing::kReplace && access(final_name.c_str(), F_OK) == 0) {
      if (existing == Existing::kRefuse) refuse(final_name, "exists");
      continue;
    }
    const int exclusive = existing == Existing::kNumber ? O_EXCL : 0;
    const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | exclusive, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) fail("create", part, errno);
    PartFile file(name, number, existing, fd);
    // No lock at all (NFS without lockd) only means that a leftover cannot be told from a file at
    // work.
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && (existing == Existing::kNumber || is_at(fd, part))) return file;
    // Whoever recovers leftovers at this moment has taken it for one.
    if (existing == Existing::kNumber) continue;
    throw IoError(IoFault::kIo, "cannot write " + redact(final_name) +
                                    ": another process is writing it; wait for that, or write to "
                                    "another name");
  }
}

std::optional<PartFile> PartFile::adopt(const std::string& part) {
  const int fd = open(part.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return {};
  PartFile file(part.substr(0, part.size() - kPartSuffix.size()), 1, Existing::kNumber, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return {};
  return file;
}

std::string PartFile::complete(bool durable) {
  if (durable && fsync(fd_) != 0) fail("write", part_, errno);
  const std::string final_name = give_name();
  if (durable) sync_folder(fs::path(final_name).parent_path());
  return final_name;
}

std::string PartFile::give_name() {
  if (existing_ == Existing::kReplace) {
    std::string final_name = numbered_name(name_, number_);
    if (std::rename(part_.c_str(), final_name.c_str()) != 0) fail("rename", part_, errno);
    return final_name;
  }
  for (int number = number_;; ++number) {
    std::string final_name = numbered_name(name_, number);
    if (rename_to_free(part_, final_name)) return final_name;
    if (existing_ == Existing::kRefuse) refuse(final_name, "has appeared meanwhile");
  }
}

std::string PartFile::salvage(const Container& container, const std::stop_token& stop) {
  try {
    if (is_playable(part_, container, stop)) return complete(false);
    unlink(part_.c_str());
  } catch (const std::exception& error) {
    log::warn("{} stays as it is: {}", redact(part_), error.what());
  }
  return {};
}

bool is_playable(const std::string& path, const Container& container, const std::stop_token& stop) {
  std::error_code error;
  if (fs::file_size(path, error) == 0 || error) return false;
  // Without a header there is nothing a demuxer could find, and nothing that
  // could be missing.
  if (container.muxer && container.muxer->video_codec == AV_CODEC_ID_RAWVIDEO &&
      (container.muxer->flags & AVFMT_NOTIMESTAMPS)) {
    return true;
  }
  AVFormatContext* context = avformat_alloc_context();
  if (!context) throw std::bad_alloc();
  Interrupt interrupt(stop);
  const CallScope call(interrupt, kLongestLook);
  context->interrupt_callback = interrupt.callback();
  // Some have none of their muxer's name, and are probed.
  const AVInputFormat* demuxer =
      container.muxer ? av_find_input_format(container.muxer->name) : nullptr;
  const std::string url = "file:" + path;
  Dictionary options;
  options.set("protocol_whitelist", "file");  // it may name others to be read
  bool found = false;
  if (avformat_open_input(&context, url.c_str(), demuxer, options.ptr()) >= 0) {
    const PacketPtr packet = make_packet();
    found = av_read_frame(context, packet.get()) >= 0 && packet->size > 0;
  }
  avformat_close_input(&context);
  if (!found && interrupt.cause() != Interrupt::Cause::kNone) {
    throw IoError(IoFault::kTimeout, "could not tell in time whether there is anything to play");
  }
  return found;
}

Undeletable enforce_retention(const FilePattern& pattern, const SegmentOptions& keep,
                              const std::function<void()>& working) {
  Undeletable undeletable;
  if (!keep.keep_age && !keep.keep_bytes) return undeletable;
  struct File {
    fs::file_time_type time;
    std::uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uintmax_t total = 0;
  for (const fs::path& path : pattern.complete_files()) {
    working();
    std::error_code error;
    const auto time = fs::last_write_time(path, error);
    const auto bytes = error ? 0 : fs::file_size(path, error);
    if (error) continue;  // gone meanwhile
    files.push_back({time, bytes, path});
    total += bytes;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.time, a.path) < std::tie(b.time, b.path);
  });
  if (!files.empty()) files.pop_back();

  const auto now = fs::file_time_type::clock::now();
  for (const File& file : files) {
    const bool too_old = keep.keep_age && now - file.time > *keep.keep_age;
    const bool too_much =
        keep.keep_bytes &&
        total > static_cast<std::uintmax_t>(std::max<std::int64_t>(*keep.keep_bytes, 0));
    if (!too_old && !too_much) break;
    working();
    std::error_code error;
    fs::remove(file.path, error);
    if (error) {
      if (undeletable.files++ == 0) {
        undeletable.first = redact(file.path.string()) + ": " + error.message();
      }
      continue;
    }
    total -= file.bytes;
    pattern.remove_empty_directories(file.path);
  }
  return undeletable;
}

}  // namespace framelane
