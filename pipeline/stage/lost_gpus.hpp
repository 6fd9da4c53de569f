#pragma once

#include <string>
#include <string_view>

namespace framelane {

// The GPUs that are lost ("cuda:N"), for those that would use one without its Device: FFmpeg's
// NVENC encoders open a GPU by its number. Any thread.

void note_lost_gpu(const std::string& name);
/// When nothing of this process uses it any more.
void forget_lost_gpu(const std::string& name);
bool is_lost_gpu(std::string_view name);

}  // namespace framelane
