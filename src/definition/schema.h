/*
 * The parts of a definition, their ranges, and what the documents of a layout look like: the facts
 * of the layout, the names of windows, and the form of stored elements. The stores, and everything
 * above the layouts, read the layout's facts and never ask which layout it is. What a layout does
 * is in layout/layout.h.
 */
#ifndef SPILL_DEFINITION_SCHEMA_H
#define SPILL_DEFINITION_SCHEMA_H

#include <spillway/bucket.h>
#include <spillway/definition.h>
#include <spillway/value.h>

#include <stdbool.h>

/* The role of a name decides its form, and from which other names it must differ. */
typedef enum spill_name_role {
    SPILL_NAME_OF_DEFINITION,
    SPILL_NAME_OF_COLLECTION,
    SPILL_NAME_OF_HEAD_FIELD,
    SPILL_NAME_OF_PAGE_FIELD,
    SPILL_NAME_OF_ELEMENT_FIELD, /* a dotted path into an element */
    SPILL_NAME_OF_ELEMENT_ID,    /* the same, or ".": the element itself */
    SPILL_NAME_OF_BUCKET_FIELD,
    SPILL_NAME_OF_STATISTIC /* a field of statistics */
} spill_name_role_t;

typedef struct spill_name_field {
    const char *label; /* in documents and in messages */
    size_t offset;     /* in spill_definition_t */
    spill_name_role_t role;
    bool required; /* not "" */
    bool added;    /* may be missing in a document, which means "" */
    bool pages;    /* only in a definition that has pages */
} spill_name_field_t;

/*
 * Every name of a definition: NAME and PAGES(label, member, role, required), ADDED(label, member,
 * role). Names of PAGES belong to layouts that have pages (pageArray only to some; see check.c);
 * those ADDED may be empty in every layout.
 */
#define SPILL_DEFINITION_NAMES(NAME, PAGES, ADDED)                                                 \
    NAME("name", name, DEFINITION, true)                                                           \
    NAME("collection", collection, COLLECTION, true)                                               \
    NAME("array", array, HEAD_FIELD, true)                                                         \
    NAME("countField", count_field, HEAD_FIELD, false)                                             \
    PAGES("overflowField", overflow_field, HEAD_FIELD, false)                                      \
    PAGES("pagesField", pages_field, HEAD_FIELD, false)                                            \
    PAGES("pageCollection", page_collection, COLLECTION, true)                                     \
    PAGES("pageOwner", page_owner, PAGE_FIELD, true)                                               \
    PAGES("pageNumber", page_number, PAGE_FIELD, false)                                            \
    PAGES("pageArray", page_array, PAGE_FIELD, false)                                              \
    PAGES("pageCount", page_count, PAGE_FIELD, false)                                              \
    ADDED("elementIdField", element_id_field, PAGE_FIELD)                                          \
    ADDED("idField", id_field, ELEMENT_ID)                                                         \
    ADDED("timeField", time_field, ELEMENT_FIELD)                                                  \
    ADDED("windowField", window_field, BUCKET_FIELD)                                               \
    ADDED("windowSource", window_source, ELEMENT_FIELD)                                            \
    ADDED("valueField", value_field, ELEMENT_FIELD)                                                \
    ADDED("statsField", stats_field, BUCKET_FIELD)                                                 \
    ADDED("statsCount", stats_count, STATISTIC)                                                    \
    ADDED("statsAverage", stats_average, STATISTIC)                                                \
    ADDED("statsSum", stats_sum, STATISTIC)                                                        \
    ADDED("statsMin", stats_min, STATISTIC)                                                        \
    ADDED("statsMax", stats_max, STATISTIC)                                                        \
    ADDED("topField", top_field, STATISTIC)                                                        \
    ADDED("sortField", sort_field, ELEMENT_FIELD)

typedef struct spill_bound_field {
    const char *label;
    size_t offset; /* in spill_bounds_t */
    bool pages;    /* only in a definition that has pages */
} spill_bound_field_t;

#define SPILL_NAME_FIELDS 25
#define SPILL_BOUND_FIELDS 4

extern const spill_name_field_t spill_name_fields[SPILL_NAME_FIELDS];
extern const spill_bound_field_t spill_bound_fields[SPILL_BOUND_FIELDS];

/* The most parts of the path of a head's field. */
#define SPILL_PATH_PARTS_MAX 8

/*
 * The name of an array's bookkeeping in a head's field `spill`. It is the array's name; in a path,
 * each '.' becomes a '$', which no name of a definition has: "stats$events". So two arrays never
 * have one name.
 */
void spill_bookkeeping_name(const char *array, char name[SPILL_NAME_SIZE]);

/*
 * The path of that bookkeeping in a head, "spill.stats$events", or of its field `field`, a name of
 * at most 23 bytes; "": none. `path` is returned.
 */
#define SPILL_BOOKKEEPING_PATH_SIZE (SPILL_NAME_SIZE + 32)
const char *spill_bookkeeping_path(const char *array, const char *field,
                                   char path[SPILL_BOOKKEEPING_PATH_SIZE]);

/* The paths of a head's fields that belong to the array, without `spill`. Returns their number. */
enum { SPILL_OWN_FIELDS_MAX = 5 };
size_t spill_own_fields(const spill_definition_t *definition,
                        const char *paths[SPILL_OWN_FIELDS_MAX]);

const char *spill_definition_get_name(const spill_definition_t *definition,
                                      const spill_name_field_t *field);
int64_t spill_bounds_get(const spill_bounds_t *bounds, const spill_bound_field_t *field);

/*
 * A definition with data that was saved without an element_id_field keeps none, because an element
 * may have a field of the default name. If `next` has the default name, clear it there, so that a
 * program may define its preset again. True if `next` was changed.
 */
bool spill_definition_keep_without_id(const spill_definition_t *now, spill_definition_t *next);

/*
 * Report whether `next` has an id_field that `now` lacks, and nothing depends on it: elements do
 * not have to be unique, and the store only reads the field. On a server, such an id_field may be
 * added to a definition with data. The server's index then covers all elements. An embedded store
 * would have no index entries of the elements that are stored already.
 */
bool spill_definition_adds_id(const spill_definition_t *now, const spill_definition_t *next);

/* "oldest", "newest"; "oldest-first", "newest-first"; "month". NULL for a value outside the enum.
 */
const char *spill_keep_name(spill_keep_t keep);
const char *spill_array_order_name(spill_array_order_t order);
const char *spill_window_name(spill_window_t window); /* NULL for SPILL_WINDOW_NONE, too */

/* The value of a name; false for any other text. */
bool spill_keep_of_name(const char *name, spill_keep_t *keep);
bool spill_array_order_of_name(const char *name, spill_array_order_t *order);
bool spill_window_of_name(const char *name, spill_window_t *window);

/* ---- ranges of its numbers ------------------------------------------------------------------- */

/* Elements of a head, and of a page. */
#define SPILL_ELEMENTS_MAX 1000000

/*
 * Bytes of a document. The upper limit is below the 16 MiB of the databases, because the last
 * element may exceed the bound. The lower limit grows with the window of operations: each operation
 * takes up to SPILL_OP_BYTES_MAX. The rest is for names, numbers and the owner, which a page has
 * twice.
 */
#define SPILL_DOCUMENT_BYTES_HIGHEST (15 * 1024 * 1024)
#define SPILL_DOCUMENT_BYTES_LOWEST (16 * 1024)
#define SPILL_OP_BYTES_MAX 130
#define SPILL_BOOKKEEPING_BYTES_MAX (6 * 1024)

#define SPILL_OP_WINDOW_MAX 10000

/* Layout subset: bytes of each element's entry in the summary. */
#define SPILL_TOP_ENTRY_BYTES_MAX 52

/* Retention: 2^53 elements, and a thousand years of 366 days. */
#define SPILL_KEEP_ELEMENTS_MAX (INT64_C(1) << 53)
#define SPILL_KEEP_SECONDS_MAX (INT64_C(366000) * 86400)

/* ---- the facts of a layout ------------------------------------------------------------------- */

typedef struct spill_schema {
    const char *name; /* of the layout, in definitions and options: "outlier" */
    /* Does the definition keep the layout's own rules? SPILL_INVALID says which one it breaks. */
    spill_code_t (*check)(const spill_definition_t *definition, spill_error_t *error);
    bool has_pages;               /* else the head is the only document of an owner */
    bool appends_to_head;         /* appends go to the head; else to the last document, the tail */
    bool has_windows;             /* an owner is a window of time, and has statistics */
    bool has_referenced_elements; /* each element is a page, and has the page's number */
    bool has_top;                 /* the head shows the highest-ranked elements */
    bool has_rank_index;          /* they rank by a value, and pages have an index on it */
    bool is_capped;               /* an append to a full head drops elements of the head */
    bool keeps_top_n;             /* these are the lowest-ranked; else the oldest */
} spill_schema_t;

/*
 * Return the facts of a definition, by its layout, keep and sort_field. A layout outside its enum
 * counts as the first one, a keep outside as the layout's usual keep. The result is static. O(1).
 * Any thread.
 */
const spill_schema_t *spill_schema_of(const spill_definition_t *definition);

/* Can an array with this layout and keep keep each id once? (check.c) */
bool spill_definition_has_unique(const spill_definition_t *definition);

/*
 * A definition made from `from` keeps each id once if `from` does. SPILL_INVALID if its layout and
 * keep, which are set already, cannot: the promise is never dropped silently. `otherwise` says how
 * a person gives it up. (check.c)
 */
spill_code_t spill_definition_carry_unique(const spill_definition_t *from, const char *otherwise,
                                           spill_definition_t *definition, spill_error_t *error);

/* The rules of each layout. (check.c) */
spill_code_t spill_check_outlier(const spill_definition_t *definition, spill_error_t *error);
spill_code_t spill_check_referenced(const spill_definition_t *definition, spill_error_t *error);
spill_code_t spill_check_bucket(const spill_definition_t *definition, spill_error_t *error);
spill_code_t spill_check_capped(const spill_definition_t *definition, spill_error_t *error);

/* The number of layouts that a process can have. */
#define SPILL_LAYOUTS_MAX 8

/*
 * Add a layout, whose facts depend on nothing else: see spill_layout_add, which calls this. The
 * schema stays the caller's. False: there is no room.
 */
bool spill_schema_add(const spill_schema_t *schema, spill_layout_t *layout);

/* "outlier"; NULL: there is no such layout. And the layout of a name; false for any other text. */
const char *spill_layout_name(spill_layout_t layout);
bool spill_layout_of_name(const char *name, spill_layout_t *layout);

/* The facts of a layout with its usual keep and no sort_field. NULL: there is no such layout. */
const spill_schema_t *spill_schema_of_layout(spill_layout_t layout);

/* ---- windows (window.c) ---------------------------------------------------------------------- */

/*
 * Windows of layout bucket. Below src/core, a window of an owner is itself an owner: its _id is the
 * document {owner, window}. So in the order of keys, one owner's windows are adjacent and sorted by
 * their texts.
 */

/*
 * The window of a time in milliseconds since 1970. SPILL_INVALID: the year is not in 0 to 9999,
 * where the texts sort; or a field names the definition's windows.
 */
spill_code_t spill_window_of_time(spill_window_t window, int64_t time_ms,
                                  char text[SPILL_WINDOW_SIZE], spill_error_t *error);

/* The time at the definition's time_field, in milliseconds: a date, ObjectId or timestamp. */
bool spill_window_time(const spill_definition_t *definition, const spill_value_t *element,
                       int64_t *time_ms);

/* As spill_bucket_window_of, for a checked definition and arguments that are not NULL. */
spill_code_t spill_window_of_element(const spill_definition_t *definition,
                                     const spill_value_t *element, char window[SPILL_WINDOW_SIZE],
                                     spill_error_t *error);

/* True: it is the _id of a window. Sets its owner and text, which borrow from it. */
bool spill_window_split(const spill_value_t *window, spill_value_t *owner, const char **text);

/*
 * Check that spill_bucket_window_of can make this text for the definition. SPILL_INVALID: the
 * message has an example. Other texts sort among windows too, but perhaps not as the caller
 * expects.
 */
spill_code_t spill_window_check(const spill_definition_t *definition, const char *text,
                                spill_error_t *error);

/* Is it 1 to SPILL_WINDOW_SIZE - 1 bytes of UTF-8 without control characters? */
bool spill_window_text_valid(const char *text, size_t length);

/* ---- stored definitions ---------------------------------------------------------------------- */

/* A definition as the catalog has it. */
typedef struct spill_stored_definition {
    spill_definition_t definition;
    /*
     * Not 0: the migration is being undone since this time, in microseconds since 1970, and no
     * client may adopt an array (layout/adoption.h). It also tells this definition from a later one
     * with the same fields.
     */
    int64_t undoing;
} spill_stored_definition_t;

/* As spill_definition_from_bson and spill_definition_to_bson. */
spill_code_t spill_stored_definition_from_bson(spill_stored_definition_t *stored,
                                               const bson_t *document, spill_error_t *error);
void spill_stored_definition_to_bson(const spill_stored_definition_t *stored, bson_t *document);

/* ---- stored elements ------------------------------------------------------------------------- */

/*
 * Layouts reference and subset: an element's document.
 *
 *      element    {                           _id: I,       rating: 5, ...}
 *      document   {_id: {...}, productId: P,  elementId: I, rating: 5, ..., spill: {...}}
 *
 * The document's own fields are `_id`, the definition's page_owner, and `spill`. The element's
 * `_id` is stored under the definition's element_id_field, at the same place among the element's
 * fields. So an element cannot have a field named as the owner's, `spill`, or element_id_field;
 * every other field is stored under its own name. Nothing else in the project knows these rules.
 *
 * If the id_field is ".", an element may be any value, and is stored whole under element_id_field:
 *
 *      element    7
 *      document   {_id: {...}, productId: P,  elementId: 7, spill: {...}}
 */

#define SPILL_STORED_PATH_SIZE (2 * SPILL_NAME_SIZE)

/*
 * Can the element be stored as a document? `except` (NULL: none) is a field that the caller removes
 * from the element. SPILL_INVALID names the field and says what to do. O(fields).
 */
spill_code_t spill_stored_element_check(const spill_definition_t *definition,
                                        const spill_value_t *element, const char *except,
                                        spill_error_t *error);

/* Do both definitions store the same elements? Both are of these layouts. */
bool spill_stored_element_same_rules(const spill_definition_t *left,
                                     const spill_definition_t *right);

/* Is the path within a field of the document itself, which no element has? */
bool spill_stored_element_reserves(const spill_definition_t *definition, const char *path);

/* The path in the document of the element's `path`. In other layouts it is the same path. */
void spill_stored_element_path(const spill_definition_t *definition, const char *path,
                               char stored[SPILL_STORED_PATH_SIZE]);

/* Append the element's fields, in their stored form, to `document`. */
void spill_stored_element_append(const spill_definition_t *definition, const spill_value_t *element,
                                 bson_t *document);

/*
 * Read the document's element. `value` borrows from the document and from `memory`, which the call
 * initializes. Return false if the document has no owner's field, or no element: then the element
 * was removed, and `memory` is empty.
 */
bool spill_stored_element_read(const spill_definition_t *definition, const bson_t *document,
                               bson_t *memory, spill_value_t *value);

/* Bytes by which the stored element may be larger than the element. */
int64_t spill_stored_element_growth(const spill_definition_t *definition);

#endif
