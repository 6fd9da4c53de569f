// Not built for ThreadSanitizer: what it tests has one thread.
#include "daemon/devices_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace framelane {
namespace {

using Json = nlohmann::json;

DevicesReport with_gpu() {
  DevicesReport report;
  report.cpu_name = "cpu";
  report.cpu_model = "Processor";
  report.threads = 2;
  report.simd = "AVX2";
  report.encoders = {"libx264", "mjpeg"};
  report.decoders = {"h264"};
  DevicesReport::Gpu gpu;
  gpu.gpu.name = "cuda:0";
  gpu.gpu.model = "Card";
  gpu.gpu.uuid = "GPU-1234";
  gpu.gpu.memory_bytes = std::size_t{3} << 29;
  gpu.gpu.copy_engines = 3;
  gpu.gpu.pcie_speed = "32.0 GT/s PCIe";
  gpu.gpu.pcie_width = 16;
  gpu.gpu.upload_rate = 55.25e9;
  gpu.gpu.download_rate = 54e9;
  gpu.gpu.both_rate = 100e9;
  gpu.codecs = {{}, {"h264_nvdec", "hevc_nvdec"}};
  report.gpus.push_back(gpu);
  return report;
}

TEST(DevicesReportTest, TextIsForReading) {
  EXPECT_EQ(devices_text(with_gpu()),
            "cpu: Processor, 2 threads, AVX2\n"
            "cuda:0: Card, 1.5 GiB, 3 copy engines, 32.0 GT/s PCIe x16, GPU-1234\n"
            "  copies: to it 55.2 GB/s, from it 54.0 GB/s, both at once 100.0 GB/s\n"
            "  encodes: none\n"
            "  decodes: h264_nvdec hevc_nvdec\n"
            "video encoders (2):\n"
            "  libx264 mjpeg\n"
            "video decoders (1):\n"
            "  h264\n");
}

TEST(DevicesReportTest, JsonHasTheSame) {
  const Json json = Json::parse(devices_json(with_gpu()));
  EXPECT_EQ(json["devices"][0],
            Json({{"name", "cpu"}, {"model", "Processor"}, {"threads", 2}, {"simd", "AVX2"}}));
  EXPECT_EQ(json["devices"][1], Json({{"name", "cuda:0"},
                                      {"model", "Card"},
                                      {"uuid", "GPU-1234"},
                                      {"memory_bytes", 1610612736},
                                      {"copy_engines", 3},
                                      {"pcie_speed", "32.0 GT/s PCIe"},
                                      {"pcie_width", 16},
                                      {"h2d_bytes_per_second", 55.25e9},
                                      {"d2h_bytes_per_second", 54e9},
                                      {"both_bytes_per_second", 100e9},
                                      {"encoders", Json::array()},
                                      {"decoders", {"h264_nvdec", "hevc_nvdec"}}}));
  EXPECT_EQ(json["encoders"], Json({"libx264", "mjpeg"}));
  EXPECT_EQ(json["decoders"], Json::array({"h264"}));
  EXPECT_FALSE(json.contains("no_gpu"));
}

TEST(DevicesReportTest, AGpuThatCannotBeMeasuredSaysWhy) {
  DevicesReport report = with_gpu();
  report.gpus[0].gpu.problem = "cudaMemcpyAsync: out of memory";
  EXPECT_NE(devices_text(report).find("GPU-1234\n  cannot be used: cudaMemcpyAsync: out of memory\n"
                                      "video encoders"),
            std::string::npos);
  EXPECT_EQ(Json::parse(devices_json(report))["devices"][1]["problem"],
            "cudaMemcpyAsync: out of memory");
}

TEST(DevicesReportTest, WithoutAGpuTheReasonStandsInItsPlace) {
  DevicesReport report = with_gpu();
  report.gpus.clear();
  report.no_gpu = "there is no NVIDIA driver (libcuda.so.1)";
  EXPECT_NE(devices_text(report).find("AVX2\ncuda: there is no NVIDIA driver (libcuda.so.1)\n"),
            std::string::npos);
  const Json json = Json::parse(devices_json(report));
  EXPECT_EQ(json["devices"].size(), 1u);
  EXPECT_EQ(json["no_gpu"], "there is no NVIDIA driver (libcuda.so.1)");
}

}  // namespace
}  // namespace framelane
