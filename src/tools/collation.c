#include "tools/collation.h"

#include "store/raw_reader.h"

spill_code_t spill_collation_check(spill_raw_admin_t *admin, const char *collection,
                                   spill_error_t *error)
{
    bson_t listing;
    spill_code_t code = admin->ops->list(admin, &listing, error);
    if (code == SPILL_OK)
        code = spill_collation_refuse(&listing, collection, error);
    bson_destroy(&listing);
    return code;
}

spill_code_t spill_collation_check_at(const char *uri, const char *collection, spill_error_t *error)
{
    spill_raw_admin_t *admin;
    spill_code_t code = spill_raw_admin_open(uri, &admin, error);
    if (code == SPILL_OK)
        code = spill_collation_check(admin, collection, error);
    spill_raw_admin_close(admin);
    return code;
}
