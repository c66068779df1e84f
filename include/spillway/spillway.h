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
 * Arguments. A pointer may be NULL only if the comment of the function or of the field says so. The
 * pointers that may be NULL in every function are `error`, `context` and the options, whose
 * defaults then hold. A function that returns a code answers each argument that it does not accept
 * (NULL, a malformed value, a number, order or version out of range) with SPILL_INVALID, does
 * nothing, and names the argument in the message. A function that returns no code then does
 * nothing, or returns false, NULL or an empty value ({0}). No function can recognize a pointer to
 * freed memory, a store or an array that is closed, or a bson_t that is not initialized: the
 * process then has undefined behaviour.
 *
 * Caveats. Functions clear their out-pointers on entry. Options structs carry a version: start
 * them with their _init function. Everything named _free or _close accepts NULL. Memory comes from
 * libbson's allocator, which ends the program when there is none left.
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
