# framelane::warnings has the warnings, the sanitizers and the include folder that all our targets share.
add_library(framelane_warnings INTERFACE)
add_library(framelane::warnings ALIAS framelane_warnings)
target_include_directories(framelane_warnings INTERFACE "${PROJECT_SOURCE_DIR}")

# Adds options for C, C++ and CUDA. nvcc passes them on to its host compiler. Each option for nvcc is one
# word: ccache reads `-Xcompiler -Werror` as two options, and then cannot cache the file.
function(framelane_add_options)
  foreach(_option IN LISTS ARGN)
    target_compile_options(framelane_warnings INTERFACE
      "$<$<COMPILE_LANGUAGE:C,CXX>:${_option}>"
      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${_option}>")
  endforeach()
endfunction()

framelane_add_options(-Wall -Wextra -Wshadow)
# C has neither.
foreach(_option -Wnon-virtual-dtor -Woverloaded-virtual)
  target_compile_options(framelane_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${_option}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${_option}>)
endforeach()
framelane_add_options(-Wimplicit-fallthrough -Wcast-align -Wformat=2 -Wdouble-promotion)
# Not for CUDA: the code that nvcc generates for its host compiler causes pedantic warnings.
target_compile_options(framelane_warnings INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wpedantic>)
if(FRAMELANE_WERROR)
  framelane_add_options(-Werror)
  target_compile_options(framelane_warnings INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>")
endif()

if(FRAMELANE_SANITIZE)
  string(REPLACE "," ";" _sanitizers "${FRAMELANE_SANITIZE}")
  list(TRANSFORM _sanitizers PREPEND -fsanitize=)
  # -Wmaybe-uninitialized would warn about code that the sanitizers add.
  framelane_add_options(${_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=undefined
                        -Wno-maybe-uninitialized)
  target_link_options(framelane_warnings INTERFACE -fsanitize=${FRAMELANE_SANITIZE})
  if(FRAMELANE_SANITIZE MATCHES "address")
    # Not checked: null pointers and object sizes. AddressSanitizer reports them when the pointer is used.
    # The two checks would take a tenth of the build's time.
    framelane_add_options(-fno-sanitize=null -fno-sanitize=object-size)
    # Checks memory with calls and not with inlined code: a kernel compiles in two thirds of the time.
    target_compile_options(framelane_warnings INTERFACE
      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=--param=asan-instrumentation-with-call-threshold=0>")
  elseif(FRAMELANE_SANITIZE MATCHES "thread")
    framelane_add_options(-Wno-tsan)
  endif()
  # With a sanitizer, kernels run only on the host, in the stand-in runtime. Their GPU code never runs, so
  # it is not optimised.
  target_compile_options(framelane_warnings INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcicc=-O0;-Xptxas=-O0>")
endif()

if(FRAMELANE_PCH)
  # With the first option ccache sees which precompiled header a file is compiled with. The second makes the
  # compiler collect garbage less often: 10 % less time, 10 % more memory.
  target_compile_options(framelane_warnings INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess;--param=ggc-min-heapsize=524288>")
endif()

# framelane::quickly_compiled turns optimisation off, for code that takes longer to optimise than to run:
# tests and, with a sanitizer, everything except the kernels and the suites' loops over samples.
# framelane::quickly_sanitized does the same, but only in builds with a sanitizer.
add_library(framelane_quickly_compiled INTERFACE)
add_library(framelane::quickly_compiled ALIAS framelane_quickly_compiled)
target_compile_options(framelane_quickly_compiled INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
add_library(framelane_quickly_sanitized INTERFACE)
add_library(framelane::quickly_sanitized ALIAS framelane_quickly_sanitized)
if(FRAMELANE_SANITIZE)
  target_link_libraries(framelane_quickly_sanitized INTERFACE framelane_quickly_compiled)
endif()

# framelane_precompiled_headers(KIND LIBRARIES LIBRARY... HEADERS HEADER...) precompiles the standard headers
# that most files include, and HEADERS, with the options of LIBRARIES.
# framelane_precompile(TARGET KIND) compiles TARGET with them. It must have the same options, and at least the
# definitions that matter to these headers. A file then compiles even if it lacks an #include; scripts/lint
# builds without precompiled headers.
function(framelane_precompiled_headers kind)
  if(NOT FRAMELANE_PCH)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 _arg "" "" "LIBRARIES;HEADERS")
  set(_source "${PROJECT_BINARY_DIR}/precompiled.cpp")  # CMake precompiles only for a target with a source
  file(CONFIGURE OUTPUT "${_source}" CONTENT "")
  add_library(framelane_precompiled_${kind} OBJECT "${_source}")
  target_link_libraries(framelane_precompiled_${kind} PRIVATE framelane::warnings ${_arg_LIBRARIES})
  target_precompile_headers(framelane_precompiled_${kind} PRIVATE
    <algorithm> <array> <chrono> <condition_variable> <filesystem> <functional> <memory> <mutex>
    <optional> <span> <stop_token> <string> <thread> <vector> ${_arg_HEADERS})
endfunction()
function(framelane_precompile target kind)
  if(FRAMELANE_PCH)
    target_precompile_headers(${target} REUSE_FROM framelane_precompiled_${kind})
  endif()
endfunction()
