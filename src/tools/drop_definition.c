#include "tools/drop_definition.h"

#include "core/building.h"
#include "tools/convert_checkpoint.h"
#include "tools/import_checkpoint.h"
#include "util/error.h"

#include <string.h>

/* Drop what is left of an original: the caller does not need it. Its checkpoint continues to say
 * that the arrays are in the planned definition and that none is left here. */
static spill_code_t drop_original(spill_store_t *store, const char *name, const char *planned,
                                  spill_error_t *error)
{
    spill_convert_checkpoint_t checkpoint = {0};
    spill_code_t code = spill_convert_checkpoint_load(store, name, &checkpoint, error);
    bool ends = strcmp(checkpoint.as, planned) == 0;
    if (code == SPILL_OK && ends && !checkpoint.emptied)
        code = spill_convert_checkpoint_save(store, name, planned, true, &checkpoint, error);
    spill_convert_checkpoint_release(&checkpoint);
    if (code == SPILL_OK && !ends)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' has the arrays that `spillway migrate' copies to '%s': migrate "
                          "--finish drops it, and migrate --undo unmanages its arrays",
                          name, planned);
    return code == SPILL_OK ? spill_store_drop(store, name, error) : code;
}

/* Delete the building's checkpoint last: as long as it exists, the definition is incomplete. */
static spill_code_t drop_building(spill_store_t *store, const char *name, const char *original,
                                  spill_error_t *error)
{
    spill_convert_checkpoint_t checkpoint = {0};
    spill_definition_t definition;
    spill_code_t code = spill_convert_checkpoint_load(store, original, &checkpoint, error);
    bool ends = strcmp(checkpoint.as, name) == 0;
    spill_convert_checkpoint_release(&checkpoint);
    if (code == SPILL_OK) {
        code = spill_store_definition(store, original, &definition, error);
        ends = ends || code == SPILL_NOT_FOUND;
        code = code == SPILL_NOT_FOUND ? SPILL_OK : code;
    }
    if (code == SPILL_OK && ends)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is complete, and '%s' is being dropped: it may be the only copy. "
                          "Run `spillway migrate' with --finish; then it may be dropped",
                          name, original);
    if (code == SPILL_OK)
        code = spill_store_drop(store, name, error);
    return code == SPILL_OK ? spill_import_checkpoints_drop(store, name, error) : code;
}

spill_code_t spill_drop_definition(spill_store_t *store, const char *name, spill_error_t *error)
{
    spill_building_t building = {0};
    char planned[SPILL_NAME_SIZE];
    spill_code_t code = spill_building_of_original(store, name, planned, error);
    if (code == SPILL_OK && planned[0] != '\0')
        return drop_original(store, name, planned, error);
    if (code == SPILL_OK)
        code = spill_building_load(store, name, &building, error);
    if (code == SPILL_OK && building.stored) {
        code = drop_building(store, name, building.original, error);
    } else if (code == SPILL_OK) {
        code = spill_import_checkpoints_drop(store, name, error);
        if (code == SPILL_OK)
            code = spill_store_drop(store, name, error);
    }
    spill_building_release(&building);
    return code;
}
