/* The release. CMakeLists.txt reads it from here. */
#ifndef SPILLWAY_VERSION_H
#define SPILLWAY_VERSION_H

#include <spillway/export.h>

#define SPILL_VERSION "0.1.0"

SPILL_BEGIN_DECLS

/* The version of the library that runs, which may differ from the header. Static. */
SPILL_API const char *spill_version(void);

SPILL_END_DECLS

#endif
