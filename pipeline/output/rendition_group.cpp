#include "pipeline/output/rendition_group.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/io_error.hpp"
#include "pipeline/output/media_playlist.hpp"
#include "pipeline/output/picture_time.hpp"
#include "pipeline/output/replace_file.hpp"

namespace framelane {
namespace fs = std::filesystem;
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::system_clock;

/// Times are rounded to time bases.
constexpr microseconds kRounding{1000};
/// The first frame of a slot may come so long after the slot's beginning, or two frames.
constexpr microseconds kFirstFrame = milliseconds(100);
/// When one rendition has so many segments, the master playlist no longer waits for another's
/// first.
constexpr std::uint64_t kEnoughSegments = 3;
/// Sound that is so many segments behind has stopped: players would wait for it.
constexpr std::uint64_t kMostBehind = 3;
/// Nobody asks for what is so many segments or sections old.
constexpr std::size_t kMostRemembered = 4096;

bool says_the_same(const HlsVariant& a, const HlsVariant& b) {
  return a.uri == b.uri && a.codecs == b.codecs && a.width == b.width && a.height == b.height &&
         av_cmp_q(a.frame_rate, b.frame_rate) == 0 && a.sound_uri == b.sound_uri;
}

/// The variant with sound from a playlist of its own.
HlsVariant with_sound(HlsVariant variant, const HlsVariant& sound) {
  // A list that leaves one out would be wrong.
  const bool known = !variant.codecs.empty() && !sound.codecs.empty();
  variant.codecs = known ? variant.codecs + "," + sound.codecs : "";
  variant.bandwidth += sound.bandwidth;
  variant.average_bandwidth += sound.average_bandwidth;
  variant.sound_uri = sound.uri;
  return variant;
}

template <typename Map>
void forget_oldest(Map& map) {
  while (map.size() > kMostRemembered) map.erase(map.begin());
}

}  // namespace

RenditionGroup::RenditionGroup(fs::path master, microseconds segment)
    : master_(std::move(master)), segment_(segment) {}

microseconds RenditionGroup::slot_length(microseconds hls_time, microseconds gop) {
  return (hls_time + gop - microseconds(1)) / gop * gop;
}

std::size_t RenditionGroup::add(const fs::path& path, bool sound) {
  const std::lock_guard lock(mutex_);
  Rendition rendition{.path = path, .variant = {}, .rates = {}, .sound = sound};
  rendition.variant.uri = path.lexically_proximate(master_.parent_path()).generic_string();
  renditions_.push_back(std::move(rendition));
  return renditions_.size() - 1;
}

std::int64_t RenditionGroup::slot_at(microseconds shown) const {
  const microseconds time = shown + kRounding;
  return time.count() / segment_.count() - (time < microseconds(0) ? 1 : 0);
}

bool RenditionGroup::begins_slot(const MediaPacket& keyframe) const {
  const microseconds shown = shown_at(keyframe);
  const auto lost_until = keyframe.format->lost_until;
  if (lost_until && slot_at(*lost_until) >= slot_at(shown)) return false;
  const AVRational rate = keyframe.format->video.frame_rate;
  microseconds distance{0};  // of frames; 0: not known
  if (rate.num > 0 && rate.den > 0) {
    distance = microseconds(static_cast<std::int64_t>(1e6 / av_q2d(rate)));
  }
  // Of two or more frames in a slot the first one is not in its second half.
  const microseconds late =
      std::min(std::max(kFirstFrame, 2 * distance), std::max(segment_ / 2, distance));
  return shown - slot_at(shown) * segment_ <= late;
}

void RenditionGroup::open(std::size_t rendition) {
  const std::lock_guard file_lock(file_mutex_);
  {
    const std::lock_guard lock(mutex_);
    renditions_[rendition].writes = true;
  }
  if (lock_ && !lock_->holds()) lock_.reset();  // the folder was removed meanwhile
  if (!lock_) {
    std::error_code error;
    const fs::path folder = master_.has_parent_path() ? master_.parent_path() : fs::path(".");
    if (!fs::create_directories(folder, error) && error) {
      throw_cannot("create directory", folder.string(), error.value());
    }
    if (fs::is_directory(master_, error)) {
      throw IoError(IoFault::kIo,
                    "cannot write " + redact(master_.string()) +
                        ": it is a folder; remove it, or give the playlist another name");
    }
    lock_.emplace(master_.string());
  }
  if (!opened_) read_numbers();
  opened_ = true;
}

void RenditionGroup::leave(std::size_t rendition) {
  const std::lock_guard file_lock(file_mutex_);
  const std::lock_guard lock(mutex_);
  renditions_[rendition].writes = false;
  if (std::ranges::none_of(renditions_, &Rendition::writes)) lock_.reset();
}

/// Numbers go on behind those of all renditions, so that no number is used twice. What one of them
/// lacks at its end (a process that is killed leaves some a segment ahead of others) it will have
/// as a gap, in the section where the others have it.
void RenditionGroup::read_numbers() {
  const std::lock_guard lock(mutex_);
  std::map<std::uint64_t, std::uint64_t> begins;  // the first segment that is listed of a section
  for (const Rendition& rendition : renditions_) {
    std::ifstream file(rendition.path, std::ios::binary);
    if (!file) continue;  // its own writer says what is wrong
    std::ostringstream text;
    text << file.rdbuf();
    const auto list = MediaPlaylist::parse(text.str());
    if (!list) continue;
    next_number_ = std::max(next_number_, list->next_number());
    next_section_ = std::max(next_section_, list->section() + 1);
    const auto& segments = list->segments();
    std::uint64_t number = list->next_number();
    std::uint64_t section = list->section();
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
      --number;
      const auto begin = begins.try_emplace(section, number).first;
      begin->second = std::min(begin->second, number);
      if (segment->discontinuity) --section;
    }
  }
  for (const auto& [section, number] : begins) {
    sections_.erase(sections_.lower_bound(number), sections_.end());  // playlists that contradict
    sections_[number] = section;
  }
}

std::optional<std::uint64_t> RenditionGroup::begin(std::size_t rendition, std::int64_t slot,
                                                   std::uint64_t own_next) {
  const std::lock_guard lock(mutex_);
  if (!first_slot_number_) {
    const std::uint64_t first = std::max(next_number_, own_next);
    renditions_[rendition].begun = true;
    first_slot_number_ = static_cast<std::int64_t>(first) - slot;
    first_number_ = first;
    sections_[first] = next_section_;
    unpublished_ = first;
    return first;
  }
  const std::int64_t signed_number = *first_slot_number_ + slot;
  const auto number = static_cast<std::uint64_t>(std::max<std::int64_t>(signed_number, 0));
  // After a failure the fan-out may send pictures of a segment that is written already.
  if (renditions_[rendition].begun && number < own_next) return {};
  const auto section = sections_.lower_bound(number);
  // Where a section begins, any rendition may. One that has not written anything yet has nothing to
  // be set off from: it joins the others where they are.
  const bool starts_there = section != sections_.end() && section->first == number;
  const bool joins = !renditions_[rendition].begun && number > first_number_;
  if (signed_number >= 0 && number >= first_number_ && (starts_there || joins)) {
    renditions_[rendition].begun = true;
    return number;
  }
  if (section != sections_.end()) return {};  // it begins there
  const std::uint64_t at = std::max(number, unpublished_);
  sections_[at] = sections_.rbegin()->second + 1;
  forget_oldest(sections_);
  return at == number ? std::optional(number) : std::nullopt;
}

std::uint64_t RenditionGroup::section_of(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  auto next = sections_.upper_bound(number);
  if (next != sections_.begin()) --next;
  return next->second;
}

system_clock::time_point RenditionGroup::time_of(std::uint64_t number,
                                                 system_clock::time_point taken) {
  const std::lock_guard lock(mutex_);
  const auto time = times_.emplace(number, taken).first->second;
  forget_oldest(times_);
  return time;
}

void RenditionGroup::describe(std::size_t rendition, HlsVariant format) {
  const std::lock_guard lock(mutex_);
  HlsVariant& variant = renditions_[rendition].variant;
  format.uri = variant.uri;
  format.bandwidth = variant.bandwidth;  // as measured so far
  format.average_bandwidth = variant.average_bandwidth;
  variant = std::move(format);
  renditions_[rendition].left_out = false;
}

void RenditionGroup::leave_out(std::size_t rendition) {
  const std::lock_guard lock(mutex_);
  renditions_[rendition].left_out = true;
}

void RenditionGroup::published(std::size_t index, std::uint64_t number, std::int64_t bytes,
                               microseconds duration, microseconds target) {
  const std::lock_guard file_lock(file_mutex_);
  std::optional<std::vector<HlsVariant>> variants;
  {
    const std::lock_guard lock(mutex_);
    Rendition& rendition = renditions_[index];
    rendition.rates.add(bytes, duration, target);
    rendition.variant.bandwidth = rendition.rates.peak();
    rendition.variant.average_bandwidth = rendition.rates.average();
    ++rendition.segments;
    rendition.last = number;
    unpublished_ = std::max(unpublished_, number + 1);
    variants = due();
  }
  if (!variants) return;
  replace_file(master_, master_playlist(*variants));
  const std::lock_guard lock(mutex_);
  written_ = std::move(*variants);
}

std::optional<std::vector<HlsVariant>> RenditionGroup::due() const {
  const auto has_segments = [](const Rendition& one) { return one.segments > 0; };
  const auto is_ready = [](const Rendition& one) { return one.left_out || one.segments > 0; };
  const auto has_enough = [](const Rendition& one) { return one.segments >= kEnoughSegments; };
  if (!std::ranges::all_of(renditions_, is_ready) &&
      std::ranges::none_of(renditions_, has_enough)) {
    return {};
  }
  const auto sound = std::ranges::find(renditions_, true, &Rendition::sound);
  const bool sounds = sound != renditions_.end() && has_segments(*sound) && !sound->left_out &&
                      sound->last + kMostBehind >= unpublished_;
  std::vector<HlsVariant> variants;
  for (const Rendition& rendition : renditions_) {
    if (rendition.sound || !has_segments(rendition)) continue;
    variants.push_back(sounds ? with_sound(rendition.variant, sound->variant) : rendition.variant);
  }
  if (variants.empty()) return {};
  const bool still_true =
      std::ranges::equal(variants, written_, [](const HlsVariant& now, const HlsVariant& written) {
        return says_the_same(now, written) && now.bandwidth <= written.bandwidth;
      });
  return still_true ? std::nullopt : std::optional(std::move(variants));
}

}  // namespace framelane
