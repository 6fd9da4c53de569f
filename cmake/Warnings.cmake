# framelane::warnings carries the warning, sanitizer and include settings every target of ours shares.
add_library(framelane_warnings INTERFACE)
add_library(framelane::warnings ALIAS framelane_warnings)
target_include_directories(framelane_warnings INTERFACE "${PROJECT_SOURCE_DIR}")

# The same for both compilers; nvcc hands them on to its host compiler.
function(framelane_add_options)
  foreach(_option IN LISTS ARGN)
    target_compile_options(framelane_warnings INTERFACE
      "$<$<COMPILE_LANGUAGE:C,CXX>:${_option}>"
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler \"${_option}\">")
  endforeach()
endfunction()

framelane_add_options(
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wcast-align -Wformat=2 -Wdouble-promotion)
# The code that nvcc makes for the host compiler is not pedantic itself.
target_compile_options(framelane_warnings INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wpedantic>)
if(FRAMELANE_WERROR)
  framelane_add_options(-Werror)
  target_compile_options(framelane_warnings INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--Werror all-warnings>")
endif()

if(FRAMELANE_SANITIZE)
  string(REPLACE "," ";" _sanitizers "${FRAMELANE_SANITIZE}")
  list(TRANSFORM _sanitizers PREPEND -fsanitize=)
  # -Wmaybe-uninitialized reports the sanitizers' own instrumentation.
  framelane_add_options(${_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=undefined
                        -Wno-maybe-uninitialized)
  target_link_options(framelane_warnings INTERFACE -fsanitize=${FRAMELANE_SANITIZE})
  if(FRAMELANE_SANITIZE MATCHES "thread")
    framelane_add_options(-Wno-tsan)
  endif()
endif()

if(FRAMELANE_PCH)
  # So that ccache sees which precompiled header a file is compiled with.
  target_compile_options(framelane_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# framelane_precompile(TARGET KIND HEADER...): the standard headers that most files include, and those
# given. The first target of a KIND compiles them, the others of that KIND use what it compiled: they must
# have the same options and at least its definitions. A build without it shows what a file forgets to include
# (scripts/lint).
function(framelane_precompile target kind)
  if(NOT FRAMELANE_PCH)
    return()
  endif()
  get_property(_owner GLOBAL PROPERTY FRAMELANE_PCH_${kind})
  if(_owner)
    target_precompile_headers(${target} REUSE_FROM ${_owner})
    return()
  endif()
  set_property(GLOBAL PROPERTY FRAMELANE_PCH_${kind} ${target})
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <chrono> <condition_variable> <filesystem> <functional> <memory> <mutex>
    <optional> <span> <stop_token> <string> <thread> <vector> ${ARGN})
endfunction()

# framelane::quickly_compiled is for what leaves the computing to others: tests, and under the
# sanitizers all but the kernels. Optimising that takes longer than running it.
add_library(framelane_quickly_compiled INTERFACE)
add_library(framelane::quickly_compiled ALIAS framelane_quickly_compiled)
target_compile_options(framelane_quickly_compiled INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
add_library(framelane_quickly_sanitized INTERFACE)
add_library(framelane::quickly_sanitized ALIAS framelane_quickly_sanitized)
if(FRAMELANE_SANITIZE)
  target_link_libraries(framelane_quickly_sanitized INTERFACE framelane_quickly_compiled)
endif()
