# shellcheck shell=bash
# Functions for the scripts of this folder and for .ci/run. They source this file from the root of the
# checkout.

# Installing needs root, building does not. Under sudo the script continues as the user who owns the
# checkout, so that no file in it belongs to root afterwards.
drop_root_of_sudo() {
  if [ "$(id -u)" = 0 ] && [ "${SUDO_UID:-0}" != 0 ] && [ "$(stat -c %u .)" = "$SUDO_UID" ]; then
    exec runuser -u "$SUDO_USER" -- env HOME="$(getent passwd "$SUDO_USER" | cut -d: -f6)" "$@"
  fi
}

# ThreadSanitizer cannot place its shadow memory if the kernel randomises addresses widely.
without_aslr() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R "$@"
  else
    "$@"
  fi
}

# build PRESET [-DNAME=VALUE...] : configures and builds, one run at a time per checkout.
build() {
  local preset=$1
  shift
  local log="build/$preset.log"
  local launcher=()
  # The sanitizers' builds use precompiled headers instead, with which ccache finds no hits.
  if [[ $preset != [at]san ]] && command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache
              -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  echo "building ($preset)"
  mkdir -p build
  (
    flock 9
    if ! { cmake --preset "$preset" "${launcher[@]}" "$@" &&
           without_aslr cmake --build "build/$preset"; } >"$log" 2>&1 </dev/null
    then
      grep -E -A 20 'FAILED:|CMake Error|error:' "$log" | head -n 80 >&2 || tail -n 40 "$log" >&2
      echo "the build failed; the whole log is in $log" >&2
      exit 1
    fi
  ) 9>build/.lock
}

# Libraries that belong to the machine and are never packed: libc and its parts, the driver.
# shellcheck disable=SC2034
machines_own_libraries='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl|nss_.*|thread_db)|libcuda|libnv.*)\.so'
