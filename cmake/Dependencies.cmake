# Finds the libraries that framelane is built with. Debian 12 and 13 have packages of all of them
# (scripts/install-dependencies).
find_package(Threads REQUIRED)
if(FRAMELANE_KERNELS_ONLY)
  # For a GPU machine that has compilers and little else. Without Highway only the kernels for CUDA
  # and the reference are built.
  find_package(PkgConfig)
  if(PkgConfig_FOUND)
    pkg_check_modules(HWY QUIET IMPORTED_TARGET libhwy)
  endif()
  return()
endif()
find_package(PkgConfig REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)  # the target's name before yaml-cpp 0.8
endif()
find_package(prometheus-cpp CONFIG REQUIRED COMPONENTS core)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(FFMPEG REQUIRED IMPORTED_TARGET
                  libavformat>=59.27 libavcodec>=59.37 libavutil>=57.28 libswresample>=4.7
                  libswscale>=6.7)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.87)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(PANGO REQUIRED IMPORTED_TARGET pangoft2 fontconfig)
# GLib asks for -pthread, which the precompiled headers would not fit.
set_property(TARGET PkgConfig::PANGO PROPERTY INTERFACE_COMPILE_OPTIONS "")
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
