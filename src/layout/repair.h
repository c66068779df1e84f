/* Finish what dead clients left unfinished. */
#ifndef SPILL_LAYOUT_REPAIR_H
#define SPILL_LAYOUT_REPAIR_H

#include "layout/owner.h"

/*
 * Finish the operations that dead clients left unfinished: changes, seals, trims, and a drop that
 * has closed the tail. `report` gets each one first, with its document and a text. With `look_only`
 * the function only reports. An operation of a living client may be among them; both clients then
 * do its steps. The store finds pages without a head (SPILL_LIST_ORPHANS). `summed`: the caller has
 * compared the summary with the elements; it is compared again only if something was found.
 */
typedef void (*spill_half_done_fn)(void *context, int64_t page, const char *text);
spill_code_t spill_outlier_repair(spill_owner_t *owner, bool look_only, bool summed,
                                  spill_half_done_fn report, void *context, spill_error_t *error);

/* Describe pages without a head; delete them if a drop left them. */
void spill_orphan_describe(const spill_orphan_t *orphan, char *text, size_t text_bytes);
spill_code_t spill_outlier_repair_orphan(const spill_owner_t *owner, const spill_orphan_t *orphan,
                                         spill_error_t *error);

#endif
