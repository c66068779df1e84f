/* Load libmongoc. */
#include "store/mongo/driver.h"

#include "util/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libmongoc-1.0.so.0"

/* Where it is: a packager that brings its own gives a path, which may begin with $ORIGIN. */
#ifndef SPILLWAY_DRIVER
#define SPILLWAY_DRIVER LIBRARY
#endif

spill_driver_t spill_driver;

static char failure[256]; /* why libmongoc is not loaded; "": it is */

static bool find_functions(void *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define FUNCTION(name) {"mongoc_" #name, offsetof(spill_driver_t, name)},
        SPILL_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) {
            snprintf(failure, sizeof failure, "it has no function %s", functions[i].name);
            return false;
        }
        memcpy((char *)&spill_driver + functions[i].offset, &function, sizeof function);
    }
    return true;
}

/*
 * Turn off the driver's own log, which would go to the program's output. Errors have the causes. A
 * program that uses the driver itself keeps its log.
 */
static void load(void)
{
    void *before = dlopen(SPILLWAY_DRIVER, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *library = dlopen(SPILLWAY_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(failure, sizeof failure, "%s", dlerror());
        return;
    }
    if (!find_functions(library))
        return;
    if (!before)
        mongoc_log_set_handler(NULL, NULL);
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
