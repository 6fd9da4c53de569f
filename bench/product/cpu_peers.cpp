#include "bench/product/cpu_peers.hpp"

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}
#ifdef FRAMELANE_LIBYUV
#include <libyuv.h>
#endif
#ifdef FRAMELANE_ZIMG
#include <zimg.h>
#endif

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace framelane::bench {
namespace {

template <typename Byte>
struct Planes {
  explicit Planes(const BasicImageView<Byte>& view) {
    for (std::size_t i = 0; i < kMaxPlanes; ++i) {
      data[i] = view.planes[i].data;
      pitch[i] = static_cast<int>(view.planes[i].pitch);
    }
  }
  std::array<Byte*, 4> data{};
  std::array<int, 4> pitch{};
};

/// The functions of libswscale, and of the libavutil that it was linked with, which may be another
/// one than this program's.
struct Swscale {
  decltype(&sws_alloc_context) alloc_context = nullptr;
  decltype(&sws_freeContext) free_context = nullptr;
  decltype(&sws_init_context) init_context = nullptr;
  decltype(&sws_getCoefficients) coefficients = nullptr;
  decltype(&sws_setColorspaceDetails) set_colors = nullptr;
  decltype(&sws_scale) scale = nullptr;
  decltype(&av_opt_set_int) set_option = nullptr;
  decltype(&av_get_pix_fmt) format = nullptr;

  /// Null: it is not installed. It stays loaded.
  static const Swscale* find() {
    static const std::optional<Swscale> found = load();
    return found ? &*found : nullptr;
  }
  const int* matrix(Matrix matrix) const {
    return coefficients(matrix == Matrix::kBt709 ? SWS_CS_ITU709 : SWS_CS_ITU601);
  }

 private:
  static std::optional<Swscale> load() {
    void* const library =
        dlopen("libswscale.so." AV_STRINGIFY(LIBSWSCALE_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::nullopt;
    Swscale result;
    bool whole = true;
    const auto take = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      whole = whole && function != nullptr;
    };
    take(result.alloc_context, "sws_alloc_context");
    take(result.free_context, "sws_freeContext");
    take(result.init_context, "sws_init_context");
    take(result.coefficients, "sws_getCoefficients");
    take(result.set_colors, "sws_setColorspaceDetails");
    take(result.scale, "sws_scale");
    take(result.set_option, "av_opt_set_int");
    take(result.format, "av_get_pix_fmt");
    return whole ? std::optional(result) : std::nullopt;
  }
};

#ifdef FRAMELANE_LIBYUV
template <auto kConvert, std::size_t kSources, std::size_t kTargets>
void run_libyuv(const ConstImageView& source, const ImageView& target) {
  [&]<std::size_t... kSource, std::size_t... kTarget>(std::index_sequence<kSource...>,
                                                      std::index_sequence<kTarget...>) {
    const Planes from(source);
    const Planes to(target);
    std::apply(kConvert, std::tuple_cat(std::tuple(from.data[kSource], from.pitch[kSource])...,
                                        std::tuple(to.data[kTarget], to.pitch[kTarget])...,
                                        std::tuple(source.width, source.height)));
  }
  (std::make_index_sequence<kSources>(), std::make_index_sequence<kTargets>());
}
#endif

}  // namespace

bool has_swscale() { return Swscale::find() != nullptr; }

Convert make_swscale(const Conversion& c) {
  const Swscale* const sws = Swscale::find();
  if (sws == nullptr) return nullptr;
  // info() gives FFmpeg's names; kYuv444's is none.
  const AVPixelFormat from_format = sws->format(info(c.source).name.data());
  const AVPixelFormat to_format = sws->format(info(c.target).name.data());
  if (from_format == AV_PIX_FMT_NONE || to_format == AV_PIX_FMT_NONE) return nullptr;
  // Where it scales, its most careful way; otherwise the one that it takes unless it is asked.
  const int flags = SWS_BICUBIC | (c.scaling ? SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT : 0);
  const std::shared_ptr<SwsContext> scaler(sws->alloc_context(), sws->free_context);
  // The ranges have to be set before the context is initialised, which chooses its code by them.
  const bool full_source = c.source_color.range == Range::kFull;
  const bool full_target = c.target_color.range == Range::kFull;
  for (const auto& [name, value] : {std::pair<const char*, int>{"srcw", c.width},
                                    {"srch", c.height},
                                    {"dstw", c.target_size().width},
                                    {"dsth", c.target_size().height},
                                    {"src_format", from_format},
                                    {"dst_format", to_format},
                                    {"src_range", full_source},
                                    {"dst_range", full_target},
                                    {"sws_flags", flags}}) {
    sws->set_option(scaler.get(), name, value, 0);
  }
  if (sws->init_context(scaler.get(), nullptr, nullptr) < 0) return nullptr;
  sws->set_colors(scaler.get(), sws->matrix(c.source_color.matrix), full_source,
                  sws->matrix(c.target_color.matrix), full_target, 0, 1 << 16, 1 << 16);
  return [sws, scaler](const ConstImageView& source, const ImageView& target) {
    const Planes from(source);
    const Planes to(target);
    sws->scale(scaler.get(), from.data.data(), from.pitch.data(), 0, source.height, to.data.data(),
               to.pitch.data());
  };
}

#ifdef FRAMELANE_LIBYUV

bool has_libyuv() { return true; }

Convert make_libyuv(const Conversion& conversion) {
  using enum PixelFormat;
  struct Known {
    PixelFormat source, target;
    void (*run)(const ConstImageView&, const ImageView&);
  };
  constexpr Known kKnown[] = {{kBgra, kI420, run_libyuv<libyuv::ARGBToI420, 1, 3>},
                              {kBgra, kNv12, run_libyuv<libyuv::ARGBToNV12, 1, 2>},
                              {kBgra, kI422, run_libyuv<libyuv::ARGBToI422, 1, 3>},
                              {kBgra, kI444, run_libyuv<libyuv::ARGBToI444, 1, 3>},
                              {kBgr24, kI420, run_libyuv<libyuv::RGB24ToI420, 1, 3>},
                              {kI444, kI420, run_libyuv<libyuv::I444ToI420, 3, 3>},
                              {kI422, kI420, run_libyuv<libyuv::I422ToI420, 3, 3>},
                              {kYuyv, kI420, run_libyuv<libyuv::YUY2ToI420, 1, 3>},
                              {kYuyv, kI422, run_libyuv<libyuv::YUY2ToI422, 1, 3>},
                              {kYuyv, kNv12, run_libyuv<libyuv::YUY2ToNV12, 1, 2>},
                              {kUyvy, kI420, run_libyuv<libyuv::UYVYToI420, 1, 3>},
                              {kUyvy, kNv12, run_libyuv<libyuv::UYVYToNV12, 1, 2>},
                              {kI420, kNv12, run_libyuv<libyuv::I420ToNV12, 3, 2>},
                              {kNv12, kI420, run_libyuv<libyuv::NV12ToI420, 2, 3>}};
  const bool changes_color = !info(conversion.source).rgb &&
                             (conversion.source_color.matrix != conversion.target_color.matrix ||
                              conversion.source_color.range != conversion.target_color.range);
  if (changes_color || conversion.scaling) return nullptr;
  for (const Known& known : kKnown) {
    if (known.source == conversion.source && known.target == conversion.target) return known.run;
  }
  return nullptr;
}

#else

bool has_libyuv() { return false; }
Convert make_libyuv(const Conversion&) { return nullptr; }

#endif

#ifdef FRAMELANE_ZIMG

namespace {

zimg_image_format zimg_format(PixelFormat format, const PictureSize& size, const ColorSpec& color) {
  zimg_image_format result;
  zimg_image_format_default(&result, ZIMG_API_VERSION);
  result.width = static_cast<unsigned>(size.width);
  result.height = static_cast<unsigned>(size.height);
  result.pixel_type = ZIMG_PIXEL_BYTE;
  result.subsample_w = info(format).chroma_half_width ? 1 : 0;
  result.subsample_h = info(format).chroma_half_height ? 1 : 0;
  result.color_family = ZIMG_COLOR_YUV;
  result.matrix_coefficients = color.matrix == Matrix::kBt601   ? ZIMG_MATRIX_BT470_BG
                               : color.matrix == Matrix::kBt709 ? ZIMG_MATRIX_BT709
                                                                : ZIMG_MATRIX_BT2020_NCL;
  result.pixel_range = color.range == Range::kFull ? ZIMG_RANGE_FULL : ZIMG_RANGE_LIMITED;
  result.chroma_location = color.siting == Siting::kLeft     ? ZIMG_CHROMA_LEFT
                           : color.siting == Siting::kCenter ? ZIMG_CHROMA_CENTER
                                                             : ZIMG_CHROMA_TOP_LEFT;
  return result;
}

bool is_planar_yuv(PixelFormat format) {
  return format == PixelFormat::kI420 || format == PixelFormat::kI422 ||
         format == PixelFormat::kI444;
}

}  // namespace

bool has_zimg() { return true; }

Convert make_zimg(const Conversion& c) {
  if (!is_planar_yuv(c.source) || !is_planar_yuv(c.target)) return nullptr;
  if (c.scaling &&
      (c.scaling->crop != Rect{0, 0, c.width, c.height} ||
       c.scaling->place.size() != c.scaling->target || c.scaling->orientation != Orientation{} ||
       c.scaling->filter != ScaleFilter::kBicubic)) {
    return nullptr;
  }
  const zimg_image_format given = zimg_format(c.source, {c.width, c.height}, c.source_color);
  const zimg_image_format wanted = zimg_format(c.target, c.target_size(), c.target_color);
  zimg_graph_builder_params params;
  zimg_graph_builder_params_default(&params, ZIMG_API_VERSION);
  params.resample_filter = params.resample_filter_uv = ZIMG_RESIZE_BICUBIC;
  params.filter_param_a = params.filter_param_a_uv = 0;
  params.filter_param_b = params.filter_param_b_uv = 0.5;
  params.cpu_type = ZIMG_CPU_AUTO_64B;  // AVX-512 too, as FFmpeg's zscale asks for
  const std::shared_ptr<zimg_filter_graph> graph(zimg_filter_graph_build(&given, &wanted, &params),
                                                 zimg_filter_graph_free);
  std::size_t bytes = 0;
  if (graph == nullptr || zimg_filter_graph_get_tmp_size(graph.get(), &bytes) != 0) return nullptr;
  constexpr std::size_t kAlignment = 64;  // a frame's rows have it too
  const std::shared_ptr<void> scratch(
      std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment), std::free);
  return [graph, scratch](const ConstImageView& source, const ImageView& target) {
    zimg_image_buffer_const from{ZIMG_API_VERSION, {}};
    zimg_image_buffer to{ZIMG_API_VERSION, {}};
    for (std::size_t i = 0; i < kMaxPlanes; ++i) {
      from.plane[i] = {source.planes[i].data, source.planes[i].pitch, ZIMG_BUFFER_MAX};
      to.plane[i] = {target.planes[i].data, target.planes[i].pitch, ZIMG_BUFFER_MAX};
    }
    zimg_filter_graph_process(graph.get(), &from, &to, scratch.get(), nullptr, nullptr, nullptr,
                              nullptr);
  };
}

#else

bool has_zimg() { return false; }
Convert make_zimg(const Conversion&) { return nullptr; }

#endif

}  // namespace framelane::bench
