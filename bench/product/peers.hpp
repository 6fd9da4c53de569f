// What the CPU's and the GPU's part of the suite `peers` share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/harness/pictures.hpp"
#include "bench/harness/turns.hpp"
#include "bench/product/cpu_peers.hpp"

namespace framelane::bench {

/// Two formats and their colours. RGB is in full range; YUV is BT.601 in limited range, which all
/// peers know, where nothing else is said.
struct PeerPair {
  PixelFormat source;
  PixelFormat target;
  ColorSpec target_color = {.matrix = Matrix::kBt601};
  ColorSpec yuv_source = {.matrix = Matrix::kBt601};  ///< where the source is YUV
  const char* says = "";                              ///< what formats_of does not say of it
  struct Part {
    int parts = 1;
    int of = 1;
  };
  Part part = {};  ///< of each side: the target's size

  Conversion at(const Size& size) const;
};

/// A row for one way to do the conversion; `says` is added to the formats.
Row make_peer_row(std::string name, const Conversion& conversion, std::string note,
                  const char* says = "");

/// Measures the figures of a row of make_peer_row: how many samples are off, and by how much. With
/// `exact` they are 0: that is checked byte by byte anyway. Otherwise `measure` is called once.
std::function<std::vector<double>()> accuracy_figures(bool exact,
                                                      std::function<Accuracy()> measure);

/// Adds to the verdict how fast `ours` is beside `others`, in rows that have the parameters `same`.
/// `copying`: the row of a copy of as many bytes on one core; or null.
void judge_peers(Result& result, const std::vector<Parameter>& same, const char* ours,
                 const std::vector<const char*>& others, const Row* copying = nullptr);

/// One conversion for the CPU's contenders of `peers`: frames of the same random pixels, more of
/// them than caches hold, and the exact result. One thread.
class PeerFrames {
 public:
  explicit PeerFrames(const Conversion& conversion);
  /// What one takes.
  static std::size_t bytes_of(const Conversion& conversion);

  const Conversion conversion;
  std::size_t count() const { return from_.size(); }  ///< of the frames
  /// Converts the first `frames` of the frames in turn, on the calling thread; a sample is the time
  /// of one frame. With `exact`, every byte has to be the reference's after every turn; without,
  /// the accuracy is only measured. Refers to this object.
  Contender contender(std::string name, std::string note, Convert convert, bool exact,
                      std::size_t frames);
  Contender contender(std::string name, std::string note, Convert convert, bool exact) {
    return contender(std::move(name), std::move(note), std::move(convert), exact, count());
  }

 private:
  std::string check(std::size_t frames) const;

  FramePool sources_, targets_;
  std::vector<PooledImage> from_, to_;
  const PlainImage exact_;
};

/// How many contenders the GPU's part has for each size, about.
extern const std::size_t kGpuPeers;
/// The GPU's part: each conversion at each size, beside a copy of as many bytes, and NPP's where it
/// has it. Requires session.gpu. `turn`: seconds.
void measure_peers_on_gpu(const Session& session, double turn, const std::vector<Size>& sizes,
                          Result& result);

}  // namespace framelane::bench
