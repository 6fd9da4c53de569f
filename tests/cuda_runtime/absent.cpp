// Replaces the stand-in runtime in tests that are linked with NVIDIA's.
#include <cstdio>
#include <cstdlib>

#include "tests/cuda_runtime/control.hpp"

namespace framelane::stand_in {
namespace {

[[noreturn]] void refuse() {
  std::fputs("this test needs the stand-in CUDA runtime: derive it from StandInTest\n", stderr);
  std::abort();
}

}  // namespace

bool present() { return false; }
bool inside() { return false; }
void reset() {}
void fail_nth_call(std::string_view, int, cudaError_t) { refuse(); }
void skip_calls(std::string_view, int, int) { refuse(); }
void lose_device(cudaError_t) { refuse(); }
void lose_device_at_call(int, cudaError_t) { refuse(); }
void spoil_downloads(std::size_t) { refuse(); }
void hold() { refuse(); }
void hold(cudaStream_t) { refuse(); }
void release() { refuse(); }
void release(cudaStream_t) { refuse(); }
int calls(std::string_view) { refuse(); }
std::vector<std::string> called_functions() { refuse(); }
int pageable_copies() { refuse(); }
std::vector<cudaStream_t> streams() { refuse(); }
Live live() { refuse(); }
void forget_registrations() { refuse(); }
int overruns() { refuse(); }
int backward_times() { refuse(); }
int premature_copies() { refuse(); }
int lazy_loads() { refuse(); }
int spinning_waits() { refuse(); }
int misplaced_calls() { refuse(); }
void set_device_count(int) { refuse(); }
void set_driver_version(int) { refuse(); }
void set_read_only_registration(bool) { refuse(); }
void set_memory(std::size_t) { refuse(); }

}  // namespace framelane::stand_in
