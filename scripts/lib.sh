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

# show_progress LOG : copies a build's output to LOG and shows how far it is: on one line of a
# terminal that changes, elsewhere a line every ten percent.
show_progress() {
  local terminal=no
  [ -t 1 ] && terminal=yes
  awk -v log_file="$1" -v terminal="$terminal" '
    { print > log_file; fflush(log_file) }
    match($0, /^\[ *[0-9]+%\]/) {
      percent = substr($0, 2, RLENGTH - 3) + 0
      if (terminal == "yes") {
        name = $NF
        sub(/.*\//, "", name)
        printf "\r\033[K[%3d %%] %s", percent, substr(name, 1, 60)
        fflush()
      } else if (percent >= shown + 10) {
        shown = percent - percent % 10
        printf "[%3d %%]\n", shown
        fflush()
      }
    }
    END { if (terminal == "yes") printf "\r\033[K" }'
}

# build PRESET [-DNAME=VALUE...] [--target TARGET...] : configures and builds, one run at a time per
# preset and checkout.
build() {
  local preset=$1
  shift
  local definitions=() targets=()
  while [ $# -gt 0 ]; do
    if [ "$1" = --target ]; then
      shift
      targets=(--target "$@")
      break
    fi
    definitions+=("$1")
    shift
  done
  local log="build/$preset.log"
  if command -v ccache >/dev/null; then
    definitions+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache
                  -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    # Precompiled headers are cached too, and checkouts in different folders share what is cached.
    # (Paths in debug information are then those of the checkout that compiled a file first.)
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  fi
  echo "building ($preset)"
  mkdir -p build
  (
    set -o pipefail  # a failing build must fail, also in a script that does not ask for it
    flock -n 9 || { echo "waiting for another build of $preset"; flock 9; }
    exec </dev/null
    rm -f "$log".*
    if ! { cmake --preset "$preset" -DFRAMELANE_PCH=ON "${definitions[@]}" >"$log.configure" 2>&1 &&
           NINJA_STATUS='[%p] ' without_aslr cmake --build "build/$preset" "${targets[@]}" 2>&1 |
             show_progress "$log.build"; }
    then
      cat "$log".* >"$log"
      grep -E -A 20 'FAILED:|CMake Error|error:' "$log" | head -n 80 >&2 || tail -n 40 "$log" >&2
      echo "the build failed; the whole log is in $log" >&2
      exit 1
    fi
    cat "$log.configure" "$log.build" >"$log"
    rm "$log.configure" "$log.build"
  ) 9>"build/.$preset.lock"
}

# in_background COMMAND... : starts a command and sets `background` to its pid. It has a process group of
# its own (set -m), so that all of it ends with the script. Replaces the script's EXIT and INT traps.
in_background() {
  trap end_background EXIT  # also when TERM or HUP ends the script
  trap 'exit 130' INT
  set -m
  "$@" </dev/null &
  # shellcheck disable=SC2034
  background=$!
  set +m
}
# at_low_priority COMMAND... : runs a command, which may be a function, at the lowest priority.
at_low_priority() (
  renice -n 19 -p "$BASHPID" >/dev/null
  "$@"
)
end_background() {
  local groups
  mapfile -t groups < <(jobs -pr)
  [ ${#groups[@]} = 0 ] || kill -- "${groups[@]/#/-}" 2>/dev/null || true
}

# The Debian release of this machine, such as bookworm; empty elsewhere.
this_release() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

# The version of a package of this checkout, without Debian's revision: the program's version at the commit of
# its tag (v0.1.0); elsewhere a snapshot, which is older than that version and newer than every snapshot of an
# earlier commit: 0.1.0~20261128.101500.4a0f10b4ab12, with the commit's time in UTC.
package_version() {
  local version snapshot='' git=(git -c safe.directory='*')
  version=$(sed -n 's/^project(framelane VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  if [ "$("${git[@]}" describe --always --tags --dirty --match "v$version")" != "v$version" ]; then
    snapshot=$(TZ=UTC0 "${git[@]}" show -s --abbrev=12 --format=%cd.%h --date=format-local:%Y%m%d.%H%M%S)
    "${git[@]}" diff --quiet HEAD || snapshot+=+changed
  fi
  echo "$version${snapshot:+~$snapshot}"
}

# Copies the tracked files, as they are in the working tree, to FOLDER.
copy_checkout() {
  mkdir -p "$1"
  git -c safe.directory='*' ls-files -z | tar -c --null -T - | tar -x --no-same-owner -C "$1"
}

# in_container ROOT COMMAND...: runs a command as root in a container that uses this machine's network.
# The container may not lock memory, like the strictest containers. /tmp is a folder, as on most
# machines.
in_container() {
  SYSTEMD_NSPAWN_TMPFS_TMP=0 systemd-nspawn --quiet --register=no --keep-unit --as-pid2 \
    --resolv-conf=copy-host --hostname=tried -D "$@" </dev/null
}

# Libraries that belong to the machine and are never packed: libc and its parts, the driver.
# shellcheck disable=SC2034
machines_own_libraries='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl|nss_.*|thread_db)|libcuda|libnv.*)\.so'
