/**
 * \file
 * Everything but mongoc.h: the one header that most programs include.
 */
/**
 * \mainpage Spillway for C programmers
 *
 * Arrays without a limit, on documents with one. A store keeps documents; a definition describes an
 * array in them; a program opens the array, and appends and reads elements, which are BSON values.
 *
 * ## The first program
 *
 * \include first_program.c
 *
 *     cc first_program.c -o first_program $(pkg-config --cflags --libs spillway)
 *     ./first_program
 *
 * ## Where to look
 *
 * | question | group |
 * |---|---|
 * | Where do documents live? How is a store opened? | \ref spillway_store |
 * | Which arrays are there, and how are they stored? | \ref spillway_definition |
 * | How are elements appended, read, edited, removed, trimmed? | \ref spillway_array |
 * | How does a program make an owner or an element, and look into one? | \ref spillway_value |
 * | What does a code mean? | \ref spillway_error |
 * | How does a call end in time? | \ref spillway_deadline |
 * | How are arrays in time windows used, with statistics? | \ref spillway_bucket |
 * | Is the array sound? | \ref spillway_verify |
 * | How is a store opened on a pool of libmongoc that the program has? | \ref spillway_mongoc |
 * | Which version runs, and what may change? | \ref spillway_version |
 *
 * ## The functions on arrays, by task
 *
 * | task | functions |
 * |---|---|
 * | append | spill_array_append(), spill_array_op_base(), spill_array_adopt() |
 * | read a few elements | spill_array_read(), spill_array_read_newest(), spill_array_top() |
 * | find, count | spill_array_find_id(), spill_array_count() |
 * | iterate | spill_array_export() (elements), spill_array_documents(), spill_array_owners() |
 * | change | spill_array_edit(), spill_array_edit_id(), spill_array_update_with() |
 * | remove | spill_array_remove(), spill_array_remove_id(), spill_array_remove_where() |
 * | trim, drop | spill_array_trim(), spill_array_trim_keep(), spill_array_drop_owner() |
 *
 * ## Rules for every function
 *
 * **Arguments.** A pointer may be NULL only if the section *NULL* of the function says so; the
 * pointers of a struct, if the field says so. Otherwise a function that returns a code changes
 * nothing and returns #SPILL_INVALID, as for an argument that is malformed or out of range; the
 * message names the argument. A function that returns no code changes nothing then, and returns
 * false, NULL or an empty value ({0}). No function can recognize a pointer to freed memory, a
 * closed store or array, or an uninitialized bson_t: the behaviour is undefined.
 *
 * **Outputs.** Functions clear their output pointers first. Options structs have a version:
 * initialize them with their _init function. Structs that a function fills need no initialization.
 *
 * **Memory.** It comes from the allocator of libbson, which ends the program if there is none left.
 * All _free and _close functions accept NULL. docs/reference/lifetimes.md has a table.
 *
 * **Units.** Names end with their unit: `_bytes`, `_ms`, `_us`, `_seconds`. A sequence number is
 * the number of an element: 0, 1, 2, ... in the order of appending. Costs are in store operations:
 * one operation is one command on a server, and a few key look-ups in an embedded store.
 *
 * **Threads.** Any number of threads may use a store and an array at once. Options, results, errors
 * and slices belong to the thread that passes them.
 */
#ifndef SPILLWAY_H
#define SPILLWAY_H

#include <spillway/array.h>
#include <spillway/bucket.h>
#include <spillway/deadline.h>
#include <spillway/definition.h>
#include <spillway/error.h>
#include <spillway/store.h>
#include <spillway/value.h>
#include <spillway/verify.h>
#include <spillway/version.h>

#endif
