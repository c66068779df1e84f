# Language, warnings and instrumentation, for every target of the project.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# RelWithDebInfo keeps its assertions: they cost little beside a store operation.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")

# Only for targets of src/: a test names a symbol of the linker.
set(source_warnings
    $<$<COMPILE_LANG_AND_ID:C,Clang>:-Wreserved-identifier>
    $<$<COMPILE_LANG_AND_ID:C,Clang>:-Wreserved-macro-identifier>)

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

# Protections against memory errors: stack protector, checked libc calls, read-only relocations,
# position-independent executables. The sanitizers check more and do not combine with them.
if(SPILLWAY_HARDEN AND NOT SPILLWAY_SANITIZE)
    include(CheckPIESupported)
    check_pie_supported()
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
    add_compile_options(-fstack-protector-strong)
    add_link_options(LINKER:-z,relro LINKER:-z,now)
    # glibc checks calls only in optimized code. A level from the caller's flags stays.
    set(language_flags "$ENV{CPPFLAGS} ${CMAKE_C_FLAGS}")
    if(NOT language_flags MATCHES "_FORTIFY_SOURCE")
        if(CMAKE_C_FLAGS MATCHES "-O[1-9s]")
            add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
        else()
            set(optimized $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
            add_compile_options("$<${optimized}:-U_FORTIFY_SOURCE>"
                "$<${optimized}:-D_FORTIFY_SOURCE=2>")
        endif()
    endif()
endif()

if(SPILLWAY_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(SPILLWAY_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)

    # The failing branch of an assertion never runs. Only targets of src/ define NDEBUG: tests
    # assert what they check.
    set(source_definitions NDEBUG)
endif()
