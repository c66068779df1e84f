# Installs the headers, the library, the program with its manual page and completion, and what lets
# others find the library: spillway.pc and a CMake package.

include(CMakePackageConfigHelpers)

set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Spillway)

install(TARGETS spillway EXPORT SpillwayTargets FILE_SET HEADERS)
install(EXPORT SpillwayTargets NAMESPACE Spillway:: DESTINATION ${cmake_folder})
configure_package_config_file(cmake/SpillwayConfig.cmake.in SpillwayConfig.cmake
    INSTALL_DESTINATION ${cmake_folder}
    NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(SpillwayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/SpillwayConfig.cmake
    ${PROJECT_BINARY_DIR}/SpillwayConfigVersion.cmake
    DESTINATION ${cmake_folder})

file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
cmake_path(GET prefix_from_pc PARENT_PATH prefix_from_pc)
# pkg-config wants a private requirement also for a shared library, whose users do not need it.
set(requires_private)
if(NOT BUILD_SHARED_LIBS)
    set(requires_private rocksdb)
endif()
configure_file(cmake/spillway.pc.in spillway.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/spillway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS spillway_program)
install(TARGETS spillway_serve RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/spillway)

install(FILES service/spillway-serve.service DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway)
install(FILES man/spillway.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES completions/spillway.bash RENAME spillway
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
