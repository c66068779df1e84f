/* The ranges of a definition's numbers. */
#ifndef SPILL_DEFINITION_LIMITS_H
#define SPILL_DEFINITION_LIMITS_H

/* Elements of a head, and of a page. */
#define SPILL_ELEMENTS_MAX 1000000

/*
 * Bytes of a document. The upper limit is below the 16 MiB of the databases, because the last
 * element may exceed the bound. The lower limit grows with the window of operations: each operation
 * takes up to SPILL_OP_BYTES_MAX. The rest is for names, numbers and the owner, which a page has
 * twice.
 */
#define SPILL_DOCUMENT_BYTES_HIGHEST (15 * 1024 * 1024)
#define SPILL_DOCUMENT_BYTES_LOWEST (16 * 1024)
#define SPILL_OP_BYTES_MAX 130
#define SPILL_BOOKKEEPING_BYTES_MAX (6 * 1024)

#define SPILL_OP_WINDOW_MAX 10000

/* Layout subset: bytes of each element's entry in the summary. */
#define SPILL_TOP_ENTRY_BYTES_MAX 52

/* Retention: 2^53 elements, and a thousand years of 366 days. */
#define SPILL_KEEP_ELEMENTS_MAX (INT64_C(1) << 53)
#define SPILL_KEEP_SECONDS_MAX (INT64_C(366000) * 86400)

#endif
