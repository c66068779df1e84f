/* One field of a record, for the files that read, write and print records. */
#ifndef SPILL_BSON_RECORD_FIELD_H
#define SPILL_BSON_RECORD_FIELD_H

#include "bson/record.h"

/* The member of the struct; the pointer that it holds; the integer that it holds. */
const void *spill_field_at(const spill_field_t *field, const void *record);
const void *spill_field_pointer(const spill_field_t *field, const void *record);
int64_t spill_field_integer(const spill_field_t *field, const void *record);

/* The string of a member CHARS, TEXT, COPY, JSON, or the name of an ENUM. */
const char *spill_field_text(const spill_field_t *field, const void *record);

/* The value of a member VALUE or POINTER. */
const spill_value_t *spill_field_value(const spill_field_t *field, const void *record);

/* The number of items of a LIST or of TEXTS. */
size_t spill_field_list_count(const spill_field_t *field, const void *record);

/* Does the field belong to the record, by `when`? */
bool spill_field_belongs(const spill_field_t *field, const void *record);

/* Is the field written at all, and if it is, as null? */
bool spill_field_is_written(const spill_field_t *field, const void *record);
bool spill_field_is_null(const spill_field_t *field, const void *record);

#endif
