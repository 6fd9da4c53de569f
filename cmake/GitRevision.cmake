# Sets FRAMELANE_REVISION to the commit that is checked out, or to "unknown" outside a checkout.
set(FRAMELANE_REVISION "" CACHE STRING "The commit, if git cannot tell it, as in a container's build")
if(FRAMELANE_REVISION)
  return()
endif()
set(FRAMELANE_REVISION "unknown")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND "${GIT_EXECUTABLE}" -c safe.directory=* describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE _revision
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _status)
  if(_status EQUAL 0 AND _revision)
    set(FRAMELANE_REVISION "${_revision}")
  endif()
endif()
