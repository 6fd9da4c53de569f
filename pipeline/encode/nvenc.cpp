#include "pipeline/encode/nvenc.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace framelane {
namespace {

constexpr std::string_view kCuda = "cuda:";

bool has_option(const CodecCandidate& candidate, std::string_view key) {
  return std::ranges::find(candidate.options, key, &AvOption::key) != candidate.options.end();
}

using Clock = std::chrono::steady_clock;

struct Sessions {
  std::mutex mutex;
  std::map<std::string, int, std::less<>> by_gpu;
  std::map<std::string, Clock::time_point, std::less<>> refused_at;
};

Sessions& sessions() {
  static Sessions& instance = *new Sessions;  // an abandoned thread may close an encoder at exit
  return instance;
}

}  // namespace

bool is_nvenc(const CodecCandidate& candidate) { return candidate.name.ends_with("_nvenc"); }

bool chooses_gpu(const CodecCandidate& candidate, const AvOption& option) {
  return is_nvenc(candidate) && option.key == "gpu";
}

std::string gpu_of(const CodecCandidate& candidate) {
  if (!is_nvenc(candidate)) return {};
  const auto named = std::ranges::find(candidate.options, "gpu", &AvOption::key);
  return std::string(kCuda) + (named == candidate.options.end() ? "0" : named->value);
}

CodecCandidate choose_gpu(CodecCandidate candidate, std::string_view device) {
  if (is_nvenc(candidate) && device.starts_with(kCuda) && !has_option(candidate, "gpu")) {
    candidate.options.push_back({"gpu", std::string(device.substr(kCuda.size()))});
  }
  return candidate;
}

void release_at_once(CodecCandidate& candidate) {
  if (is_nvenc(candidate) && !has_option(candidate, "delay")) {
    candidate.options.push_back({"delay", "0"});
  }
}

NvencSession::NvencSession(std::string gpu) : gpu_(std::move(gpu)) {
  if (gpu_.empty()) return;
  const std::lock_guard lock(sessions().mutex);
  ++sessions().by_gpu[gpu_];
}

NvencSession::NvencSession(NvencSession&& other) noexcept : gpu_(std::exchange(other.gpu_, {})) {}

NvencSession& NvencSession::operator=(NvencSession&& other) noexcept {
  if (this == &other) return *this;
  end();
  gpu_ = std::exchange(other.gpu_, {});
  return *this;
}

void NvencSession::end() noexcept {
  if (gpu_.empty()) return;
  const std::lock_guard lock(sessions().mutex);
  --sessions().by_gpu.find(gpu_)->second;
  sessions().refused_at.erase(gpu_);
  gpu_.clear();
}

void NvencSession::note_refusal(const std::string& gpu) {
  const std::lock_guard lock(sessions().mutex);
  sessions().refused_at[gpu] = Clock::now();
}

bool NvencSession::lacking(std::string_view gpu) {
  const std::lock_guard lock(sessions().mutex);
  const auto found = sessions().refused_at.find(gpu);
  return found != sessions().refused_at.end() &&
         Clock::now() - found->second < std::chrono::minutes(1);
}

int NvencSession::count(std::string_view gpu) {
  const std::lock_guard lock(sessions().mutex);
  const auto found = sessions().by_gpu.find(gpu);
  return found == sessions().by_gpu.end() ? 0 : found->second;
}

// NV_ENC_ERR_OUT_OF_MEMORY and, from newer drivers, NV_ENC_ERR_INCOMPATIBLE_CLIENT_KEY. The first
// may also be what it says.
bool NvencSession::refused(std::string_view error) {
  return error.starts_with("OpenEncodeSessionEx failed") &&
         (error.find("(10)") != std::string_view::npos ||
          error.find("(21)") != std::string_view::npos);
}

}  // namespace framelane
