#include "tools/convert_checkpoint.h"

#include "store/job.h"
#include "util/error.h"

#include <stdio.h>

static const spill_job_field_t fields[] = {
    {.name = "as",
     .type = SPILL_JOB_TEXT,
     .offset = offsetof(spill_convert_checkpoint_t, as),
     .size = SPILL_NAME_SIZE,
     .required = true},
    {.name = "emptied",
     .type = SPILL_JOB_FLAG,
     .offset = offsetof(spill_convert_checkpoint_t, emptied),
     .required = true},
};

static const spill_job_kind_t kind = {.suffix = ":convert",
                                      .activity = "the conversion of",
                                      .named = true,
                                      .fields = fields,
                                      .count = sizeof fields / sizeof *fields,
                                      .size = sizeof(spill_convert_checkpoint_t),
                                      .stored = offsetof(spill_convert_checkpoint_t, stored)};

bool spill_convert_checkpoint_stands(const spill_convert_checkpoint_t *checkpoint)
{
    return checkpoint->stored && !checkpoint->emptied;
}

void spill_convert_checkpoint_release(spill_convert_checkpoint_t *checkpoint)
{
    spill_job_release(&kind, checkpoint);
}

spill_code_t spill_convert_checkpoint_load(spill_store_t *store, const char *name,
                                           spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error)
{
    return spill_job_load(&(spill_job_catalog_t){.store = store}, &kind, name, checkpoint, error);
}

spill_code_t spill_convert_checkpoint_save(spill_store_t *store, const char *name, const char *as,
                                           bool emptied, spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error)
{
    spill_convert_checkpoint_t next = {.emptied = emptied, .stored = checkpoint->stored};
    snprintf(next.as, sizeof next.as, "%s", as);
    SPILL_TRY(spill_job_save(&(spill_job_catalog_t){.store = store}, &kind, name, &next, error));
    *checkpoint = next;
    return SPILL_OK;
}
