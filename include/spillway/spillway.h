/*
 * Spillway: arrays without a limit, on documents with one.
 *
 *   store       where documents live                          store.h
 *   definition  the named description of one array            definition.h
 *   array       a definition opened on a store                array.h
 *   value       one BSON value: an element, or an owner's _id  value.h
 *   error       codes and messages                            error.h
 *   verify      the independent check, and repair             verify.h
 *
 * Arguments. A pointer may be NULL only if the comment of the function or field says so. `error`,
 * `context` and options may always be NULL; NULL options mean the defaults. If an argument is NULL,
 * malformed or out of range, a function that returns a code changes nothing and returns
 * SPILL_INVALID. The message names the argument. A function that returns no code changes nothing
 * then, and returns false, NULL or an empty value ({0}). No function can recognize a pointer to
 * freed memory, a closed store or array, or an uninitialized bson_t: the behaviour is undefined.
 *
 * Conventions. Functions clear their output pointers first. Options structs have a version:
 * initialize them with their _init function. All _free and _close functions accept NULL. Memory
 * comes from the allocator of libbson, which ends the program if there is none left.
 */
#ifndef SPILLWAY_H
#define SPILLWAY_H

#include <spillway/array.h>
#include <spillway/bucket.h>
#include <spillway/definition.h>
#include <spillway/error.h>
#include <spillway/store.h>
#include <spillway/value.h>
#include <spillway/verify.h>
#include <spillway/version.h>

#endif
