# Each bench/bench_*.c is one program; other C files there are helpers of them all.

file(GLOB bench_sources CONFIGURE_DEPENDS bench/bench_*.c)
file(GLOB bench_helpers CONFIGURE_DEPENDS bench/*.c)
set(gateway_helpers ${PROJECT_SOURCE_DIR}/bench/wire_client.c) # of bench_gateway and bench_gateway_push
list(REMOVE_ITEM bench_helpers ${bench_sources} ${gateway_helpers})

foreach(source IN LISTS bench_sources)
    cmake_path(GET source STEM name)
    add_executable(${name} ${source} ${bench_helpers})
    # Benchmarks compare with the engine itself, so they may call it.
    target_link_libraries(${name} PRIVATE spillway_internal PkgConfig::SPILLWAY_ROCKSDB
        PkgConfig::SPILLWAY_MONGOC)
    if(name MATCHES "^bench_gateway")
        target_sources(${name} PRIVATE ${gateway_helpers})
        target_link_libraries(${name} PRIVATE spillway_gateway)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endforeach()

# bench/peers needs the client libraries of what it compares with; bench/peers/run asks for it.
if(SPILLWAY_PEERS)
    pkg_check_modules(SPILLWAY_PEERS_LIBRARIES REQUIRED IMPORTED_TARGET hiredis libpq sqlite3 lmdb)
    file(GLOB peers_sources CONFIGURE_DEPENDS bench/peers/*.c)
    add_executable(bench_peers ${peers_sources} bench/measure.c)
    target_link_libraries(bench_peers PRIVATE spillway_internal PkgConfig::SPILLWAY_ROCKSDB
        PkgConfig::SPILLWAY_MONGOC PkgConfig::SPILLWAY_PEERS_LIBRARIES)
    set_target_properties(bench_peers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endif()
