#include "tools/collation.h"

#include "store/collation.h"

spill_code_t spill_collation_check(spill_foreign_t *foreign, const char *collection,
                                   spill_error_t *error)
{
    bson_t listing;
    spill_code_t code = foreign->ops->list(foreign, &listing, error);
    if (code == SPILL_OK)
        code = spill_collation_judge(&listing, collection, error);
    bson_destroy(&listing);
    return code;
}

spill_code_t spill_collation_check_at(const char *uri, const char *collection, spill_error_t *error)
{
    spill_foreign_t *foreign;
    spill_code_t code = spill_foreign_open(uri, &foreign, error);
    if (code == SPILL_OK)
        code = spill_collation_check(foreign, collection, error);
    spill_foreign_close(foreign);
    return code;
}
