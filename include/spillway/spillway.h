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
