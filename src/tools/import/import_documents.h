/*
 * The input of an import that is no file of records: a collection in an archive of mongodump, or a
 * collection of a server. Both have the documents in an order in which an import can continue.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_DOCUMENTS_H
#define SPILL_TOOLS_IMPORT_IMPORT_DOCUMENTS_H

#include "tools/import/import_records.h"

typedef struct spill_documents spill_documents_t;

/* What an import of documents with arrays reads. Release in every case. */
typedef struct spill_documents_input {
    char *path; /* of a file; or a server's URI, which names the database */
    spill_codec_t codec;
    spill_format_t format;
    char *collection; /* the one to read; NULL: a file of records */
    bool archive;
} spill_documents_input_t;

/*
 * Find the input of a path: a file, "-", a folder of mongodump, an archive, or a server's
 * mongodb://HOST/DATABASE.COLLECTION. `collection` (NULL: the only one) chooses one of a folder, an
 * archive or a server; it may lack the database. SPILL_NOT_FOUND, SPILL_INVALID.
 */
spill_code_t spill_documents_find(const char *path, const char *format, const char *collection,
                                  spill_documents_input_t *input, spill_error_t *error);
void spill_documents_input_release(spill_documents_input_t *input);

/* The name of a server's collection, without user and password: "HOST:PORT/shop.products". */
spill_code_t spill_documents_name(const spill_documents_input_t *input, char **name,
                                  spill_error_t *error);

/*
 * Open an archive or a server (input->collection is not NULL), which is borrowed. An archive's
 * places are bytes, a server's are documents in the order of their _id. `stop`: as in
 * spill_source_stop_by, or NULL. SPILL_IO and the errors of opening a store. Close in every case.
 */
spill_code_t spill_documents_open(const spill_documents_input_t *input, const atomic_bool *stop,
                                  spill_documents_t **documents, spill_error_t *error);
void spill_documents_close(spill_documents_t *documents); /* NULL is allowed */

/* These are as the functions of records with the same names (import_records.h). */
spill_code_t spill_documents_next(spill_documents_t *documents, spill_input_record_t *record,
                                  bool *end, bool *more, spill_error_t *error);
int64_t spill_documents_offset(const spill_documents_t *documents);
void spill_documents_seek(spill_documents_t *documents, int64_t offset);
void spill_documents_place(const spill_documents_t *documents, int64_t offset,
                           char place[SPILL_PLACE_SIZE]);

/* Bytes of the archive, or documents of the server: read so far, and in all or -1. */
int64_t spill_documents_done(const spill_documents_t *documents);
int64_t spill_documents_expected(const spill_documents_t *documents);

#endif
