#pragma once

#include <algorithm>
#include <cstddef>

namespace framelane::bench {

/// The order in which the pieces of a work are given to streams. kDepthFirst: everything for one
/// piece, then the next piece. kBreadthFirst: one piece for each stream; first the uploads of all
/// these pieces, then their kernels, then their downloads; then the next piece for each stream.
enum class IssueOrder { kDepthFirst, kBreadthFirst };
inline constexpr IssueOrder kIssueOrders[] = {IssueOrder::kDepthFirst, IssueOrder::kBreadthFirst};
inline const char* name_of(IssueOrder order) {
  return order == IssueOrder::kDepthFirst ? "depth first" : "breadth first";
}

/// Consecutive elements, and the stream that takes them.
struct Piece {
  std::size_t begin, count;
  int stream;
};

/// Cuts `length` elements into pieces of `size`; the last one may be shorter. Calls upload, run and
/// download once for each piece, in the given order. Pieces go to the streams in turn.
template <typename Upload, typename Run, typename Download>
void issue(IssueOrder order, std::size_t length, std::size_t size, int streams,
           const Upload& upload, const Run& run, const Download& download) {
  const auto piece = [=](std::size_t begin, int stream) {
    return Piece{begin, std::min(size, length - begin), stream};
  };
  const auto wave = [&](std::size_t first, const auto& each) {
    std::size_t begin = first;
    for (int s = 0; s < streams && begin < length; ++s, begin += size) each(piece(begin, s));
  };
  for (std::size_t first = 0; first < length; first += size * static_cast<std::size_t>(streams)) {
    if (order == IssueOrder::kDepthFirst) {
      wave(first, [&](const Piece& one) {
        upload(one);
        run(one);
        download(one);
      });
    } else {
      wave(first, upload);
      wave(first, run);
      wave(first, download);
    }
  }
}

}  // namespace framelane::bench
