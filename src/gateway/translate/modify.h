/*
 * A findAndModify in progress: the commands that the gateway sends for it (modify_send.c), and the
 * replies (modify_reply.c). For translate_modify.c.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_MODIFY_H
#define SPILL_GATEWAY_TRANSLATE_MODIFY_H

#include "gateway/translate/change.h"

typedef struct spill_modify {
    spill_translation_t *translation;
    spill_statement_t statement; /* q alone for a removal */
    spill_asked_t asked;         /* of the document that is returned */
    bson_t query;                /* the client's, with the _id that sort chooses */
    bool chosen;                 /* sort has chosen one */
    bool removes, returns_new;
    bool done;     /* some document was changed */
    bson_t answer; /* the server's last reply */
    bool answered;
    bson_t before; /* the document before the change, as the server has it; or empty */
    bson_t made;   /* ... and as the client gets it, perhaps without a field */
    bool has_made; /* the document was there when `before` was read */
} spill_modify_t;

/* ---- commands of the server ------------------------------------------------------------------ */

/* Has the last command found a document, or inserted one? */
bool spill_modify_found(const spill_modify_t *modify);

/* Send the client's command with this query, and keep the answer. */
bool spill_modify_send(spill_modify_t *modify, const bson_t *query, bool upsert);

/* The functions of spill_change_t; its context is the spill_modify_t. */
bool spill_modify_attempt(spill_change_t *change, const bson_t *guards, bool upsert, bool many);
bool spill_modify_rewrite(spill_change_t *change, const spill_adopted_step_t *step, bool *matched);

/* See spill_delete_head_fn (removal.h). */
bool spill_modify_delete_head(void *context, const bson_t *query, bool *removed);

/* ---- replies --------------------------------------------------------------------------------- */

/*
 * Before anything is changed: can the document be returned? Read it, if it is returned as it was.
 */
bool spill_modify_check_return(spill_modify_t *modify, const spill_look_t *look);

/* The server's reply, with its document completed. */
bool spill_modify_reply_answer(spill_modify_t *modify, bson_t *reply);

/* The reply to a change that the library or a removal made, with the document before it. */
bool spill_modify_reply_old(const spill_modify_t *modify, bson_t *reply);

/* The reply to a change that the library made. */
bool spill_modify_reply_appended(spill_modify_t *modify, const spill_change_t *change,
                                 bson_t *reply);

/* An earlier try has made the change, and the document before it cannot be returned. */
bool spill_modify_fail_repeated(spill_translation_t *translation);

#endif
