#include "daemon/devices_report.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const DevicesReport::Gpu& device) {
  const GpuReport& gpu = device.gpu;
  Json json{{"name", gpu.name},
            {"model", gpu.model},
            {"uuid", gpu.uuid},
            {"memory_bytes", gpu.memory_bytes},
            {"copy_engines", gpu.copy_engines},
            {"pcie_speed", gpu.pcie_speed},
            {"pcie_width", gpu.pcie_width},
            {"h2d_bytes_per_second", gpu.upload_rate},
            {"d2h_bytes_per_second", gpu.download_rate},
            {"both_bytes_per_second", gpu.both_rate},
            {"encoders", device.codecs.encoders},
            {"decoders", device.codecs.decoders}};
  if (!gpu.problem.empty()) json["problem"] = gpu.problem;
  return json;
}

std::string joined(const std::vector<std::string>& names) {
  std::string line;
  for (const std::string& name : names) line += ' ' + name;
  return line.empty() ? " none" : line;
}

std::string as_text(const DevicesReport::Gpu& device) {
  const GpuReport& gpu = device.gpu;
  std::string text =
      fmt::format("{}: {}, {:.1f} GiB, {} copy engines", gpu.name, gpu.model,
                  static_cast<double>(gpu.memory_bytes) / (1 << 30), gpu.copy_engines);
  if (gpu.pcie_width > 0) text += fmt::format(", {} x{}", gpu.pcie_speed, gpu.pcie_width);
  text += fmt::format(", {}\n", gpu.uuid);
  if (!gpu.problem.empty()) return text + fmt::format("  cannot be used: {}\n", gpu.problem);
  text +=
      fmt::format("  copies: to it {:.1f} GB/s, from it {:.1f} GB/s, both at once {:.1f} GB/s\n",
                  gpu.upload_rate * 1e-9, gpu.download_rate * 1e-9, gpu.both_rate * 1e-9);
  return text + fmt::format("  encodes:{}\n  decodes:{}\n", joined(device.codecs.encoders),
                            joined(device.codecs.decoders));
}

std::string list(const char* title, const std::vector<std::string>& names) {
  std::string text = fmt::format("{} ({}):\n", title, names.size());
  std::string line;
  for (const std::string& name : names) {
    if (line.size() + name.size() + 1 > 98) {
      text += fmt::format(" {}\n", line);
      line.clear();
    }
    line += ' ' + name;
  }
  if (!line.empty()) text += fmt::format(" {}\n", line);
  return text;
}

}  // namespace

std::string devices_json(const DevicesReport& report) {
  Json devices{{"devices",
                {{{"name", report.cpu_name},
                  {"model", report.cpu_model},
                  {"threads", report.threads},
                  {"simd", report.simd}}}},
               {"encoders", report.encoders},
               {"decoders", report.decoders}};
  for (const DevicesReport::Gpu& gpu : report.gpus) devices["devices"].push_back(as_json(gpu));
  if (report.gpus.empty()) devices["no_gpu"] = report.no_gpu;
  return devices.dump(2) + '\n';
}

std::string devices_text(const DevicesReport& report) {
  std::string text = fmt::format("{}: {}, {} threads, {}\n", report.cpu_name, report.cpu_model,
                                 report.threads, report.simd);
  for (const DevicesReport::Gpu& gpu : report.gpus) text += as_text(gpu);
  if (report.gpus.empty()) text += fmt::format("cuda: {}\n", report.no_gpu);
  return text + list("video encoders", report.encoders) + list("video decoders", report.decoders);
}

}  // namespace framelane
