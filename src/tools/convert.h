/*
 * Convert: lay the arrays of a definition out in another way, beside the old documents, which stay
 * until spill_convert_finish. It is a copy (tools/copy.h) within one store: sequence numbers are
 * kept, it goes on where it was interrupted, and all of it is compared.
 */
#ifndef SPILL_TOOLS_CONVERT_H
#define SPILL_TOOLS_CONVERT_H

#include "tools/copy.h"

/*
 * A definition named `as`, laid out as `layout` and `keep` say (NULL: as the layout or `from`
 * does), with the bounds and names of `from` and collections of its own: `as` for the heads and
 * `as`.pages for the pages. Where documents change their shape (docs/how-to/copy.md) it has those
 * of a preset; ids, times, retention and statistics are those of `from` as far as the layout has
 * them; of a capped one that keeps the best a capped one is its like. SPILL_INVALID where `as` is
 * no name of a definition, a collection's name would be too long, or something is missing that the
 * layout needs, or `keep` is given for a layout that has no choice.
 */
spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, const spill_keep_t *keep,
                                      spill_definition_t *definition, spill_error_t *error);

/*
 * May `name` be converted into `as`, which need not be there? SPILL_INVALID where both are one
 * definition; SPILL_REFUSED where spill_convert_finish has begun to drop `name`. One read.
 */
spill_code_t spill_convert_check(spill_store_t *store, const char *name, const char *as,
                                 spill_error_t *error);

/*
 * Bring the arrays of `name` into those of `options->as`, a definition of the same store. Started
 * again, it goes on, and brings what was appended since. As spill_copy and
 * spill_convert_check.
 */
spill_code_t spill_convert(spill_store_t *store, const char *name,
                           const spill_copy_options_t *options, spill_copy_result_t *result,
                           spill_error_t *error);

/*
 * The same once more and, where no owner differs, drop `name` with its old documents (other fields
 * of heads that both share stay). Nobody may write to `name` from then on: what is appended after
 * an owner was compared goes with the rest. SPILL_REFUSED where something differs; nothing was
 * dropped by this call then. A mark in the catalog says that the dropping was begun: where it was,
 * this goes on after a crash, what is left has to be what `as` ends with, and spill_convert or
 * another `as` is SPILL_REFUSED. Without the mark all has to be the same. A definition that is
 * dropped otherwise, and may get its name again, takes spill_import_marks_drop.
 */
spill_code_t spill_convert_finish(spill_store_t *store, const char *name,
                                  const spill_copy_options_t *options, spill_copy_result_t *result,
                                  spill_error_t *error);

/* Was `name`, which is not there, dropped into `as`, which is? Two reads. */
spill_code_t spill_convert_finished(spill_store_t *store, const char *name, const char *as,
                                    bool *finished, spill_error_t *error);

#endif
