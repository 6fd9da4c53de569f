#include "kernels/channel.hpp"

#include "kernels/pixel_format.hpp"

namespace framelane {
namespace {

constexpr int kAbsent = -1;

struct Place {
  int plane;
  int offset;
  int step;
};

// The places of R, G, B or Y, U, V, in the order of PixelFormat's enumerators.
constexpr std::array<std::array<Place, 3>, kPixelFormatCount> kPlaces = {{
    {{{0, 2, 4}, {0, 1, 4}, {0, 0, 4}}},              // bgra
    {{{0, 0, 4}, {0, 1, 4}, {0, 2, 4}}},              // rgba
    {{{0, 1, 4}, {0, 2, 4}, {0, 3, 4}}},              // argb
    {{{0, 3, 4}, {0, 2, 4}, {0, 1, 4}}},              // abgr
    {{{0, 2, 3}, {0, 1, 3}, {0, 0, 3}}},              // bgr24
    {{{0, 0, 3}, {0, 1, 3}, {0, 2, 3}}},              // rgb24
    {{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},              // yuv420p
    {{{0, 0, 1}, {1, 0, 2}, {1, 1, 2}}},              // nv12
    {{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},              // yuv422p
    {{{0, 0, 2}, {0, 1, 4}, {0, 3, 4}}},              // yuyv422
    {{{0, 1, 2}, {0, 0, 4}, {0, 2, 4}}},              // uyvy422
    {{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}}},              // yuv444p
    {{{0, 0, 3}, {0, 1, 3}, {0, 2, 3}}},              // yuv444
    {{{0, 0, 1}, {kAbsent, 0, 0}, {kAbsent, 0, 0}}},  // gray
}};

template <typename Byte>
std::array<BasicChannel<Byte>, 3> locate(const BasicImageView<Byte>& view) {
  const PixelFormatInfo& format = info(view.format);
  std::array<BasicChannel<Byte>, 3> result;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Place& place = kPlaces[static_cast<std::size_t>(view.format)][i];
    BasicChannel<Byte>& channel = result[i];
    const bool chroma = !format.rgb && i > 0;
    channel.half_width = chroma && format.chroma_half_width;
    channel.half_height = chroma && format.chroma_half_height;
    channel.width = channel.half_width ? (view.width + 1) / 2 : view.width;
    channel.height = channel.half_height ? (view.height + 1) / 2 : view.height;
    if (place.plane == kAbsent) continue;
    channel.data = view.planes[place.plane].data + place.offset;
    channel.pitch = view.planes[place.plane].pitch;
    channel.step = place.step;
  }
  return result;
}

}  // namespace

std::array<ConstChannel, 3> channels(const ConstImageView& view) {
  auto result = locate(view);
  for (ConstChannel& channel : result) {
    if (channel.data == nullptr) channel.data = &kNeutralChroma;
  }
  return result;
}

std::array<Channel, 3> channels(const ImageView& view) { return locate(view); }

}  // namespace framelane
