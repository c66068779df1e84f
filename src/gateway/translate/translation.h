/*
 * One command under translation: its context, calls of upstream, and errors. For the files
 * translate_*.c.
 *
 * Most functions return false after a failure, which they have stored in the translation. It
 * becomes the command's reply, or a write error of one statement.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_TRANSLATION_H
#define SPILL_GATEWAY_TRANSLATE_TRANSLATION_H

#include "definition/schema.h"
#include "gateway/translate/translate.h"
#include "store/server_code.h"

/* The place of a command that is a part of a bulkWrite (translate_bulk.c). */
typedef struct spill_bulk_place {
    int32_t index; /* of its first operation */
    size_t count;  /* of the bulkWrite's operations */
    struct spill_statement_numbers *numbers;
} spill_bulk_place_t;

typedef struct spill_translation {
    spill_served_t *served;
    const spill_served_collection_t *at; /* NULL: a command of the database, or of another place */
    const char *array;                   /* at->definition->array; "" without `at` */
    spill_client_connection_t *connection;
    uint8_t user[8]; /* the connection's */
    const spill_client_command_t *command;
    const spill_bulk_place_t *bulk; /* NULL: the command is one of its own */
    /* After a failure: the fields of an error reply without `ok`: {code, codeName, errmsg, ...}. */
    bson_t failure;
    bool failed;
    bool by_library; /* the failure is an error of the library, no refusal */
    bool counted;    /* a failure was counted */
    bool written; /* after that, maxTimeMS does not bound the reading of findAndModify's document */
    bool whole;   /* the failure is the command's, not only that of one statement */
    bool close;   /* the connection to upstream broke: nothing can be answered */
} spill_translation_t;

void spill_translation_init(spill_translation_t *translation, spill_served_t *served,
                            spill_client_connection_t *connection,
                            const spill_client_command_t *command);
void spill_translation_release(spill_translation_t *translation);

/* The path of a field of F's bookkeeping: "spill.stats$events.rev"; "" names the whole. */
enum { SPILL_BOOK_PATH_SIZE = SPILL_BOOKKEEPING_PATH_SIZE };
const char *spill_translation_book_path(const spill_translation_t *translation, const char *field,
                                        char path[SPILL_BOOK_PATH_SIZE]);

/* ---- failures -------------------------------------------------------------------------------- */

/* Store a failure; false. An earlier one is replaced. */
bool spill_translation_fail(spill_translation_t *translation, spill_server_code_t code,
                            const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Refuse an operation on F with code 115 and the document {spillway: {collection, field, operator,
 * reason}}. `reason` is a phrase; it says what to do instead. An empty text is left out.
 */
bool spill_translation_refuse_in(spill_translation_t *translation, const char *collection,
                                 const char *field, const char *operation, const char *reason);

/* The same for the collection of the command. */
bool spill_translation_refuse(spill_translation_t *translation, const char *field,
                              const char *operation, const char *reason);

/* Refuse an operation that would search or sort by elements in pages. `filter` may be NULL. */
bool spill_translation_refuse_search(spill_translation_t *translation, const bson_t *filter,
                                     const char *operation);

/* Refuse to read a view of a served collection; `operation` reads it. */
bool spill_translation_refuse_view(spill_translation_t *translation,
                                   const spill_served_view_t *view, const char *operation);

/* Refuse a change of a collection with pages or bookkeeping, with code 13. */
bool spill_translation_refuse_hidden(spill_translation_t *translation, const char *collection);

/* The same for the field `spill`; `place` is what names it. */
bool spill_translation_refuse_spill(spill_translation_t *translation, const char *place);

/* The overload error, which drivers retry. */
bool spill_translation_overloaded(spill_translation_t *translation, const char *what);

/* The command leaves too many gaps between its numbers for one owner. No retry can help. */
bool spill_translation_fail_gaps(spill_translation_t *translation);

/* Store the library's error. */
bool spill_translation_fail_library(spill_translation_t *translation, spill_code_t code,
                                    const spill_error_t *error);

/* Forget a failure that the caller handles. */
void spill_translation_recover(spill_translation_t *translation);

/* Keep an error document of upstream as the failure. `whole`: it is the whole reply. */
bool spill_translation_keep(spill_translation_t *translation, const bson_t *error, bool whole);

/* The same for the first of a reply's writeErrors. True: it has none. */
bool spill_translation_keep_write_error(spill_translation_t *translation, const bson_t *reply,
                                        bool whole);

/* Count and log the stored failure: as a refusal of the gateway's own, or as an error. */
void spill_translation_note_failure(spill_translation_t *translation);

/* Count the first error of a reply that a server made, unless a failure was counted. */
void spill_translation_note_reply(const spill_translation_t *translation, const bson_t *reply);

/* The code of the stored failure; 0: none. */
int spill_translation_failure_code(const spill_translation_t *translation);

/*
 * Is the stored failure that a document with the same unique key exists? FerretDB says so of a
 * findAndModify with code 1 and PostgreSQL's text, other servers with code 11000.
 */
bool spill_translation_is_duplicate(const spill_translation_t *translation);

/* After a failed call of upstream: may it have made the command? */
bool spill_translation_may_have_changed(const spill_translation_t *translation);

/* ---- time ------------------------------------------------------------------------------------ */

/*
 * Is there time left of maxTimeMS? Else fail with code 50. Ask before each step: a step that has
 * begun is completed, so the failure never leaves half a step.
 */
bool spill_translation_has_time(spill_translation_t *translation);

/* ---- upstream -------------------------------------------------------------------------------- */

/*
 * Send a command on the client's connection. The caller destroys *reply if the result is true; a
 * reply with ok: 0 is a failure. Write errors in a reply are none.
 */
bool spill_translation_call(spill_translation_t *translation, const bson_t *body, bson_t *reply);

/* The same with the client's own sections. */
bool spill_translation_forward(spill_translation_t *translation, bson_t *reply);

/* The code of a reply's error, or of its first statement's; 0: there is none. */
int spill_reply_error_code(const bson_t *reply);

/*
 * Append what a step of the gateway has from the client's command: $db, the session without its
 * numbers, the cluster's time, the API's version and the comment.
 */
void spill_translation_finish_step(const spill_translation_t *translation, bson_t *step);

/*
 * Copy the client's body without the fields in `except` (ended by NULL), without a write concern of
 * 0, and without statement numbers. `copy` is initialized.
 */
void spill_translation_copy_body(const spill_translation_t *translation, const char *const *except,
                                 bson_t *copy);

/* Find a field of the client's body. */
bool spill_translation_find(const spill_translation_t *translation, const char *name,
                            bson_iter_t *iter);

/* The client's document `name`; false: absent or of another type. *document is static. */
bool spill_translation_find_document(const spill_translation_t *translation, const char *name,
                                     bson_t *document);

/* Check the write concern of a step that the library makes: at most "majority". */
bool spill_translation_check_concern(spill_translation_t *translation);

/*
 * Find the collation of a statement (of an update or a delete), which has its own, or of another
 * command (`statement` NULL), which has it beside its filter.
 */
bool spill_translation_find_collation(const spill_translation_t *translation,
                                      const bson_t *statement, bson_iter_t *collation);

/*
 * Have pages that may hold elements which `filter` concerns? With a condition on _id, and without a
 * collation, only that owner's head is looked at, else the page collection. `statement`: of an
 * update or a delete, else NULL. False: a failure.
 */
bool spill_translation_find_pages(spill_translation_t *translation, const bson_t *statement,
                                  const bson_t *filter, bool *any);

/* Add what gives the statement's filter its meaning: its collation, and `let` of the command. */
void spill_translation_append_context(const spill_translation_t *translation,
                                      const bson_t *statement, bson_t *find);

/* ---- rights (rights.c) ----------------------------------------------------------------------- */

typedef enum spill_right { SPILL_RIGHT_FIND, SPILL_RIGHT_UPDATE, SPILL_RIGHT_DELETE } spill_right_t;

/*
 * Before the gateway works with its own rights, try on the client's connection whether the client
 * has the right on heads and pages. The result is kept for 60 s.
 */
bool spill_translation_require(spill_translation_t *translation, spill_right_t right);

/* The same for heads and pages of any definition; the result is not kept. */
bool spill_translation_probe(spill_translation_t *translation, spill_right_t right,
                             const spill_definition_t *definition);

#endif
