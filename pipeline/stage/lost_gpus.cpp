#include "pipeline/stage/lost_gpus.hpp"

#include <functional>
#include <mutex>
#include <set>

namespace framelane {
namespace {

std::mutex g_mutex;
std::set<std::string, std::less<>> g_lost;

}  // namespace

void note_lost_gpu(const std::string& name) {
  const std::lock_guard lock(g_mutex);
  g_lost.insert(name);
}

void forget_lost_gpu(const std::string& name) {
  const std::lock_guard lock(g_mutex);
  g_lost.erase(name);
}

bool is_lost_gpu(std::string_view name) {
  const std::lock_guard lock(g_mutex);
  return g_lost.contains(name);
}

}  // namespace framelane
