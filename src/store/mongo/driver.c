/* Load libmongoc. */
#include "store/mongo/driver.h"

#include "util/error.h"
#include "util/shared_library.h"

#include <pthread.h>
#include <stddef.h>

#define LIBRARY "libmongoc-1.0.so.0"

/* The name or the path to load. A package with its own copy defines a path, from $ORIGIN on. */
#ifndef SPILLWAY_DRIVER
#define SPILLWAY_DRIVER LIBRARY
#endif

spill_driver_t spill_driver;

static char failure[256]; /* why libmongoc is not loaded; "": it is */

static _Thread_local bson_string_t *kept; /* NULL: warnings are dropped */

void spill_driver_keep_warnings(bson_string_t *warnings)
{
    kept = warnings;
}

static void keep_warning(mongoc_log_level_t level, const char *domain, const char *message,
                         void *context)
{
    (void)domain;
    (void)context;
    if (kept && level == MONGOC_LOG_LEVEL_WARNING)
        bson_string_append_printf(kept, "%s\n", message);
}

/*
 * Turn off the driver's own log, which would go to the program's output. Errors have the causes. A
 * program that uses the driver itself keeps its log.
 */
static void load(void)
{
    static const spill_library_function_t functions[] = {
#define FUNCTION(name) {"mongoc_" #name, offsetof(spill_driver_t, name)},
        SPILL_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    bool before = spill_library_is_loaded(SPILLWAY_DRIVER);
    if (!spill_library_load(SPILLWAY_DRIVER, functions, sizeof functions / sizeof functions[0],
                            &spill_driver, failure, sizeof failure))
        return;
    if (!before)
        mongoc_log_set_handler(keep_warning, NULL);
    mongoc_init();
}

spill_code_t spill_driver_load(spill_error_t *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (failure[0] == '\0')
        return SPILL_OK;
    return spill_fail(error, SPILL_IO,
                      "stores on a server need " LIBRARY ", which cannot be loaded: %s: install "
                      "libmongoc 1.23 or later (Debian: libmongoc-1.0-0)",
                      failure);
}
