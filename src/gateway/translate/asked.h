/*
 * What a client asked of documents with a served array, and how a document of upstream becomes the
 * one that the client gets: `spill` is removed, and an array with pages is completed.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_ASKED_H
#define SPILL_GATEWAY_TRANSLATE_ASKED_H

#include "gateway/translate/translation.h"

typedef enum spill_asked_kind {
    SPILL_ASKED_PASS,  /* the documents have neither F nor `spill` */
    SPILL_ASKED_STRIP, /* remove `spill` */
    SPILL_ASKED_WHOLE, /* F with all elements */
    SPILL_ASKED_SLICE, /* {F: {$slice: ...}} */
    SPILL_ASKED_REFUSE /* a projection that is not supported for an array with pages */
} spill_asked_kind_t;

/* Owned by a find or a cursor; spill_asked_release. */
typedef struct spill_asked {
    spill_asked_kind_t kind;
    int64_t skip;       /* $slice: elements passed over; below 0: counted from the end */
    int64_t limit;      /* $slice: most elements; without a skip, below 0: the last ones */
    bool skips;         /* $slice: [skip, limit] */
    bool whole;         /* an expression of the projection has the document as a whole */
    bool hides_id;      /* the client asked for no _id; upstream is asked for it */
    bool recounts;      /* the filter uses F: check after each batch that there are no pages */
    char *operation;    /* of a refusal: "$elemMatch" */
    bson_t *projection; /* as upstream gets it; NULL: none */
    bson_t *filter;     /* the client's; NULL: none */
    bson_t *options;    /* collation and let; NULL: a document cannot be read again */
} spill_asked_t;

void spill_asked_release(spill_asked_t *asked);

/*
 * Read the client's projection (may be NULL) and decide what to ask of upstream. False: it names
 * `spill`. (asked.c)
 */
bool spill_asked_read(const char *array, const bson_t *projection, spill_asked_t *asked);

/*
 * Make the client's document of upstream's. *out is initialized by the call if the result is true,
 * and empty (no fields) if *gone. *gone: the document was deleted meanwhile, or matches the filter
 * no longer. `room`: the most bytes that it may have. `end`: only elements with lower numbers
 * (INT64_MAX: all); for findAndModify. (complete.c)
 */
bool spill_asked_document(spill_translation_t *translation, const spill_asked_t *asked,
                          const bson_t *document, size_t room, int64_t end, bson_t *out,
                          bool *gone);

/* About how many bytes the client's document will have. */
size_t spill_asked_estimate(const spill_translation_t *translation, const spill_asked_t *asked,
                            const bson_t *document);

/* The bookkeeping of F in a document; false: the array is unmanaged, or the document has none. */
typedef struct spill_book {
    int64_t epoch, rev, first, pages, low, removed;
    bson_t gone; /* static */
    bool has_gone;
    const char *damaged; /* a field that is missing or wrong; its array may have pages */
} spill_book_t;
bool spill_book_read(const bson_t *document, const char *array, spill_book_t *book);

/* Fail the command if the bookkeeping that was read from the document is damaged. (complete.c) */
bool spill_book_check(spill_translation_t *translation, const bson_t *document,
                      const spill_book_t *book);

#endif
