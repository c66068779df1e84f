/*
 * The parser's side of an import: a thread that reads the input ahead of the writer and hands over
 * chunks, in order, through a queue that holds a few. Bounded memory whatever the input's size.
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
    const spill_definition_t *definition; /* layout bucket: which window a record is of */
    bool strings;
    int64_t skip_max;
    spill_chunk_bounds_t bounds;
    const atomic_bool *stop; /* borrowed; once true, a pipe is not waited for. NULL: none */

    /* Where to go on. With end_offset > offset, the first chunk is exactly what lies between. */
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

/* The next chunk, waiting for it. After one with `last` set there is none. */
spill_chunk_t *spill_parser_next(spill_parser_t *parser);

/* Done with a chunk: it will be filled again. */
void spill_parser_give_back(spill_parser_t *parser, spill_chunk_t *chunk);

/* Bytes of the file read so far, and its size or -1. */
int64_t spill_parser_position(const spill_parser_t *parser);
int64_t spill_parser_size(const spill_parser_t *parser);

/* How a record of this input is named in messages. */
void spill_parser_place(const spill_parser_t *parser, int64_t line, int64_t offset,
                        char place[SPILL_PLACE_SIZE]);

#endif
