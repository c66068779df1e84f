# What Spillway is built on. Imported targets are system includes: their headers give no warnings.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)

# The names match those of SpillwayConfig.cmake, through which users of the installed library come.
pkg_check_modules(SPILLWAY_BSON REQUIRED IMPORTED_TARGET libbson-1.0)
pkg_check_modules(SPILLWAY_MONGOC REQUIRED IMPORTED_TARGET libmongoc-1.0)
pkg_check_modules(SPILLWAY_ROCKSDB REQUIRED IMPORTED_TARGET rocksdb)
# Only the gateway (src/gateway) uses these two, and only src/service the third.
pkg_check_modules(SPILLWAY_LIBUV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(SPILLWAY_OPENSSL REQUIRED IMPORTED_TARGET openssl)
pkg_check_modules(SPILLWAY_MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(SPILLWAY_ZSTD REQUIRED IMPORTED_TARGET libzstd)

if(SPILLWAY_TESTS)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
