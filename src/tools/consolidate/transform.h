/*
 * The transformed document: the form of an old collection's document in the joint collection. The
 * discriminator follows _id, and all other fields follow it, byte for byte:
 *
 *      {_id: 7, text: "hi"}   <->   {_id: {room: "a", id: 7}, room: "a", text: "hi"}
 *
 * If the plan says that no two collections share an _id, the _id stays the same. The transformed
 * _id depends on nothing else, so every run finds the document again without a lookup table.
 */
#ifndef SPILL_TOOLS_CONSOLIDATE_TRANSFORM_H
#define SPILL_TOOLS_CONSOLIDATE_TRANSFORM_H

#include <spillway/value.h>

/* The documents of one old collection in the joint one. Borrows. */
typedef struct spill_share {
    const char *field; /* the discriminator */
    spill_value_t value;
    bool keeps_ids; /* _id is the same in both */
} spill_share_t;

/* Append the transformed document's _id under a key. */
void spill_transform_id(const spill_share_t *slice, const spill_value_t *id, bson_t *to,
                        const char *key);

/*
 * Append the old document's _id under a key. An _id of another form is appended unchanged: the
 * application has written that document to the joint collection itself.
 */
void spill_transform_original_id(const spill_share_t *slice, const spill_value_t *id, bson_t *to,
                                 const char *key);

/*
 * Transform a document; `transformed` is initialized by the call. SPILL_REFUSED: the document has a
 * field of the discriminator's name already, or would be too large for a store. SPILL_CORRUPT: it
 * has no _id, or is malformed. O(size).
 */
spill_code_t spill_transform_make(const spill_share_t *slice, const bson_t *document,
                                  bson_t *transformed, spill_error_t *error);

/* Restore the old document, which the call initializes. Errors as spill_transform_make. */
spill_code_t spill_transform_reverse(const spill_share_t *slice, const bson_t *transformed,
                                     bson_t *document, spill_error_t *error);

/* The _id of a document. If it has none: null, and SPILL_CORRUPT. */
spill_code_t spill_transform_id_of(const bson_t *document, spill_value_t *id, spill_error_t *error);

/* A digest of documents in any order: their number, their bytes, and sums of two hashes of each. */
typedef struct spill_digest {
    int64_t documents;
    int64_t bytes;
    uint64_t sums[2];
} spill_digest_t;

void spill_digest_add(spill_digest_t *digest, const bson_t *document);
bool spill_digest_equal(const spill_digest_t *left, const spill_digest_t *right);

/* The sums as 32 hexadecimal digits. */
enum { SPILL_DIGEST_TEXT = 33 };
void spill_digest_text(const spill_digest_t *digest, char text[SPILL_DIGEST_TEXT]);

#endif
