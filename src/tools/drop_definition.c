#include "tools/drop_definition.h"

#include "core/forming.h"
#include "tools/convert_mark.h"
#include "tools/import_mark.h"
#include "util/error.h"

#include <string.h>

/* What is left of an original is not needed, says who drops it. The mark says on that its arrays
 * are in the planned one, and that none is left here. */
static spill_code_t drop_original(spill_store_t *store, const char *name, const char *planned,
                                  spill_error_t *error)
{
    spill_convert_mark_t mark = {0};
    spill_code_t code = spill_convert_mark_load(store, name, &mark, error);
    bool ends = strcmp(mark.as, planned) == 0;
    if (code == SPILL_OK && ends && !mark.emptied)
        code = spill_convert_mark_save(store, name, planned, true, &mark, error);
    spill_convert_mark_release(&mark);
    if (code == SPILL_OK && !ends)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' has the arrays that `spillway migrate' brings to '%s': its "
                          "--finish drops it, or --undo makes plain arrays of them",
                          name, planned);
    return code == SPILL_OK ? spill_store_drop(store, name, error) : code;
}

/* Its mark goes last: while it is there, it is not taken for a definition that is whole. */
static spill_code_t drop_forming(spill_store_t *store, const char *name, const char *original,
                                 spill_error_t *error)
{
    spill_convert_mark_t mark = {0};
    spill_definition_t definition;
    spill_code_t code = spill_convert_mark_load(store, original, &mark, error);
    bool ends = strcmp(mark.as, name) == 0;
    spill_convert_mark_release(&mark);
    if (code == SPILL_OK) {
        code = spill_store_definition(store, original, &definition, error);
        ends = ends || code == SPILL_NOT_FOUND;
        code = code == SPILL_NOT_FOUND ? SPILL_OK : code;
    }
    if (code == SPILL_OK && ends)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is complete, and '%s' is being dropped: it may be the only copy. "
                          "`spillway migrate' with --finish ends that, and then it may be dropped",
                          name, original);
    if (code == SPILL_OK)
        code = spill_store_drop(store, name, error);
    return code == SPILL_OK ? spill_import_marks_drop(store, name, error) : code;
}

spill_code_t spill_drop_definition(spill_store_t *store, const char *name, spill_error_t *error)
{
    spill_forming_t forming = {0};
    char planned[SPILL_NAME_SIZE];
    spill_code_t code = spill_forming_of_original(store, name, planned, error);
    if (code == SPILL_OK && planned[0] != '\0')
        return drop_original(store, name, planned, error);
    if (code == SPILL_OK)
        code = spill_forming_load(store, name, &forming, error);
    if (code == SPILL_OK && forming.stored) {
        code = drop_forming(store, name, forming.original, error);
    } else if (code == SPILL_OK) {
        code = spill_import_marks_drop(store, name, error);
        if (code == SPILL_OK)
            code = spill_store_drop(store, name, error);
    }
    spill_forming_release(&forming);
    return code;
}
