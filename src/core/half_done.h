/* Search all owners for what dead clients left, without a look at the elements. */
#ifndef SPILL_CORE_HALF_DONE_H
#define SPILL_CORE_HALF_DONE_H

#include <spillway/verify.h>

/*
 * Report what repair would finish (the table in layout/repair.c), and pages without a head. Unlike
 * spill_array_repair with look_only, check no document, count or number. `report` is called with
 * invariant 7. SPILL_CORRUPT: a head cannot be read; the other owners were searched.
 *
 * Cost: the heads' states, which a server returns for many owners at a time. One or two reads for
 * an owner with a watermark or, with keep oldest, with pages. One search for pages without a head.
 */
spill_code_t spill_find_half_done(spill_array_t *array, spill_finding_fn report, void *context,
                                  spill_error_t *error);

#endif
