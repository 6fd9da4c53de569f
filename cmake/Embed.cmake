# Writes a source that has the bytes of files in it, for daemon/web_files.hpp.
#
#   cmake -DOUTPUT=FILE.cpp "-DFILES=FILE;FILE…" -P Embed.cmake
#
# A file's type is that of its extension; an extension without one is an error.
set(_types
  .html "text/html\; charset=utf-8" .js text/javascript .mjs text/javascript .css text/css .svg image/svg+xml
  .txt "text/plain\; charset=utf-8")

set(_arrays "")
set(_entries "")
set(_number 0)
foreach(_file IN LISTS FILES)
  get_filename_component(_name "${_file}" NAME)
  get_filename_component(_extension "${_file}" LAST_EXT)
  list(FIND _types "${_extension}" _at)
  if(_at EQUAL -1)
    message(FATAL_ERROR "${_file}: no content type is known for ${_extension}; add it to cmake/Embed.cmake")
  endif()
  math(EXPR _at "${_at} + 1")
  list(GET _types ${_at} _type)
  file(SHA256 "${_file}" _hash)
  string(SUBSTRING "${_hash}" 0 20 _hash)
  file(SIZE "${_file}" _size)
  file(READ "${_file}" _bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" _bytes "${_bytes}")
  # Lines of 32 bytes: string literals of several megabytes in one line are slow to read.
  string(REPEAT "...." 32 _line)
  string(REGEX REPLACE "(${_line})" "\\1\"\n\"" _bytes "${_bytes}")
  string(APPEND _arrays "constexpr char kBytes${_number}[] =\n\"${_bytes}\";\n")
  string(APPEND _entries "    WebFile{\"${_name}\", \"${_type}\", \"\\\"${_hash}\\\"\", {kBytes${_number}, ${_size}}},\n")
  math(EXPR _number "${_number} + 1")
endforeach()

# Replaced only if it is another: what is unchanged is not compiled again.
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Written by cmake/Embed.cmake.
#include <array>

#include "daemon/web_files.hpp"

namespace framelane {
namespace {

@_arrays@
constexpr std::array<WebFile, @_number@> kFiles{{
@_entries@}};

}  // namespace

std::span<const WebFile> web_files() { return kFiles; }

}  // namespace framelane
]])
