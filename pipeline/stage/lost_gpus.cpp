#include "pipeline/stage/lost_gpus.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <set>

namespace framelane {
namespace {

std::mutex g_mutex;
std::set<std::string, std::less<>> g_lost;
std::atomic<bool> g_any{false};  // true once any GPU has been lost: before, nobody takes the mutex

}  // namespace

void note_lost_gpu(const std::string& name) {
  const std::lock_guard lock(g_mutex);
  g_lost.insert(name);
  g_any = true;
}

void forget_lost_gpu(const std::string& name) {
  const std::lock_guard lock(g_mutex);
  g_lost.erase(name);
}

bool is_lost_gpu(std::string_view name) {
  if (!g_any) return false;
  const std::lock_guard lock(g_mutex);
  return g_lost.contains(name);
}

}  // namespace framelane
