# Language, warnings and instrumentation, for every target of the project.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# RelWithDebInfo keeps its assertions: they cost little beside a store operation.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(SPILLWAY_WERROR)
    add_compile_options(-Werror)
endif()

if(SPILLWAY_SANITIZE STREQUAL "address")
    set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_compile_definitions(SPILLWAY_ASAN)
elseif(SPILLWAY_SANITIZE STREQUAL "thread")
    set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
    add_compile_definitions(SPILLWAY_TSAN)
elseif(SPILLWAY_SANITIZE)
    message(FATAL_ERROR "SPILLWAY_SANITIZE is '${SPILLWAY_SANITIZE}': use address or thread")
endif()
if(SPILLWAY_SANITIZE)
    add_compile_options(${sanitize})
    add_link_options(${sanitize})
endif()

if(SPILLWAY_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(SPILLWAY_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()
