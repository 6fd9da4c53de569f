#include "pipeline/frames/frame_pool.hpp"

extern "C" {
#include <libavutil/buffer.h>
}

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

// FFmpeg's decoders and swscale read and write up to so many bytes behind the last row.
constexpr std::size_t kTailPadding = 64;

std::size_t align_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

// Shared by the pool and by every live buffer, so that a buffer can outlive the FramePool.
//
// Lock order: `mutex`, then FFmpeg's own lock inside AVBufferPool, then `buffers_mutex`. No lock is
// held while memory is mapped, prefaulted and registered, because that takes milliseconds, and as
// long as it likes with a GPU that hangs.
struct FramePool::State : std::enable_shared_from_this<State> {
  // One buffer, from when it is made to when FFmpeg's pool frees it.
  struct Entry {
    Entry(State& owner, std::size_t bytes) : state(owner.shared_from_this()), memory(bytes) {
      const std::lock_guard lock(state->buffers_mutex);
      state->buffers.push_back(&memory);
    }
    ~Entry() {
      const std::lock_guard lock(state->buffers_mutex);
      std::erase(state->buffers, &memory);
    }
    const std::shared_ptr<State> state;
    const HostBuffer memory;
  };

  std::mutex mutex;
  AVBufferPool* pool = nullptr;
  std::size_t bytes = 0;         // of each buffer of the present generation
  std::unique_ptr<Entry> fresh;  // what allocate() gives next; set only while `mutex` is held
  std::mutex buffers_mutex;
  std::vector<const HostBuffer*> buffers;  // live, of every generation

  std::unique_ptr<Entry> make_entry(std::size_t size) {
    {
      const std::lock_guard lock(buffers_mutex);
      if (buffers.size() >= kMaxBuffers) {
        throw FeedError(FeedFault::kMemory, "no frame buffer: " + std::to_string(kMaxBuffers) +
                                                " frames are held at once: something downstream "
                                                "does not give them back");
      }
    }
    return std::make_unique<Entry>(*this, size);
  }

  // FFmpeg's pool asks for a new buffer when it has no free one. Called inside av_buffer_pool_get,
  // and so with `mutex` held. Null if get() has not made one.
  static AVBufferRef* allocate(void* opaque, std::size_t size) {
    State& state = *static_cast<State*>(opaque);
    if (state.fresh == nullptr || state.fresh->memory.size() < size) return nullptr;
    Entry* const entry = state.fresh.get();
    AVBufferRef* ref = av_buffer_create(entry->memory.data(), size, &free_entry, entry, 0);
    if (ref != nullptr) static_cast<void>(state.fresh.release());
    return ref;
  }

  static void free_entry(void* opaque, std::uint8_t*) { delete static_cast<Entry*>(opaque); }
};

FramePool::FramePool() : state_(std::make_shared<State>()) {}

FramePool::~FramePool() { av_buffer_pool_uninit(&state_->pool); }

BufferRef FramePool::get(std::size_t bytes) {
  State& state = *state_;
  std::unique_ptr<State::Entry> fresh;
  for (;;) {
    AVBufferPool* outgrown = nullptr;
    AVBufferRef* ref = nullptr;
    std::size_t size = 0;
    std::vector<BufferRef> came_back;
    {
      const std::lock_guard lock(state.mutex);
      // Sizes within a factor of two share a generation: a decoder and a scaler whose padding
      // differs must not free each other's buffers.
      if (bytes > state.bytes || bytes < state.bytes / 2) {
        outgrown = std::exchange(state.pool, nullptr);
        state.bytes = bytes;
      }
      if (state.pool == nullptr) {
        state.pool = av_buffer_pool_init2(state.bytes, &state, &State::allocate, nullptr);
      }
      if (state.pool != nullptr) {
        size = state.bytes;
        state.fresh = std::move(fresh);
        ref = av_buffer_pool_get(state.pool);
        // A buffer came back while the fresh one was made. The fresh one joins the pool even so: it
        // is asked for until it has come out. Otherwise a pool that is one buffer short could make
        // one, and throw it away, for every frame.
        while (ref != nullptr && state.fresh != nullptr) {
          came_back.push_back(BufferRef::adopt(ref));
          ref = av_buffer_pool_get(state.pool);
        }
        fresh = std::move(state.fresh);  // still there if it is too small by now
      }
    }
    av_buffer_pool_uninit(&outgrown);
    if (ref != nullptr) return BufferRef::adopt(ref);
    if (!came_back.empty()) return std::move(came_back.back());
    if (size == 0 || (fresh != nullptr && fresh->memory.size() >= size)) throw std::bad_alloc();
    fresh = state.make_entry(size);
  }
}

bool FramePool::owns(const std::uint8_t* data) const {
  const std::lock_guard lock(state_->buffers_mutex);
  return std::ranges::any_of(state_->buffers, [data](const HostBuffer* buffer) {
    return data >= buffer->data() && data < buffer->data() + buffer->size();
  });
}

PooledImage allocate_image(FramePool& pool, PixelFormat format, int width, int height,
                           std::size_t side_data_bytes) {
  PooledImage result;
  result.image.format = format;
  result.image.width = width;
  result.image.height = height;
  std::array<std::size_t, kMaxPlanes> offsets{};
  std::size_t bytes = 0;
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    const std::size_t pitch =
        align_up(plane_row_bytes(format, plane, width), FramePool::kPitchAlignment);
    offsets[plane] = bytes;
    result.image.planes[plane].pitch = static_cast<std::ptrdiff_t>(pitch);
    bytes += pitch * static_cast<std::size_t>(plane_rows(format, plane, height));
  }
  bytes += kTailPadding;
  result.buffer = pool.get(bytes + side_data_bytes);
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    result.image.planes[plane].data = result.buffer.get()->data + offsets[plane];
  }
  if (side_data_bytes > 0) result.side_data = result.buffer.get()->data + bytes;
  return result;
}

PooledImage copy_into(FramePool& pool, const ConstImageView& image) {
  PooledImage result = allocate_image(pool, image.format, image.width, image.height);
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    const std::size_t bytes = plane_row_bytes(image.format, plane, image.width);
    for (int y = 0; y < plane_rows(image.format, plane, image.height); ++y) {
      std::memcpy(result.image.row(plane, y), image.row(plane, y), bytes);
    }
  }
  return result;
}

}  // namespace framelane
