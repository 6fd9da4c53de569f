# The CUDA backend. Sets FRAMELANE_WITH_CUDA. If that is true, also enables the language CUDA and adds
# two targets:
#   framelane::cuda_headers   NVIDIA's headers, for code that names a stream or an error
#   framelane::cuda_runtime   the runtime, for code that uses the backend. Libraries are compiled without
#                             a runtime (-cudart none). Each executable links one: NVIDIA's, or the
#                             stand-in of tests/cuda_runtime if the executable's property
#                             FRAMELANE_CUDA_STAND_IN is on.
set(FRAMELANE_CUDA AUTO CACHE STRING
    "CUDA backend: ON, OFF, or AUTO for ON where a CUDA toolkit of version 12 or later works")
set_property(CACHE FRAMELANE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(FRAMELANE_CUDA_ROOT /usr/local/cuda CACHE PATH "Where a CUDA toolkit may be that is not in PATH")
option(FRAMELANE_GPU_TESTS "Link the CUDA tests with NVIDIA's runtime, for a run on a real GPU" OFF)

# Sets the variable `nvcc` to a compiler that works. If there is none, sets `nvcc` to nothing and `why`
# to the reason.
function(framelane_find_nvcc nvcc why)
  set(${nvcc} "" PARENT_SCOPE)
  set(_hints "${FRAMELANE_CUDA_ROOT}/bin")
  if(CMAKE_CUDA_COMPILER)
    set(_nvcc "${CMAKE_CUDA_COMPILER}")
  elseif(NOT "$ENV{CUDACXX}" STREQUAL "")
    set(_nvcc "$ENV{CUDACXX}")
  else()
    # NO_CACHE, so that a toolkit that is installed or removed later is noticed.
    find_program(_nvcc nvcc HINTS ${_hints} NO_CACHE NO_CMAKE_PATH NO_CMAKE_ENVIRONMENT_PATH
                 NO_CMAKE_SYSTEM_PATH NO_CMAKE_INSTALL_PREFIX)
  endif()
  if(NOT _nvcc)
    set(${why} "no nvcc in PATH or ${_hints}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${_nvcc}" --version OUTPUT_VARIABLE _version ERROR_QUIET)
  if(NOT _version MATCHES "release ([0-9]+)\\.([0-9]+)" OR CMAKE_MATCH_1 LESS 12)
    set(${why} "${_nvcc} is no nvcc of version 12 or later" PARENT_SCOPE)
    return()
  endif()
  # A toolkit may be incomplete, or may not know this host compiler yet.
  set(_try "${PROJECT_BINARY_DIR}/CMakeFiles/try_cuda")
  file(WRITE "${_try}.cu" "#include <cuda_runtime.h>\n#include <span>\n"
       "__global__ void kernel(int* p) { *p = 1; }\nvoid call(int* p) { kernel<<<1, 1>>>(p); }\n"
       "int main() { return cudaFree(nullptr); }\n")
  execute_process(COMMAND "${_nvcc}" -std=c++20 -ccbin "${CMAKE_CXX_COMPILER}" -cudart static
                          -o "${_try}" "${_try}.cu"
                  RESULT_VARIABLE _status OUTPUT_VARIABLE _output ERROR_VARIABLE _output)
  file(WRITE "${_try}.log" "${_output}")
  if(NOT _status EQUAL 0)
    set(${why} "${_nvcc} with ${CMAKE_CXX_COMPILER} cannot build a C++20 program (${_try}.log)"
        PARENT_SCOPE)
    return()
  endif()
  set(${nvcc} "${_nvcc}" PARENT_SCOPE)
endfunction()

# A release has machine code for these architectures, and PTX of the newest one for GPUs that come
# later. Every other build has code for the oldest one that nvcc knows; newer GPUs run its PTX.
# scripts/bundle reads the next line.
set(_framelane_release_architectures 75 80 86 89 90 100 120)
function(framelane_cuda_architectures nvcc architectures)
  execute_process(COMMAND "${nvcc}" --list-gpu-arch OUTPUT_VARIABLE _known ERROR_QUIET)
  set(_result)
  foreach(_architecture IN LISTS _framelane_release_architectures)
    if(_known MATCHES "compute_${_architecture}\n")
      list(APPEND _result ${_architecture})
    endif()
  endforeach()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(POP_BACK _result _newest)
    list(TRANSFORM _result APPEND -real)
    list(APPEND _result ${_newest})
  else()
    list(GET _result 0 _result)
    if(FRAMELANE_SANITIZE)
      # The stand-in runs kernels on the host: machine code of a GPU would be made for nothing.
      string(APPEND _result "-virtual")
    endif()
  endif()
  set(${architectures} "${_result}" PARENT_SCOPE)
endfunction()

set(FRAMELANE_WITH_CUDA FALSE)
if(NOT FRAMELANE_CUDA STREQUAL "OFF")
  framelane_find_nvcc(_framelane_nvcc _framelane_why)
  if(_framelane_nvcc)
    set(FRAMELANE_WITH_CUDA TRUE)
  elseif(FRAMELANE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FRAMELANE_CUDA=ON, but ${_framelane_why}. Install a CUDA toolkit of version "
            "12 or later, name its compiler with -DCMAKE_CUDA_COMPILER=/path/to/nvcc or its folder "
            "with -DFRAMELANE_CUDA_ROOT=/path, or build without it (-DFRAMELANE_CUDA=OFF).")
  else()
    message(STATUS "CUDA backend: off (${_framelane_why})")
  endif()
endif()
if(NOT FRAMELANE_WITH_CUDA)
  return()
endif()

if(NOT CMAKE_CUDA_ARCHITECTURES)
  framelane_cuda_architectures("${_framelane_nvcc}" _framelane_architectures)
  set(CMAKE_CUDA_ARCHITECTURES "${_framelane_architectures}")
endif()
set(CMAKE_CUDA_COMPILER "${_framelane_nvcc}")
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 does not know the option that makes nvcc compile C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
# nvcc does not know all of the host compiler's options. Macros are given to nvcc itself, all other options
# to its host compiler.
string(TOUPPER "${CMAKE_BUILD_TYPE}" _framelane_config)
set(_framelane_host_flags ${CMAKE_CXX_FLAGS_${_framelane_config}})
separate_arguments(_framelane_host_flags)
set(CMAKE_CUDA_FLAGS_${_framelane_config} "")
foreach(_flag IN LISTS _framelane_host_flags)
  if(_flag MATCHES "^-D")
    string(APPEND CMAKE_CUDA_FLAGS_${_framelane_config} " ${_flag}")
  else()
    string(APPEND CMAKE_CUDA_FLAGS_${_framelane_config} " -Xcompiler=${_flag}")
  endif()
endforeach()
message(STATUS "CUDA backend: on (${_framelane_nvcc}, architectures ${CMAKE_CUDA_ARCHITECTURES})")

add_library(framelane_cuda_headers INTERFACE)
add_library(framelane::cuda_headers ALIAS framelane_cuda_headers)
target_include_directories(framelane_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_definitions(framelane_cuda_headers INTERFACE FRAMELANE_WITH_CUDA=1)

add_library(framelane_cuda_runtime INTERFACE)
add_library(framelane::cuda_runtime ALIAS framelane_cuda_runtime)
set(_framelane_in_tests "$<BOOL:$<TARGET_PROPERTY:FRAMELANE_CUDA_STAND_IN>>")
if(FRAMELANE_GPU_TESTS)
  target_link_libraries(framelane_cuda_runtime INTERFACE
    "$<${_framelane_in_tests}:framelane_cuda_no_stand_in>" CUDA::cudart_static)
else()
  target_link_libraries(framelane_cuda_runtime INTERFACE
    "$<IF:${_framelane_in_tests},framelane_cuda_stand_in,CUDA::cudart_static>")
endif()
