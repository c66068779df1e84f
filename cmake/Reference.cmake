# `cmake --build ... --target reference` makes the C reference with Doxygen: HTML, and manual pages of
# section 3. tools/c_reference also checks the comments. The installation includes both if they were
# made.

set(reference ${PROJECT_BINARY_DIR}/reference)
add_custom_target(reference
    COMMAND ${PROJECT_SOURCE_DIR}/tools/c_reference ${reference}
    USES_TERMINAL
    VERBATIM)
install(DIRECTORY ${reference}/html DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY ${reference}/man/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
