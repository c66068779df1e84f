/* Load a shared library, and find its functions. */
#include "util/shared_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool spill_library_load(const char *library, const spill_library_function_t *functions,
                        size_t count, void *table, char *failure, size_t failure_size)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) {
        snprintf(failure, failure_size, "%s", dlerror());
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(loaded, functions[i].name);
        if (!function) {
            snprintf(failure, failure_size, "it has no function %s", functions[i].name);
            return false;
        }
        memcpy((char *)table + functions[i].offset, &function, sizeof function);
    }
    return true;
}

bool spill_library_is_loaded(const char *library)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (loaded)
        dlclose(loaded);
    return loaded != NULL;
}
