# Each fuzz/fuzz_<name>.c is a target for libFuzzer; fuzz/corpus/<name> are its inputs. With
# SPILLWAY_FUZZ (clang alone) the targets are fuzzers:  fuzz_<name> FOLDER fuzz/corpus/<name>
# Without it they replay their corpus, as tests.

file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)

foreach(source IN LISTS fuzz_sources)
    cmake_path(GET source STEM program)
    string(REPLACE fuzz_ "" name ${program})
    add_executable(${program} ${source})
    target_link_libraries(${program} PRIVATE spillway_internal)
    if(name STREQUAL records) # shares its stores and operations with tests/unit/test_embedded_malformed
        target_sources(${program} PRIVATE tests/support/exercise.c tests/support/disk.c)
        target_include_directories(${program} PRIVATE tests)
    endif()
    if(name MATCHES "^gateway_")
        target_link_libraries(${program} PRIVATE spillway_gateway)
    endif()
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    if(SPILLWAY_FUZZ)
        target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${program} PRIVATE fuzz/replay.c)
        add_test(NAME fuzz/${name} COMMAND ${program} ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
        set_tests_properties(fuzz/${name} PROPERTIES LABELS "fuzz;sanitized" TIMEOUT 600)
        add_dependencies(tests_sanitized ${program})
    endif()
endforeach()
