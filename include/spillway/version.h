/**
 * \file
 * The release. CMakeLists.txt reads it from here.
 */
#ifndef SPILLWAY_VERSION_H
#define SPILLWAY_VERSION_H

#include <spillway/export.h>

/**
 * \defgroup spillway_version Version
 * Which Spillway the program was compiled with, and which one runs; how structs and functions may
 * change between releases.
 *
 * Programs compiled with version 0.2 run with every later library of the same soname
 * (libspillway.so.0.2). These rules keep that so:
 *
 * - A function keeps its parameters and its meaning. Its symbol has the version SPILLWAY_0.2; a
 *   function that is added later has a later one, so the linker reports a library that is too old.
 * - Options structs have a `version`. The initializer (spill_append_options_init() and so on) sets
 *   it, together with every default. A later library accepts all earlier versions.
 * - Structs that the library fills have a `version`, too: it says up to which version their fields
 *   are set. They need no initialization. New fields are made of `reserved`, so the size stays the
 *   same. The library sets `reserved` to 0: on an older library a new field reads as 0, and
 *   `version` shows that it was not set.
 * - A struct that the library allocates (#spill_slice_t, #spill_bucket_slice_t) or passes to a
 *   callback (#spill_finding_t, #spill_log_loss_t, #spill_bucket_window_t) may get fields at its
 *   end. Use it by pointer and do not copy it.
 * - #spill_value_t, #spill_element_t, #spill_bucket_element_t, #spill_bucket_base_t and #spill_op_t
 *   keep their layout, because programs make arrays of them.
 * - Codes, reasons and other enumerators get new values at their end. Handle values that you do not
 *   know: treat an unknown code as a failure.
 * \{
 */

/** The version of these headers: major, minor, patch. */
#define SPILL_VERSION "0.2.0"

SPILL_BEGIN_DECLS

/**
 * Return the version of the library that runs, which may differ from the header's.
 *
 * \return a static text such as "0.2.0", never NULL
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API const char *spill_version(void);

SPILL_END_DECLS

/** \} */

#endif
