# framelane::warnings carries the warning, sanitizer and include settings every target of ours shares.
add_library(framelane_warnings INTERFACE)
add_library(framelane::warnings ALIAS framelane_warnings)

target_compile_options(framelane_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wcast-align -Wformat=2 -Wdouble-promotion
  $<$<BOOL:${FRAMELANE_WERROR}>:-Werror>)
target_include_directories(framelane_warnings INTERFACE "${PROJECT_SOURCE_DIR}")

if(FRAMELANE_SANITIZE)
  # -Wmaybe-uninitialized reports the sanitizers' own instrumentation.
  target_compile_options(framelane_warnings INTERFACE
    -fsanitize=${FRAMELANE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined
    -Wno-maybe-uninitialized)
  target_link_options(framelane_warnings INTERFACE -fsanitize=${FRAMELANE_SANITIZE})
  if(FRAMELANE_SANITIZE MATCHES "thread")
    target_compile_options(framelane_warnings INTERFACE -Wno-tsan)
  endif()
endif()
