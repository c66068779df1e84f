/* Marks what the shared library exports; everything else is hidden. */
#ifndef SPILLWAY_EXPORT_H
#define SPILLWAY_EXPORT_H

#if defined(__GNUC__)
#define SPILL_API __attribute__((visibility("default")))
#else
#define SPILL_API
#endif

#ifdef __cplusplus
#define SPILL_BEGIN_DECLS extern "C" {
#define SPILL_END_DECLS }
#else
#define SPILL_BEGIN_DECLS
#define SPILL_END_DECLS
#endif

#endif
