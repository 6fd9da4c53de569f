// Entry points of the stand-in runtime: streams and events.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/cuda_runtime/entry.hpp"

namespace framelane::stand_in {
namespace {

// The default stream is made when it is first named; null is no stream here.
void make_default_stream(State& s) {
  auto created = std::make_shared<Stream>();
  created->device = current_device;
  s.streams.emplace(cudaStreamLegacy, created);
  serve(created);
}

}  // namespace

cudaError_t enqueue(State& s, cudaStream_t stream, Operation operation) {
  if (stream == cudaStreamLegacy && !s.streams.contains(stream)) make_default_stream(s);
  return on(s.streams, stream, [&](const std::shared_ptr<Stream>& target) {
    target->queue.push_back(std::move(operation));
    ++target->queued;
    s.changed.notify_all();
    return cudaSuccess;
  });
}

}  // namespace framelane::stand_in

using namespace framelane::stand_in;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return entry("cudaStreamCreateWithFlags", [&](State& s, Lock&) {
    // A stream that waits for the default one is not what framelane uses.
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    auto created = std::make_shared<Stream>();
    created->device = current_device;
    created->number = s.streams_created++;
    *stream = reinterpret_cast<cudaStream_t>(created.get());
    s.streams.emplace(*stream, created);
    serve(created);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return releasing_entry("cudaStreamDestroy", [&](State& s, Lock&) {
    return on(s.streams, stream, [&](const std::shared_ptr<Stream>& found) {
      found->closing = true;  // its thread ends when the queue is empty
      s.changed.notify_all();
      s.streams.erase(stream);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return entry("cudaStreamQuery", [&](State& s, Lock&) {
    return on(s.streams, stream, [](const std::shared_ptr<Stream>& found) {
      return found->idle() ? cudaSuccess : cudaErrorNotReady;
    });
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return entry("cudaStreamSynchronize", [&](State& s, Lock& lock) {
    return on(s.streams, stream, [&](std::shared_ptr<Stream> found) {
      if (!s.blocking_devices.contains(found->device)) ++s.spinning_waits;
      return wait(s, lock, [&] { return found->idle(); });
    });
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return entry("cudaStreamWaitEvent", [&](State& s, Lock&) {
    return on(s.events, event, [&](const std::shared_ptr<Event>& found) {
      // What the event stands for now; recording it again changes nothing for this wait.
      const std::uint64_t until = found->recorded;
      return enqueue(s, stream, {nullptr, [found, until] { return found->completed >= until; }});
    });
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return entry("cudaLaunchHostFunc", [&](State& s, Lock&) {
    return enqueue(s, stream, {[function, data] { function(data); }, nullptr});
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return entry("cudaEventCreateWithFlags", [&](State& s, Lock&) {
    auto created = std::make_shared<Event>();
    created->device = current_device;
    created->timed = (flags & cudaEventDisableTiming) == 0;
    created->blocking = (flags & cudaEventBlockingSync) != 0;
    *event = reinterpret_cast<cudaEvent_t>(created.get());
    s.events.emplace(*event, std::move(created));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return releasing_entry("cudaEventDestroy", [&](State& s, Lock&) {
    return on(s.events, event, [&](const std::shared_ptr<Event>&) {
      s.events.erase(event);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return entry("cudaEventRecord", [&](State& s, Lock&) {
    return on(s.events, event, [&](const std::shared_ptr<Event>& found) {
      const std::uint64_t record = found->recorded + 1;
      const cudaError_t error = enqueue(s, stream,
                                        {[&s, found, record] {
                                           const std::scoped_lock lock(s.mutex);
                                           found->completed = std::max(found->completed, record);
                                           found->time = Clock::now();
                                         },
                                         nullptr});
      if (error == cudaSuccess) found->recorded = record;
      return error;
    });
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return entry("cudaEventQuery", [&](State& s, Lock&) {
    return on(s.events, event, [](const std::shared_ptr<Event>& found) {
      return found->completed >= found->recorded ? cudaSuccess : cudaErrorNotReady;
    });
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return entry("cudaEventSynchronize", [&](State& s, Lock& lock) {
    return on(s.events, event, [&](std::shared_ptr<Event> found) {
      if (!found->blocking) ++s.spinning_waits;
      const std::uint64_t until = found->recorded;
      return wait(s, lock, [&] { return found->completed >= until; });
    });
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return entry("cudaEventElapsedTime", [&](State& s, Lock&) {
    return on(s.events, from, [&](const std::shared_ptr<Event>& begin) {
      return on(s.events, to, [&](const std::shared_ptr<Event>& end) {
        for (const Event* event : {begin.get(), end.get()}) {
          if (!event->timed || event->recorded == 0) return cudaErrorInvalidResourceHandle;
          if (event->completed < event->recorded) return cudaErrorNotReady;
        }
        if (end->time < begin->time) ++s.backward_times;
        *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
        return cudaSuccess;
      });
    });
  });
}

}  // extern "C"
