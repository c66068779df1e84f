/* The statements of an update or delete command, and the reply that sums them up. */
#ifndef SPILL_GATEWAY_TRANSLATE_STATEMENTS_H
#define SPILL_GATEWAY_TRANSLATE_STATEMENTS_H

#include "gateway/translate/change.h"

/* The sums over the statements so far, and the place of the present one. */
typedef struct spill_sums {
    bool updates; /* the reply has nModified and upserted */
    int64_t n, modified;
    bson_t upserted, errors; /* arrays */
    uint32_t upserted_count, error_count;
    bson_t rest;   /* other fields of the server's last reply */
    int32_t index; /* of the present statement */
    size_t count;  /* of the command's statements */
    spill_statement_numbers_t numbers;
} spill_sums_t;

/* Carry out one statement and add to the sums. False: a failure is stored. */
typedef bool (*spill_statement_fn)(spill_translation_t *translation, const bson_t *document,
                                   spill_sums_t *sums);

/*
 * Carry out the statements of the list `name`, one after the other. A failure of one becomes a
 * write error; if `ordered` is not false, it ends the command. *reply is initialized if the result
 * is true.
 */
bool spill_statements_run(spill_translation_t *translation, const char *name,
                          spill_statement_fn run, bson_t *reply);

/* A list of documents, in the body or in a sequence. */
typedef struct spill_statement_source {
    bson_iter_t each; /* of the body */
    bool in_body;
    const spill_wire_sequence_t *sequence; /* or NULL */
    size_t at;
} spill_statement_source_t;
spill_statement_source_t spill_statement_source(const spill_translation_t *translation,
                                                const char *name);
/* *document is static. False: the end, or an entry that is no document. */
bool spill_statement_next(spill_statement_source_t *source, bson_t *document);

/* The documents of a sequence were not checked before: is each field BSON? Else fail. */
bool spill_statement_check(spill_translation_t *translation, const bson_t *document);

/* Is the answer of `test` true for all statements? */
bool spill_statements_all(spill_translation_t *translation, const char *name,
                          bool (*test)(spill_translation_t *translation, const bson_t *document));

/* The list's only statement; false: it has none, several, or one that is not BSON. */
bool spill_statements_only(spill_translation_t *translation, const char *name, bson_t *document);

/* ---- of an update (translate_update.c) ------------------------------------------------------- */

/* Read a statement of the list `updates`. False: a failure is stored. */
bool spill_update_read(spill_translation_t *translation, const bson_t *document,
                       spill_statement_t *statement);

/* Append to `body` the client's command with this statement alone, and `guards` added to its q. */
void spill_update_body(const spill_translation_t *translation, const spill_statement_t *statement,
                       const bson_t *guards, bool upsert, bool many, bson_t *body);

/* ---- sums ------------------------------------------------------------------------------------ */

/* Add {index, <fields>} to the list of upserted documents. */
void spill_sums_upserted(spill_sums_t *sums, const bson_t *fields);

/*
 * Send a command with the present statement alone, under the statement's own number. A server that
 * does not know such numbers keeps no promise about retries, and gets the command without.
 */
bool spill_sums_call(spill_translation_t *translation, const spill_sums_t *sums, const bson_t *body,
                     bson_t *reply);

/* Copy the fields of the server's reply that are not sums; earlier ones are dropped. */
void spill_reply_rest(const bson_t *reply, bson_t *rest);

/*
 * Copy a statement with `guards` added to its filter `q`, without upsert, multi and limit, which
 * the caller appends.
 */
void spill_statement_guard(const bson_t *statement, const bson_t *q, const bson_t *guards,
                           bson_t *copy);

#endif
