#include "pipeline/output/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/file_pattern.hpp"
#include "pipeline/output/io_error.hpp"
#include "pipeline/output/place_lock.hpp"
#include "pipeline/output/playable.hpp"
#include "pipeline/output/rename_to_free.hpp"
#include "pipeline/output/whole_end.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

/// An empty folder may be removed as soon as it is made, and while that lasts it can still be seen,
/// but takes no file.
constexpr int kFolderTries = 100;

[[noreturn]] void refuse(const std::string& name, const char* what) {
  throw IoError(IoFault::kIo,
                "cannot write " + redact(name) + ": it " + what + "; -y overwrites it");
}

void make_folder_of(const std::string& file) {
  const fs::path parent = fs::path(file).parent_path();
  if (parent.empty()) return;
  std::error_code error;
  fs::create_directories(parent, error);
  // Retention removes folders that it finds empty: one of these may have been.
  if (error == std::errc::no_such_file_or_directory) fs::create_directories(parent, error);
  if (error) throw_cannot("create directory", parent.string(), error.value());
}

/// After that a power cut does not undo a rename in `folder`. Not every file system can do it
/// (FUSE, CIFS). Failures are ignored: if the rename is lost, the next start renames the .part
/// again.
void sync_folder(const fs::path& folder) {
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
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
  make_folder_of(name);
  for (int number = std::max(first_number, 1);; ++number) {
    const std::string final_name = numbered_name(name, number);
    const std::string part = final_name + std::string(kPartSuffix);
    if (existing != Existing::kReplace && access(final_name.c_str(), F_OK) == 0) {
      if (existing == Existing::kRefuse) refuse(final_name, "exists");
      continue;
    }
    const int exclusive = existing == Existing::kNumber ? O_EXCL : 0;
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | exclusive;
    int fd = open(part.c_str(), flags, 0666);
    for (int again = 0; again < kFolderTries && fd < 0 && errno == ENOENT; ++again) {
      make_folder_of(name);  // it was removed again
      fd = open(part.c_str(), flags, 0666);
    }
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) throw_cannot("create", part, errno);
    PartFile file(name, number, existing, fd);
    // Where no lock can be had (NFS without lockd), a recovery may take this file for one that an
    // earlier run left. That is no reason not to write it.
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && (existing == Existing::kNumber || is_at(fd, part))) return file;
    // PartFileRecovery came between open() and flock(), and has it now.
    if (existing == Existing::kNumber) continue;
    throw IoError(IoFault::kIo, "cannot write " + redact(final_name) +
                                    ": another process is writing it; wait for that, or write to "
                                    "another name");
  }
}

std::optional<PartFile> PartFile::adopt(const std::string& part) {
  const int fd = open(part.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return {};
  if (fd < 0) throw_cannot("open", part, errno);
  PartFile file(part.substr(0, part.size() - kPartSuffix.size()), 1, Existing::kNumber, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return {};
  return file;
}

std::string PartFile::complete(bool durable) {
  if (durable && fsync(fd_) != 0) throw_cannot("write", part_, errno);
  std::string final_name = rename_to_name();
  if (durable) sync_folder(fs::path(final_name).parent_path());
  return final_name;
}

std::string PartFile::rename_to_name() {
  if (existing_ == Existing::kReplace) {
    std::string final_name = numbered_name(name_, number_);
    if (std::rename(part_.c_str(), final_name.c_str()) != 0) throw_cannot("rename", part_, errno);
    return final_name;
  }
  for (int number = number_;; ++number) {
    std::string final_name = numbered_name(name_, number);
    if (rename_to_free(part_, final_name)) return final_name;
    if (existing_ == Existing::kRefuse) refuse(final_name, "has appeared meanwhile");
  }
}

std::optional<std::uint64_t> PartFile::cut_back(const CutPoints& points) {
  struct stat file {};
  if (fstat(fd_, &file) != 0) return std::nullopt;
  const auto end = points.last_in(file.st_size);
  if (!end) return std::nullopt;
  if (end->position != file.st_size) cut_at(end->position);
  return end->packets;
}

void PartFile::cut_at(std::int64_t end) {
  struct stat file {};
  const bool has_time = fstat(fd_, &file) == 0;
  if (ftruncate(fd_, end) != 0) {
    log::warn("{}: cannot cut off what is half at its end: {}", redact(part_),
              std::generic_category().message(errno));
  } else if (has_time) {
    // When it was written last tells of some recordings when they end.
    const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, file.st_mtim};
    futimens(fd_, times.data());
  }
}

PartFile::Salvage PartFile::salvage(const Container& container, const std::stop_token& stop,
                                    std::chrono::steady_clock::time_point deadline) {
  try {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    switch (contents_of(part_, container, stop, left)) {
      case Contents::kPlayable:
        if (std::ifstream file(part_, std::ios::binary);
            const auto end = whole_end(file, container, stop, deadline)) {
          cut_at(*end);
        }
        return {Fate::kNamed, complete(false)};
      case Contents::kDamaged:
        return {Fate::kDamaged};
      case Contents::kNothing:
        break;
    }
    if (unlink(part_.c_str()) != 0 && errno != ENOENT) throw_cannot("remove", part_, errno);
    return {Fate::kRemoved};
  } catch (const std::exception& error) {
    return {Fate::kStays, error.what()};
  }
}

}  // namespace framelane
