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

install(FILES service/spillway-serve.service service/spillway-sweep@.service
    DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway)
install(FILES monitoring/alerts.yml monitoring/dashboard.json monitoring/prometheus.yml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway/monitoring)
# Messages and alerts name pages as docs/..., so the folder keeps its name.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES man/spillway.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# The program prints the completions from the tables of its options.
foreach(shell bash zsh fish)
    add_custom_command(OUTPUT completions/spillway.${shell}
        COMMAND ${CMAKE_COMMAND} -E make_directory completions
        COMMAND spillway_program completion ${shell} > completions/spillway.${shell}
        DEPENDS spillway_program
        VERBATIM)
    list(APPEND completions ${PROJECT_BINARY_DIR}/completions/spillway.${shell})
endforeach()
add_custom_target(completions ALL DEPENDS ${completions})
install(FILES ${PROJECT_BINARY_DIR}/completions/spillway.bash RENAME spillway
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/completions/spillway.zsh RENAME _spillway
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_BINARY_DIR}/completions/spillway.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
