/**
 * \file
 * Marks what the shared library exports; everything else is hidden.
 */
#ifndef SPILLWAY_EXPORT_H
#define SPILLWAY_EXPORT_H

/**
 * \addtogroup spillway_version
 * \{
 */

#if defined(__GNUC__)
/** A function that the shared library exports. */
#define SPILL_API __attribute__((visibility("default")))
#else
#define SPILL_API
#endif

#ifdef __cplusplus
#define SPILL_BEGIN_DECLS extern "C" {
#define SPILL_END_DECLS }
#else
/** Begins the declarations of a header: C linkage in C++. */
#define SPILL_BEGIN_DECLS
/** Ends them. */
#define SPILL_END_DECLS
#endif

/** \} */

#endif
