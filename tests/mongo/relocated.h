/* A command on the field "f" as one on the path "h.f". */
#ifndef SPILL_TESTS_RELOCATED_H
#define SPILL_TESTS_RELOCATED_H

#include <bson/bson.h>

/*
 * Names and texts become paths: "f.0", "$f". In documents that are inserted or replace others, {f:
 * X} becomes {h: {f: X}}. Destroy the result with bson_destroy.
 */
bson_t *relocated_command(const bson_t *command);

#endif
