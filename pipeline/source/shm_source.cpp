#include "pipeline/source/shm_source.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "capture/framelane_capture.h"
#include "pipeline/av/av_rational.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// A time that lies further before the arrival than this is none of this machine's clock: frames do
/// not wait for so long, unless this process was stopped.
constexpr std::chrono::minutes kOldest{1};

bool has_stamps(const SharedArea& area) {
  return area.name().starts_with(FRAMELANE_CAPTURE_AREA_PREFIX);
}

/// The frames that fit into the area, as its producer lays them out.
std::size_t slots_of(const SharedArea& area, std::size_t frame_bytes) {
  std::size_t slot = (frame_bytes + 7) / 8 * 8;
  if (has_stamps(area)) {
    slot = FRAMELANE_CAPTURE_STAMP_OFFSET(frame_bytes) + FRAMELANE_CAPTURE_READABLE;
    slot = (slot + 4095) / 4096 * 4096;
  }
  return area.bytes() / slot;
}

/// Of an area. The producers of framelane_capture.h have 64 slots at most.
std::size_t most_bytes(std::size_t frame_bytes) {
  constexpr std::size_t kMostSlots = 64;
  constexpr std::size_t kAlways = std::size_t{256} << 20;
  return std::max(kAlways, kMostSlots * (frame_bytes + 2 * 4096));
}

/// The producer's stamp, if there is one behind the frame.
std::optional<framelane_capture_stamp> stamp_of(const ShmConnection::Announced& frame) {
  framelane_capture_stamp stamp;
  const std::uint64_t at = frame.offset + FRAMELANE_CAPTURE_STAMP_OFFSET(frame.bytes);
  const std::uint64_t size = frame.area->bytes();
  if (!has_stamps(*frame.area) || at > size || sizeof stamp > size - at) return std::nullopt;
  std::memcpy(&stamp, frame.area->data() + at, sizeof stamp);
  if (stamp.magic != FRAMELANE_CAPTURE_STAMP_MAGIC) return std::nullopt;
  return stamp;
}

}  // namespace

ShmSource::ShmSource(const InputOptions& input, const SourceContext& context)
    : input_(input),
      context_(context),
      layout_(gstreamer_layout(input_.raw.value())),
      clock_(*input_.raw, input_.duration, context_.timeline),
      importer_(context_.pool, context_.stats, input_.color),
      frame_(make_frame()),
      said_(context_.said != nullptr ? *context_.said : own_said_) {
  refuse_options(input_);
  info_.live = true;
  info_.decoder = "rawvideo";
  info_.frame_rate = to_av(input_.raw->rate);
  info_.time_base = clock_.time_base();
  {
    const CallScope opening(context_.interrupt, input_.timeout);
    connection_ = ShmConnection::open(shm_socket(input_.url).value(), most_bytes(layout_.bytes),
                                      input_.timeout, context_.interrupt.stop());
  }
  clock_.begin_segment();
  last_frame_ = Clock::now();
}

ShmSource::~ShmSource() {
  if (connection_ == nullptr) return;
  // It may be the last to hold the areas, and a GPU's driver unregisters them.
  const CallScope closing(context_.interrupt, input_.timeout);
  connection_->leave();
  connection_.reset();
}

ReadResult ShmSource::read(SourceItem& item) {
  for (;;) {
    std::optional<ShmConnection::Announced> announced;
    {
      const BusyMeter::Scope waiting(context_.stats.source_wait, context_.stats.trace(),
                                     TraceKind::kRead);
      const CallScope reading(context_.interrupt, input_.timeout);
      announced = connection_->next();
    }
    if (!announced) return ReadResult::kStopped;
    const auto producers = stamp_of(*announced);
    if (producers) count_missed(*announced->area, *producers);
    if (announced->bytes != layout_.bytes) {
      refuse(*announced);
      continue;
    }
    context_.stats.input_bytes.fetch_add(announced->bytes, std::memory_order_relaxed);
    const Clock::time_point arrived = last_frame_ = Clock::now();
    const auto stamp = clock_.stamp(taken_at(producers ? &*producers : nullptr, arrived), arrived);
    if (!stamp) {
      connection_->give_back(*announced);
      return ReadResult::kEnd;
    }
    import(*std::move(announced), item.frame);
    item.frame.pts = stamp->pts;
    context_.stats.trace().mark(TraceKind::kPacket,
                                av_rescale_q(stamp->pts, info_.time_base, AV_TIME_BASE_Q));
    item.frame.duration = stamp->duration;
    item.frame.decoded_at = arrived;
    item.kind = SourceItem::Kind::kFrame;
    item.stream = StreamKind::kVideo;
    item.packet = nullptr;
    return ReadResult::kItem;
  }
}

/// The frame is in the pool or, in place, in the producer's memory.
void ShmSource::import(ShmConnection::Announced announced, InputFrame& frame) {
  const bool in_place = connection_->lent() < most_lent(*announced.area);
  auto* const data = const_cast<std::uint8_t*>(announced.data());
  refer_to_raw(layout_, data, *frame_);
  const BufferRef buffer = connection_->lend(std::move(announced));
  frame_->buf[0] = BufferRef(buffer).release();
  {
    // A new buffer of the pool is registered with the GPU, and its driver may keep us waiting.
    const CallScope copying(context_.interrupt, input_.timeout);
    frame = importer_.import(*frame_, in_place);
  }
  av_buffer_unref(&frame_->buf[0]);
  frame.loan = &ShmConnection::loan_of(buffer);
  require_unspoiled(frame);
  if (frame.image.planes[0].data != data) frame.loan = nullptr;  // it was copied
}

void ShmSource::refuse(const ShmConnection::Announced& frame) {
  context_.stats.count(DecodeFault::kUnsupported);
  connection_->give_back(frame);
  const bool lost = Clock::now() - last_frame_ >= input_.timeout;
  if (!lost && said_.size) return;
  said_.size = true;
  const std::string what = fmt::format(
      "the producer sends frames of {} bytes, and {} of {}x{} have {} in GStreamer's layout: they "
      "are dropped. Correct input.size and input.pixel_format, or the producer",
      frame.bytes, input_.raw->pixel_format, layout_.width, layout_.height, layout_.bytes);
  if (lost) throw IoError(IoFault::kDecode, what);
  log::warn("feed {}: {}", context_.stats.feed(), what);
}

/// How many frames may be lent at once.
int ShmSource::most_lent(const SharedArea& area) {
  const auto slots = static_cast<int>(std::min<std::size_t>(slots_of(area, layout_.bytes), 1024));
  // The ring's jobs, and the one in hand.
  if (slots - 1 <= context_.ring && !std::exchange(said_.few_slots, true)) {
    log::info(
        "feed {}: the producer's shared memory has room for {} frames, and the ring for {}: when "
        "the ring is full, frames are copied. Give the producer room for {}, or make ring smaller",
        context_.stats.feed(), slots, context_.ring, context_.ring + 2);
  }
  return std::max(slots - 1, 0);
}

void ShmSource::count_missed(const SharedArea& area, const framelane_capture_stamp& stamp) {
  // Numbers begin anew with an area. What was published before the first frame was none for us. A
  // number that goes back, or far ahead, is none.
  constexpr std::uint64_t kMostMissed = 1'000'000;
  const std::uint64_t step = area.name() == last_area_ ? stamp.sequence - last_sequence_ : 1;
  if (step > 1 && step <= kMostMissed) {
    const std::uint64_t missed = step - 1;
    context_.stats.frames_missed.fetch_add(missed, std::memory_order_relaxed);
    if (!std::exchange(said_.missed, true)) {
      log::warn(
          "feed {}: the producer published {} frames that it did not give to this feed, because "
          "the feed held its share of the slots: give the producer more slots, or make ring "
          "smaller",
          context_.stats.feed(), missed);
    }
  }
  last_area_ = area.name();
  last_sequence_ = stamp.sequence;
}

ShmSource::Clock::time_point ShmSource::taken_at(const framelane_capture_stamp* stamp,
                                                 Clock::time_point arrived) {
  if (input_.raw->timestamps != RawVideoOptions::Timestamps::kProducer) return arrived;
  if (stamp != nullptr && stamp->capture_time_ns != FRAMELANE_CAPTURE_TIME_UNKNOWN) {
    // The steady clock is CLOCK_MONOTONIC.
    const auto taken = Clock::time_point(std::chrono::nanoseconds(stamp->capture_time_ns));
    if (taken <= arrived && taken > arrived - kOldest) return taken;
  }
  if (!std::exchange(said_.untimed, true)) {
    log::warn(
        "feed {}: the producer gives no capture time, or one that is not of this machine's "
        "CLOCK_MONOTONIC: such frames get the time of their arrival",
        context_.stats.feed());
  }
  return arrived;
}

}  // namespace framelane
