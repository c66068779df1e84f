"""Write the C source of the module spillway._native: python native.py OUTPUT.

The declarations below repeat those of include/spillway, as far as the package uses them. The C
compiler compares each with the header; `...` stands for members and values that Python ignores.
"""

import sys

import cffi

DECLARATIONS = """
/* error.h */
typedef enum { SPILL_OK, SPILL_CORRUPT, SPILL_INVALID, ... } spill_code_t;
typedef enum { SPILL_REASON_NONE, ... } spill_reason_t;
typedef struct {
    spill_code_t code;
    int native;
    bool retryable;
    spill_reason_t reason;
    char message[...];
    ...;
} spill_error_t;
const char *spill_code_name(spill_code_t code);
const char *spill_version(void);

/* libbson */
typedef struct { uint32_t len; ...; } bson_t;
bool bson_init_static(bson_t *document, const uint8_t *data, size_t size);
const uint8_t *bson_get_data(const bson_t *document);
void bson_destroy(bson_t *document);
void bson_free(void *memory);

/* value.h */
typedef struct { const uint8_t *data; uint32_t size_bytes; uint8_t type; ...; } spill_value_t;

/* definition.h */
typedef enum {
    SPILL_LAYOUT_OUTLIER,
    SPILL_LAYOUT_REFERENCE,
    SPILL_LAYOUT_BUCKET,
    SPILL_LAYOUT_CAPPED,
    SPILL_LAYOUT_SUBSET
} spill_layout_t;
typedef struct { char name[...]; spill_layout_t layout; ...; } spill_definition_t;
spill_code_t spill_definition_preset(spill_definition_t *definition, const char *preset,
                                     const char *name, spill_error_t *error);
void spill_definition_set_layout(spill_definition_t *definition, spill_layout_t layout);
const char *const *spill_definition_presets(void);
void spill_definition_to_bson(const spill_definition_t *definition, bson_t *document);
spill_code_t spill_definition_from_bson(spill_definition_t *definition, const bson_t *document,
                                        spill_error_t *error);

/* store.h */
typedef ... spill_store_t;
typedef enum { SPILL_DURABILITY_FSYNC, SPILL_DURABILITY_LOG } spill_durability_t;
typedef enum { SPILL_LOG_ERROR, SPILL_LOG_WARNING, SPILL_LOG_INFO, SPILL_LOG_DEBUG }
    spill_log_level_t;
typedef void (*spill_log_fn)(void *context, spill_log_level_t level, const char *message);
typedef struct {
    bool read_only;
    bool must_exist;
    spill_durability_t durability;
    int64_t cache_bytes;
    spill_log_fn log;
    void *log_context;
    bool partial;
    ...;
} spill_store_options_t;
void spill_store_options_init(spill_store_options_t *options);
spill_code_t spill_store_open(const char *uri, const spill_store_options_t *options,
                              spill_store_t **store, spill_error_t *error);
spill_code_t spill_store_close(spill_store_t *store, spill_error_t *error);
spill_code_t spill_store_define(spill_store_t *store, const spill_definition_t *definition,
                                spill_error_t *error);
spill_code_t spill_store_definitions(spill_store_t *store, spill_definition_t **definitions,
                                     size_t *count, spill_error_t *error);
spill_code_t spill_store_drop(spill_store_t *store, const char *name, spill_error_t *error);
spill_code_t spill_store_backup(spill_store_t *store, const char *folder, spill_error_t *error);

/* array.h */
typedef ... spill_array_t;
spill_code_t spill_array_open(spill_store_t *store, const char *name, spill_array_t **array,
                              spill_error_t *error);
void spill_array_close(spill_array_t *array);
const spill_definition_t *spill_array_get_definition(const spill_array_t *array);
typedef struct { const void *id; size_t id_bytes; int64_t base; ...; } spill_op_t;
typedef struct { const spill_op_t *op; const bson_t *update; ...; } spill_append_options_t;
void spill_append_options_init(spill_append_options_t *options);
typedef struct {
    int64_t first;
    int64_t count;
    bool repeated;
    int64_t op_base;
    int64_t dropped;
    int64_t duplicates;
    ...;
} spill_append_result_t;
spill_code_t spill_array_append(spill_array_t *array, const spill_value_t *owner,
                                const spill_value_t *elements, size_t count,
                                const spill_append_options_t *options,
                                spill_append_result_t *result, spill_error_t *error);
spill_code_t spill_array_op_base(spill_array_t *array, const spill_value_t *owner, int64_t *base,
                                 spill_error_t *error);
spill_code_t spill_array_update(spill_array_t *array, const spill_value_t *owner,
                                const bson_t *update, spill_error_t *error);
typedef enum { SPILL_NEWEST_FIRST, SPILL_OLDEST_FIRST } spill_order_t;
typedef struct {
    spill_order_t order;
    int64_t limit;
    int64_t before;
    int64_t after;
    int64_t skip;
    ...;
} spill_read_options_t;
void spill_read_options_init(spill_read_options_t *options);
typedef struct { int64_t seq; spill_value_t value; ...; } spill_element_t;
typedef struct {
    spill_element_t *elements;
    size_t count;
    bool more;
    int64_t next;
    ...;
} spill_slice_t;
spill_code_t spill_array_read(spill_array_t *array, const spill_value_t *owner,
                              const spill_read_options_t *options, spill_slice_t **slice,
                              spill_error_t *error);
void spill_slice_free(spill_slice_t *slice);
typedef struct {
    bool exists;
    int64_t count;
    int64_t head;
    int64_t pages;
    int64_t next;
    ...;
} spill_count_t;
spill_code_t spill_array_count(spill_array_t *array, const spill_value_t *owner,
                               spill_count_t *count, spill_error_t *error);
spill_code_t spill_array_edit(spill_array_t *array, const spill_value_t *owner, int64_t seq,
                              const spill_value_t *element, spill_error_t *error);
spill_code_t spill_array_remove(spill_array_t *array, const spill_value_t *owner, int64_t seq,
                                spill_error_t *error);
spill_code_t spill_array_find_id(spill_array_t *array, const spill_value_t *owner,
                                 const spill_value_t *id, int64_t *seq, spill_error_t *error);
spill_code_t spill_array_remove_id(spill_array_t *array, const spill_value_t *owner,
                                   const spill_value_t *id, int64_t *seq, spill_error_t *error);
spill_code_t spill_array_trim_keep(spill_array_t *array, const spill_value_t *owner, int64_t keep,
                                   int64_t *below, spill_error_t *error);
spill_code_t spill_array_drop_owner(spill_array_t *array, const spill_value_t *owner,
                                    spill_error_t *error);
typedef bool (*spill_owner_fn)(void *context, const spill_value_t *owner);
typedef bool (*spill_element_fn)(void *context, const spill_value_t *owner,
                                 const spill_element_t *element);
spill_code_t spill_array_owners(spill_array_t *array, spill_owner_fn visit, void *context,
                                spill_error_t *error);
spill_code_t spill_array_export(spill_array_t *array, const spill_value_t *owner,
                                spill_element_fn visit, void *context, spill_error_t *error);

/* deadline.h */
typedef struct { int64_t at_us; ...; } spill_deadline_t;
spill_deadline_t spill_deadline_begin(int64_t timeout_ms);
void spill_deadline_end(spill_deadline_t outer);

/* scan_call.h */
typedef ... spill_scan_call_t;
spill_scan_call_t *spill_scan_call_new(void);
void spill_scan_call_free(spill_scan_call_t *call);
void spill_scan_call_stop(spill_scan_call_t *call);
char *spill_scan_call_run(spill_scan_call_t *call, const char *source, const char *format,
                          const char *collections, int64_t max_elements, int64_t max_bytes,
                          int64_t sample, int64_t rate, spill_error_t *error);

/* What C calls in Python; the package defines them. */
extern "Python" void spill_python_log(void *context, spill_log_level_t level,
                                      const char *message);
extern "Python" bool spill_python_owner(void *context, const spill_value_t *owner);
extern "Python" bool spill_python_element(void *context, const spill_value_t *owner,
                                          const spill_element_t *element);
"""

def main():
    builder = cffi.FFI()
    builder.cdef(DECLARATIONS)
    builder.set_source(
        "spillway._native",
        '#include "scan_call.h"\n#include <spillway/spillway.h>\n')
    builder.emit_c_code(sys.argv[1])


if __name__ == "__main__":
    main()
