/*
 * The parsing side of an import: a thread that reads the input ahead of the writer. It passes
 * chunks, in order, through a queue of a few. Memory is bounded for inputs of any size.
 */
#ifndef SPILL_TOOLS_IMPORT_PARSER_H
#define SPILL_TOOLS_IMPORT_PARSER_H

#include "tools/import_chunk.h"
#include "tools/import_records.h"

typedef struct spill_parser_options {
    const char *path;
    spill_codec_t codec;
    spill_format_t format;
    const char *owner;
    const char *id;                       /* or NULL */
    const spill_definition_t *definition; /* layout bucket: decides a record's window */
    bool strings;
    int64_t skip_max;
    spill_chunk_bounds_t bounds;
    const atomic_bool *stop; /* borrowed; once true, no longer wait for a pipe. NULL: none */

    /* Where to continue. If end_offset > offset, the first chunk is exactly these bytes. */
    int64_t number;
    int64_t offset;
    int64_t line;
    int64_t end_offset;
} spill_parser_options_t;

typedef struct spill_parser spill_parser_t;

/* Open the input and start. The options' strings are borrowed. Stop in every case. */
spill_code_t spill_parser_start(const spill_parser_options_t *options, spill_parser_t **parser,
                                spill_error_t *error);
void spill_parser_stop(spill_parser_t *parser); /* waits for the thread; NULL is allowed */

/* Wait for the next chunk. After a chunk with `last` set, do not call it again. */
spill_chunk_t *spill_parser_next(spill_parser_t *parser);

/* Return a chunk after use: the parser fills it again. */
void spill_parser_return(spill_parser_t *parser, spill_chunk_t *chunk);

/* Bytes of the file read so far, and its size or -1. */
int64_t spill_parser_position(const spill_parser_t *parser);
int64_t spill_parser_size(const spill_parser_t *parser);

/* The name of a record of this input for messages. */
void spill_parser_place(const spill_parser_t *parser, int64_t line, int64_t offset,
                        char place[SPILL_PLACE_SIZE]);

#endif
