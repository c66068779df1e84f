/*
 * One statement of an update, on unmanaged and on managed arrays. The client's own statement
 * changes an unmanaged array; its filter has more conditions. The library makes a $push to a
 * managed array. Any other change of a managed array needs an array without pages
 * (spill_change_adopted).
 *
 * A write error is a failure of the translation with `whole` false; a failed command has it true.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_CHANGE_H
#define SPILL_GATEWAY_TRANSLATE_CHANGE_H

#include "gateway/translate/asked.h"
#include "gateway/translate/statement.h"
#include "gateway/translate/statement_numbers.h"

/* What a look at a document that the filter finds shows. */
typedef struct spill_look {
    bool found;
    bool managed;
    int64_t pages;
    int64_t length;    /* of the array in the head; -1: there is none */
    int64_t bytes;     /* of the document */
    bson_t id;         /* {_id: ...} */
    spill_book_t book; /* without `gone` */
} spill_look_t;

/* What change_adopted.c sends for a managed array without pages. */
typedef struct spill_adopted_step {
    const bson_t *query;  /* the client's filter, the _id, and the guard */
    const bson_t *update; /* an array for a pipeline */
    bool pipeline;
    bool ends;            /* the session's entry ends: send it under the client's own numbers */
    const bson_t *before; /* the document as it was read, with `spill` */
} spill_adopted_step_t;

typedef struct spill_change spill_change_t;
struct spill_change {
    spill_translation_t *translation;
    const spill_statement_t *statement;
    spill_statement_numbers_t *numbers;
    int32_t number;   /* of this statement, if q names the owner; else -1 */
    int32_t taken;    /* then: its number for the owner that was found last */
    bson_t taken_for; /* {_id: ...} of that owner; empty: none */
    /*
     * Send the statement with `guards` added to its filter, as an update of many if `many`, and
     * add to n, modified and upserted.
     */
    bool (*attempt)(spill_change_t *change, const bson_t *guards, bool upsert, bool many);
    /*
     * Send a findAndModify for one document, with the client's options. If a document was found,
     * *matched is true, and the call adds to n and modified.
     */
    bool (*rewrite)(spill_change_t *change, const spill_adopted_step_t *step, bool *matched);
    /* Called before the library changes the document that was found; or NULL. */
    bool (*prepare)(spill_change_t *change, const spill_look_t *look);
    void *context; /* of these functions */
    int64_t n, modified;
    bson_t upserted; /* {_id: ...}, or empty */
    /* Set if the library has appended the elements, or if the statement was made before. */
    bool appended;
    bool repeated;   /* ... if it was */
    bool impossible; /* the library's last append failed because of what the document is */
    bool ended;      /* spill_change_adopted has ended the bookkeeping, and no more */
    bson_t owner;    /* {_id: ...} */
    spill_append_result_t result;
};

void spill_change_init(spill_change_t *change, spill_translation_t *translation,
                       const spill_statement_t *statement, spill_statement_numbers_t *numbers);
void spill_change_release(spill_change_t *change);

/* A statement for one document, or for many. */
bool spill_change_one(spill_change_t *change);
bool spill_change_many(spill_change_t *change);

/*
 * Any statement on the owner's managed array without pages: the client's own update, which gives
 * all elements new numbers (store/renumber.h). *matched is false if the head is gone or does not
 * match. An array with pages is refused, unless the session has made the statement before. If F
 * is missing, change->ended may become true: then the caller sends the statement for an unmanaged
 * array.
 * (change_adopted.c)
 */
bool spill_change_adopted(spill_change_t *change, const bson_t *id, bool *matched);

/* Append to a findAndModify what the client's statement has beside q and u. */
void spill_change_append_options(const spill_change_t *change, bson_t *command);

/* The operation that makes a retry of the client exact. False: the client numbers no writes. */
bool spill_change_session(spill_change_t *change, const spill_value_t *owner,
                          spill_session_op_t *session);

/*
 * Look at the first document that `filter` finds in the order of `sort` (may be NULL). `statement`
 * may have a collation.
 */
bool spill_look(spill_translation_t *translation, const bson_t *statement, const bson_t *filter,
                const bson_t *sort, spill_look_t *look);
void spill_look_release(spill_look_t *look);

/* Can the library make the statement in one step, and may the client? Else refuse it. */
bool spill_change_may_append(spill_change_t *change);

/* Does the library make the push, and not the client's own update? */
bool spill_change_is_appended(const spill_change_t *change);

/* Append the statement's elements to the owner's managed array. *matched: it still matches q. */
bool spill_change_append(spill_change_t *change, const bson_t *id, bool *matched);

/*
 * Is the owner known to be managed, so that a push begins with the library? A numbered write waits
 * until drivers repeat no write from the time when the array was unmanaged: such a repetition has
 * to reach the server's own record first.
 */
bool spill_change_is_known_managed(const spill_change_t *change, const spill_value_t *owner);

/* The conditions under which the statement may change an unmanaged array. `cautious`: a short one.
 */
void spill_change_guard(const spill_change_t *change, bool cautious, bson_t *guards);

/* Conditions on the head. The call appends to `guards`. */
void spill_guard_unmanaged(const spill_translation_t *translation, bson_t *guards);
void spill_guard_no_pages(const spill_translation_t *translation, bson_t *guards);
void spill_guard_short(const spill_translation_t *translation, int64_t longest, bson_t *guards);

/*
 * The length up to which an unmanaged array may grow by this push: the threshold, or fewer elements
 * of the push's size if they fill head_bytes_max. (A condition cannot ask for a document's size.)
 */
int64_t spill_change_longest(const spill_change_t *change);

/* Refuse a statement on `spill`, and one on the fields of a layout that is not served. */
bool spill_change_check_served(spill_translation_t *translation,
                               const spill_statement_t *statement);

/* Refuse a statement that cannot be made on this managed array; the message says what to do. */
bool spill_change_refuse(spill_translation_t *translation, const spill_statement_t *statement);

#endif
