#include "pipeline/output/playlist_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/io_error.hpp"
#include "pipeline/output/rename_to_free.hpp"
#include "pipeline/output/replace_file.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

void take(std::optional<PlaceLock>& lock, const fs::path& path) {
  if (lock && !lock->holds()) lock.reset();  // the folder was removed meanwhile
  if (!lock) lock.emplace(path.string());
}

/// A segment ends at the first keyframe after hls_time. If a playlist promises that all of them
/// begin at keyframes, it has to allow for the longest that this can give.
seconds least_target(const OutputOptions& output, const HlsOptions& hls) {
  if (!hls.independent_segments) return std::chrono::ceil<seconds>(hls.time);
  if (!output.gop) {
    throw FeedError(FeedFault::kConfiguration,
                    "output " + output.name + ": option hls_flags " + std::string(kNeedsGop));
  }
  return std::chrono::ceil<seconds>(RenditionGroup::slot_length(hls.time, *output.gop));
}

/// Players compare the renditions of a picture by its time, and change them at any segment.
HlsOptions hls_options_of(const OutputOptions& output, bool rendition) {
  HlsOptions hls = read_hls_options(output.name, output.options);
  hls.independent_segments |= rendition;
  hls.program_date_time |= rendition;
  return hls;
}

}  // namespace

PlaylistWriter::PlaylistWriter(const OutputOptions& options, const std::string& path,
                               const std::string& subject, RenditionGroup* renditions,
                               std::size_t rendition)
    : subject_(subject),
      existing_(options.existing),
      hls_(hls_options_of(options, renditions != nullptr)),
      least_target_(least_target(options, hls_)),
      gop_(options.gop.value_or(microseconds(0))),
      path_(path),
      files_(path_, hls_.segment_filename),
      renditions_(renditions),
      rendition_(rendition),
      deletions_(subject) {
  if (const auto problem = files_.why_not_found(hls_.base_url)) {
    throw FeedError(FeedFault::kConfiguration,
                    "output " + options.name + ": " + redact(path_.string()) + ' ' + *problem);
  }
}

PlaylistWriter::~PlaylistWriter() {
  if (renditions_ != nullptr) renditions_->leave(rendition_);
}

std::string PlaylistWriter::temporary(const fs::path& file) {
  return file.string().append(kTemporary);
}

std::string PlaylistWriter::uri_of(const fs::path& file) const {
  return hls_.base_url + files_.relative(file);
}

std::string_view PlaylistWriter::name_in(const std::string& uri) const {
  std::string_view name = uri;
  if (name.starts_with(hls_.base_url)) name.remove_prefix(hls_.base_url.size());
  return name;
}

void PlaylistWriter::complete(const fs::path& file) const {
  if (existing_ != Existing::kRefuse) return rename_over(temporary(file), file);
  if (!rename_to_free(temporary(file), file.string())) refuse(file);
}

void PlaylistWriter::refuse(const fs::path& file) const {
  throw IoError(IoFault::kIo,
                "cannot write " + redact(path_.string()) + ": " + redact(file.string()) +
                    " exists, which has the name of one of its files; -y removes such files");
}

void PlaylistWriter::begin_stretch() {
  open();
  if (list_) drop_lost();
  new_stretch_ = true;
  init_number_ = next_number();
}

void PlaylistWriter::open() {
  if (renditions_ != nullptr) renditions_->open(rendition_);
  std::error_code error;
  if (!fs::create_directories(files_.folder(), error) && error) {
    throw_cannot("create directory", files_.folder().string(), error.value());
  }
  if (fs::is_directory(path_, error)) {
    throw IoError(IoFault::kIo,
                  "cannot write " + redact(path_.string()) +
                      ": it is a folder; remove it, or give the playlist another name");
  }
  take(lock_, path_);
  if (!hls_.segment_filename.empty()) take(segments_lock_, hls_.segment_filename);
  if (!begun_) {
    read_playlist();
    remove_leftovers();
    begun_ = true;
  }
}

bool PlaylistWriter::begin_rendition(std::int64_t slot) {
  const auto number = renditions_->begin(rendition_, slot, next_in_list());
  number_ = number.value_or(0);
  return number.has_value();
}

system_clock::time_point PlaylistWriter::time_of_segment(system_clock::time_point taken) const {
  return renditions_ == nullptr ? taken : renditions_->time_of(number_, taken);
}

void PlaylistWriter::drop_lost() {
  const auto& segments = list_->segments();
  std::size_t lost = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].gap) continue;  // it never was there
    std::error_code error;
    if (!fs::exists(files_.folder() / name_in(segments[i].uri), error) && !error) lost = i + 1;
  }
  retire_first(lost);
}

void PlaylistWriter::read_playlist() {
  std::error_code error;
  if (existing_ == Existing::kRefuse && fs::exists(path_, error)) {
    throw IoError(IoFault::kIo, "cannot write " + redact(path_.string()) +
                                    ": it has appeared meanwhile; -y overwrites it");
  }
  if (existing_ != Existing::kNumber) return;
  errno = 0;
  std::ifstream file(path_, std::ios::binary);
  if (!file && errno == ENOENT) return;
  std::ostringstream text;
  if (file) text << file.rdbuf();
  // One that cannot be read now is no reason to begin anew with numbers that players have seen.
  if (!file || text.bad()) throw_cannot("read", path_.string(), errno);
  list_ = MediaPlaylist::parse(text.str());
  if (!list_) {
    log::warn("{} is no playlist that can be continued; it begins anew", redact(path_.string()));
    return;
  }
  MediaPlaylist::Head head = new_head();
  if (list_->ended()) {
    retire_first(list_->segments().size());  // no player waits for more: only the numbers go on
  } else {
    const MediaPlaylist::Head& old = list_->head();
    // The options may have changed since.
    head.target_duration = std::max(old.target_duration, least_target_);
    head.independent_segments &= old.independent_segments;
    // No tag takes an EXT-X-MAP back (RFC 8216, 4.3.2.5): MPEG-TS cannot follow MP4.
    if (old.init_segments && !hls_.fmp4) retire_first(list_->segments().size());
  }
  list_->set_head(head);
}

MediaPlaylist::Head PlaylistWriter::new_head() const {
  return {.independent_segments = hls_.independent_segments,
          .init_segments = hls_.fmp4,
          .event = hls_.event};
}

void PlaylistWriter::retire_first(std::size_t count) { retire(list_->drop_first(count)); }

void PlaylistWriter::retire(std::vector<PlaylistSegment> segments) {
  if (!hls_.deletes) return;
  std::ranges::move(segments, std::back_inserter(unlisted_));
}

void PlaylistWriter::remove_leftovers() {
  if (!list_) first_number_ = hls_.start_number.value_or(0);
  if (!hls_.segment_filename.empty()) return;
  std::set<std::string> listed;
  const auto note = [&listed](const PlaylistSegment& segment) {
    listed.insert(fs::path(segment.uri).filename().string());
    listed.insert(fs::path(segment.init).filename().string());
  };
  if (list_) std::ranges::for_each(list_->segments(), note);
  std::ranges::for_each(unlisted_, note);
  const bool continues = existing_ == Existing::kNumber;
  std::error_code error;
  for (fs::directory_iterator it(files_.folder(), error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string found = it->path().filename().string();
    std::string_view name = found;
    if (name.ends_with(kTemporary)) name.remove_suffix(kTemporary.size());
    if (!files_.find(name) || listed.contains(found)) continue;
    const auto number = files_.segment_number(name);
    if (number && continues && !list_) first_number_ = std::max(first_number_, *number + 1);
    if (existing_ == Existing::kRefuse) {
      if (name == found) refuse(it->path());
      continue;
    }
    if (!continues || hls_.deletes) deletions_.remove(it->path().string());
  }
  if (error) throw_cannot("read", files_.folder().string(), error.value());
}

std::optional<microseconds> PlaylistWriter::longest_segment() const {
  if (list_ && list_->longest_segment()) return list_->longest_segment();
  if (!hls_.independent_segments) return {};
  return MediaPlaylist::longest_segment(least_target_);
}

void PlaylistWriter::add_init() {
  const fs::path file = files_.header(init_number_);
  complete(file);
  init_ = uri_of(file);
}

void PlaylistWriter::add_segment(microseconds duration, bool gap,
                                 std::chrono::system_clock::time_point time) {
  const fs::path file = segment_file();
  complete(file);
  if (!list_) {
    list_.emplace(new_head(), first_number_);
    if (renditions_) list_->go_on_at(first_number_, renditions_->section_of(first_number_));
  }
  if (!list_->longest_segment()) {  // it is the first
    MediaPlaylist::Head head = list_->head();
    head.target_duration = std::max(least_target_, MediaPlaylist::target_for(duration));
    list_->set_head(head);
  }
  bool discontinuity = std::exchange(new_stretch_, false) || gap;
  if (renditions_ != nullptr) {
    catch_up_with_renditions();
    discontinuity = renditions_->section_of(number_) > list_->section();
  }
  PlaylistSegment segment{.uri = uri_of(file),
                          .duration = duration,
                          .discontinuity = discontinuity,
                          .init = hls_.fmp4 ? init_ : std::string()};
  if (hls_.program_date_time) segment.time = time;
  retire(list_->add(std::move(segment), hls_.list_size));
  write(false);
  if (renditions_ != nullptr) {
    std::error_code error;  // a file that has been removed meanwhile has no size
    const std::uintmax_t bytes = fs::file_size(file, error);
    renditions_->published(rendition_, number_++, error ? 0 : static_cast<std::int64_t>(bytes),
                           duration, list_->head().target_duration);
  }
  deletions_.retry();
  remove_unlisted();
}

bool PlaylistWriter::discard_incomplete() {
  std::error_code ignored;  // what stays is written over, or found at the next start
  const bool segment = fs::remove(segment_path(), ignored);
  const bool header = hls_.fmp4 && fs::remove(init_path(), ignored);
  return segment || header;
}

void PlaylistWriter::skip_segment() {
  std::error_code ignored;  // the next one that begins is written over it
  fs::remove(segment_path(), ignored);
  ++number_;
}

void PlaylistWriter::skip_segments(std::uint64_t count) {
  // A source may pause now and then.
  constexpr int kOften = 3;
  constexpr std::uint64_t kOfSegments = 60;
  if (skips_ < kOften && number_ - first_skipped_ >= kOfSegments) {
    first_skipped_ = number_;
    skips_ = 0;
    skipped_ = 0;
  }
  number_ += count;
  skipped_ += count;
  if (++skips_ != kOften) return;
  const double segment = std::chrono::duration<double>(renditions_->segment()).count();
  const auto longer = renditions_->segment() * static_cast<std::int64_t>(count + 2);
  log::warn(
      "{}: no picture came for {} of the last {} segments of {:.1f} s, which are gaps in the "
      "playlist; if the source sends so few pictures, set options: {{hls_time: {}}}",
      subject_, skipped_, number_ - first_skipped_, segment,
      std::chrono::ceil<seconds>(longer).count());
}

void PlaylistWriter::catch_up_with_renditions() {
  /// More is missing than any player waits for.
  constexpr std::uint64_t kMostMissing = 1000;
  const std::uint64_t next = list_->next_number();
  const std::uint64_t section = renditions_->section_of(number_);
  const bool follows = number_ >= next && number_ - next <= kMostMissing;
  for (std::uint64_t missing = next; follows && missing < number_; ++missing) {
    const auto& segments = list_->segments();
    PlaylistSegment gap{.uri = uri_of(files_.segment(missing, hls_.fmp4)),
                        .duration = renditions_->segment(),
                        .discontinuity = renditions_->section_of(missing) > list_->section(),
                        .init = segments.empty() ? init_ : segments.back().init,
                        .gap = true};
    retire(list_->add(std::move(gap), hls_.list_size));
  }
  const bool same_section = section == list_->section() || section == list_->section() + 1;
  if (!follows || !same_section) retire(list_->go_on_at(number_, section));
}

void PlaylistWriter::end() {
  // An ended playlist stays as it is if no segment followed.
  if (list_ && list_->longest_segment()) write(true);
}

void PlaylistWriter::write(bool ended) { replace_file(path_, list_->text(ended)); }

void PlaylistWriter::remove_unlisted() {
  while (hls_.deletes && unlisted_.size() > hls_.keeps_unlisted) {
    const PlaylistSegment gone = std::move(unlisted_.front());
    unlisted_.pop_front();
    remove(gone.uri);
    const auto uses = [&](const PlaylistSegment& other) { return other.init == gone.init; };
    if (!gone.init.empty() && std::ranges::none_of(unlisted_, uses) &&
        std::ranges::none_of(list_->segments(), uses)) {
      remove(gone.init);
    }
  }
}

void PlaylistWriter::remove(const std::string& uri) {
  // Others may have written the playlist that was continued: what it names may be anything.
  const std::optional<fs::path> file = files_.find(name_in(uri));
  if (file) deletions_.remove(file->string());
}

}  // namespace framelane
