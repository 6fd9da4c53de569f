#include "tests/nvenc/h264_writer.hpp"

#include <algorithm>
#include <bit>

namespace framelane::fake_nvenc {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int kBlock = 16;        // a macroblock's side
constexpr unsigned kIpcm = 25;    // mb_type (table 7-11)
constexpr unsigned kISlices = 7;  // slice_type: all slices of the picture are I (table 7-6)

class BitWriter {
 public:
  void bits(int count, unsigned value) {
    while (count-- > 0) bit((value >> count & 1) != 0);
  }
  void bit(bool value) {
    if (used_ == 0) bytes_.push_back(0);
    if (value) bytes_.back() |= static_cast<std::uint8_t>(0x80U >> used_);
    used_ = (used_ + 1) % 8;
  }
  /// Exp-Golomb (9.1). A signed value of 0 is written alike.
  void ue(unsigned value) {
    const int length = std::bit_width(value + 1);
    bits(length - 1, 0);
    bits(length, value + 1);
  }
  void align() { used_ = 0; }
  void byte(std::uint8_t value) { bytes_.push_back(value); }  // only when aligned
  Bytes finish() {
    bit(true);  // rbsp_stop_one_bit
    return std::move(bytes_);
  }

 private:
  Bytes bytes_;
  int used_ = 0;  // bits of the last byte
};

/// A NAL unit behind a start code (annex B), with emulation prevention (7.3.1).
void append_nal(Bytes& stream, std::uint8_t header, const Bytes& payload) {
  stream.insert(stream.end(), {0, 0, 0, 1, header});
  int zeros = 0;
  for (const std::uint8_t byte : payload) {
    if (zeros >= 2 && byte <= 3) {
      stream.push_back(3);
      zeros = 0;
    }
    stream.push_back(byte);
    zeros = byte == 0 ? zeros + 1 : 0;
  }
}

int blocks(int samples) { return (samples + kBlock - 1) / kBlock; }

/// Writes a square of a plane. Beyond the edges its last samples are repeated.
void square(BitWriter& out, const std::uint8_t* plane, std::size_t pitch, int step, int left,
            int top, int side, int width, int height) {
  for (int y = top; y < top + side; ++y) {
    const std::uint8_t* row = plane + static_cast<std::size_t>(std::min(y, height - 1)) * pitch;
    for (int x = left; x < left + side; ++x) out.byte(row[std::min(x, width - 1) * step]);
  }
}

}  // namespace

Bytes parameter_sets(int width, int height, bool full_chroma) {
  BitWriter sps;
  sps.bits(8, full_chroma ? 244 : 66);  // profile_idc: High 4:4:4 Predictive, Baseline
  sps.bits(8, 0);
  sps.bits(8, 51);  // level_idc
  sps.ue(0);
  if (full_chroma) {
    sps.ue(3);  // chroma_format_idc
    sps.bit(false);
    for (int i = 0; i < 2; ++i) sps.ue(0);  // 8 bits
    sps.bits(2, 0);                         // no lossless mode, no scaling matrices
  }
  for (const unsigned value : {0U, 2U, 0U}) sps.ue(value);  // pic_order_cnt_type 2, no references
  sps.bit(false);
  sps.ue(static_cast<unsigned>(blocks(width) - 1));
  sps.ue(static_cast<unsigned>(blocks(height) - 1));
  sps.bit(true);  // frame_mbs_only_flag
  sps.bit(true);
  const unsigned unit = full_chroma ? 1 : 2;
  const auto right = static_cast<unsigned>(blocks(width) * kBlock - width) / unit;
  const auto bottom = static_cast<unsigned>(blocks(height) * kBlock - height) / unit;
  sps.bit(right > 0 || bottom > 0);
  if (right > 0 || bottom > 0) {
    for (const unsigned value : {0U, right, 0U, bottom}) sps.ue(value);
  }
  sps.bit(false);  // vui_parameters_present_flag

  BitWriter pps;
  pps.ue(0);
  pps.ue(0);
  pps.bits(2, 0);  // CAVLC
  for (int i = 0; i < 3; ++i) pps.ue(0);
  pps.bits(3, 0);  // no weighted prediction
  for (int i = 0; i < 3; ++i) pps.ue(0);
  pps.bit(true);  // deblocking_filter_control_present_flag
  pps.bits(2, 0);

  Bytes stream;
  append_nal(stream, 0x67, sps.finish());
  append_nal(stream, 0x68, pps.finish());
  return stream;
}

Bytes idr_slice(const Picture& picture, unsigned id) {
  BitWriter out;
  out.ue(0);  // first_mb_in_slice
  out.ue(kISlices);
  out.ue(0);
  out.bits(4, 0);  // frame_num
  out.ue(id % 2);  // idr_pic_id
  out.bits(2, 0);  // dec_ref_pic_marking
  out.ue(0);       // slice_qp_delta
  out.ue(1);       // disable_deblocking_filter_idc
  const int part = picture.full_chroma ? 1 : 2;
  const int chroma_width = (picture.width + part - 1) / part;
  const int chroma_height = (picture.height + part - 1) / part;
  for (int y = 0; y < blocks(picture.height); ++y) {
    for (int x = 0; x < blocks(picture.width); ++x) {
      out.ue(kIpcm);
      out.align();
      square(out, picture.y, picture.pitch, 1, x * kBlock, y * kBlock, kBlock, picture.width,
             picture.height);
      for (const std::uint8_t* plane : {picture.u, picture.v}) {
        square(out, plane, picture.chroma_pitch, picture.chroma_step, x * kBlock / part,
               y * kBlock / part, kBlock / part, chroma_width, chroma_height);
      }
    }
  }
  Bytes stream;
  append_nal(stream, 0x65, out.finish());
  return stream;
}

}  // namespace framelane::fake_nvenc
