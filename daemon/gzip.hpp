#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace framelane {

/// Packs text as gzip, piece by piece. One thread.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void append(std::string_view text);
  /// Of what is packed so far; the last pieces may not be.
  std::size_t bytes() const { return packed_.size(); }
  /// All of it. Once, at the end.
  std::string finish();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::string packed_;
};

/// What was packed as gzip. Throws std::runtime_error if it is damaged, or larger than `most`
/// bytes.
std::string unpack_gzip(std::string_view packed, std::size_t most);

}  // namespace framelane
