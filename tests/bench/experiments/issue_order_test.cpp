#include "bench/experiments/issue_order.hpp"

#include <gtest/gtest.h>

#include <string>

namespace framelane::bench {
namespace {

/// Each call as one word: what, where it begins, how many, on which stream.
std::string issued(IssueOrder order, std::size_t length, std::size_t size, int streams) {
  std::string calls;
  const auto write = [&calls](char what) {
    return [&calls, what](const Piece& piece) {
      calls += what + std::to_string(piece.begin) + '+' + std::to_string(piece.count) + '@' +
               std::to_string(piece.stream) + ' ';
    };
  };
  issue(order, length, size, streams, write('u'), write('k'), write('d'));
  return calls;
}

TEST(IssueOrderTest, DepthFirstEndsAPieceBeforeTheNext) {
  EXPECT_EQ(issued(IssueOrder::kDepthFirst, 5, 2, 2),
            "u0+2@0 k0+2@0 d0+2@0 u2+2@1 k2+2@1 d2+2@1 u4+1@0 k4+1@0 d4+1@0 ");
}

TEST(IssueOrderTest, BreadthFirstBatchesByKindOverAllStreams) {
  EXPECT_EQ(issued(IssueOrder::kBreadthFirst, 5, 2, 2),
            "u0+2@0 u2+2@1 k0+2@0 k2+2@1 d0+2@0 d2+2@1 u4+1@0 k4+1@0 d4+1@0 ");
}

TEST(IssueOrderTest, NothingIsIssuedForNothing) {
  EXPECT_EQ(issued(IssueOrder::kBreadthFirst, 0, 2, 4), "");
}

TEST(IssueOrderTest, OnePieceMayBeShorterThanItsSize) {
  EXPECT_EQ(issued(IssueOrder::kDepthFirst, 1, 2, 4), "u0+1@0 k0+1@0 d0+1@0 ");
}

}  // namespace
}  // namespace framelane::bench
