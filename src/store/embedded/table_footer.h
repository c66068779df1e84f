/*
 * The footer of a table file, the only part of it that RocksDB 7.8 reads without a checksum. From a
 * damaged one the engine takes the size of a block, and allocates it: if that fails, the engine
 * throws while it holds its own lock, and a read-only open then waits for this lock forever. So
 * engine_files.cpp checks the footer before the engine sees the file.
 *
 * Of the last 53 bytes of the file:
 *
 * - byte 0: the type of the blocks' checksums, 1 to 4; 0: none, which Spillway never wrote
 * - bytes 1 to 40: the places of two blocks, the metaindex and the index: four varints, then zeroes
 * - bytes 41 to 44: the format of the table, little-endian
 * - bytes 45 to 52: the magic number
 */
#ifndef SPILL_STORE_EMBEDDED_TABLE_FOOTER_H
#define SPILL_STORE_EMBEDDED_TABLE_FOOTER_H

#include <stdint.h>

enum { SPILL_TABLE_FOOTER_BYTES = 53 };

/*
 * Return what is wrong with the footer of a table file of that size, or NULL. The engine itself
 * refuses other magic numbers. Formats from 6 on have another footer, with a checksum: NULL. Cost:
 * none. Any thread.
 */
const char *spill_table_footer_problem(const uint8_t footer[SPILL_TABLE_FOOTER_BYTES],
                                       uint64_t file_bytes);

#endif
