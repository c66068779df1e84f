/* Keys and values of records. docs/internals/format.md has their layouts. */
#ifndef SPILL_STORE_EMBEDDED_EMBEDDED_CODEC_H
#define SPILL_STORE_EMBEDDED_EMBEDDED_CODEC_H

#include "bson/element_fields.h"
#include "bson/key.h"
#include "store/content.h"
#include "store/session_entry.h"
#include "store/state.h"
#include "store/summary.h"
#include "util/buffer.h"

#include <stdbool.h>

/* ---- keys.c: keys ---------------------------------------------------------------------------- */

/*
 *   array records    be32 array id, owner key, kind byte, ...
 *   other fields     be32 collection id, owner key
 *   system records   be32 0, kind byte, ...
 */

/*
 * Kinds of an owner's records, in the order of keys. The elements follow the head: the latest
 * incarnation first, and in it the newest element first. So reading the newest elements takes one
 * seek and a few steps. Keys have the incarnation of their document (`epoch`), which separates them
 * from leftovers of other incarnations.
 */
typedef enum spill_record {
    SPILL_RECORD_HEAD = 0x10,    /* -                                       the head's state */
    SPILL_RECORD_ELEMENT = 0x20, /* be64 ~epoch, be64 ~seq                  type byte, value */
    SPILL_RECORD_PAGE = 0x30,    /* be64 page                               the page's state */
    SPILL_RECORD_FIRST = 0x40,   /* be64 ~epoch, be64 ~first, be64 ~page    nothing */
    SPILL_RECORD_OP = 0x50,      /* be64 ~epoch, be64 ordinal               an operation's entry;
                                  * only earlier versions wrote such records */
    SPILL_RECORD_OPS = 0x54,     /* be64 ~epoch, be64 first ordinal         a list of operations */
    SPILL_RECORD_SESSION = 0x58, /* be64 ~epoch, session and user           a session's entry; the
                                  * key without a session: varint, how many there are */
    SPILL_RECORD_ID = 0x60,      /* be64 ~epoch, id's key, be64 seq         nothing */
    SPILL_RECORD_RANK = 0x70,    /* be64 ~epoch, rank's key, be64 ~seq      nothing */
    /* Layout bucket: one index for all windows of an owner, under the owner's own key. */
    SPILL_RECORD_WINDOW_ID = 0x80, /* id's key, window, 00, be64 ~epoch, be64 seq   nothing */
    SPILL_RECORD_END = 0xff
} spill_record_t;

typedef enum spill_system_record {
    SPILL_SYSTEM_FORMAT = 0x01,     /* -                   varint version */
    SPILL_SYSTEM_IDS = 0x02,        /* -                   varint: the last id given */
    SPILL_SYSTEM_ARRAY = 0x03,      /* definition's name   varint array id, varint collection id */
    SPILL_SYSTEM_COLLECTION = 0x04, /* collection's name   varint collection id */
    SPILL_SYSTEM_CATALOG = 0x05,    /* kind byte, name     document */
    SPILL_SYSTEM_DROPPED = 0x06     /* -                   varint: highest rev of a dropped head */
} spill_system_record_t;

/* The kind byte, and three numbers, or two numbers and an id's key. */
#define SPILL_RECORD_SUFFIX_MAX (1 + 3 * 8 + SPILL_ELEMENT_ID_MAX)
#define SPILL_RECORD_KEY_MAX (4 + SPILL_OWNER_KEY_MAX + SPILL_RECORD_SUFFIX_MAX)

/* A buffer for keys of one owner: the prefix stays, the functions below replace the suffix. */
typedef struct spill_record_key {
    size_t prefix;
    size_t size;
    uint8_t data[SPILL_RECORD_KEY_MAX];
} spill_record_key_t;

/* The prefix of an owner under an array's or a collection's id; size == prefix. */
void spill_record_key_init(spill_record_key_t *key, uint32_t id, const uint8_t *owner,
                           size_t owner_bytes);
/* Only prefix and kind byte: before all records of that kind, after those of smaller kinds. */
void spill_record_key_kind(spill_record_key_t *key, spill_record_t kind);
void spill_record_key_element(spill_record_key_t *key, int64_t incarnation, int64_t seq);
void spill_record_key_page(spill_record_key_t *key, int64_t page);
void spill_record_key_first(spill_record_key_t *key, int64_t incarnation, int64_t first,
                            int64_t page);
void spill_record_key_op(spill_record_key_t *key, int64_t incarnation, int64_t ordinal);
void spill_record_key_ops(spill_record_key_t *key, int64_t incarnation, int64_t first);

/* `session` NULL: the record of their number, before all of them. */
void spill_record_key_session(spill_record_key_t *key, int64_t incarnation, const uint8_t *session);

/* `id` has at most SPILL_ELEMENT_ID_MAX bytes. */
void spill_record_key_id(spill_record_key_t *key, int64_t incarnation, const spill_buffer_t *id,
                         int64_t seq);

/* `rank` NULL: before all ranks of the incarnation. */
void spill_record_key_rank(spill_record_key_t *key, int64_t incarnation, const spill_rank_t *rank,
                           int64_t seq);
/* `key` is of the owner of the windows. */
void spill_record_key_window_id(spill_record_key_t *key, const spill_buffer_t *id,
                                const char *window, int64_t incarnation, int64_t seq);
/* Before all entries of that id in that window ("": in any window). */
void spill_record_key_window_ids(spill_record_key_t *key, const spill_buffer_t *id,
                                 const char *window, bool behind);
/* Is `data` an entry of the id of `key`? If so, set its window, which borrows. */
bool spill_record_key_is_window_id(const spill_record_key_t *key, const spill_buffer_t *id,
                                   const uint8_t *data, size_t size, const char **window);

/*
 * The highest sequence number, page, ordinal or count of a record, and the latest time (incarnation
 * and revision of a document, in microseconds since 1970). None is below 0: the order of keys
 * depends on it.
 */
#define SPILL_NUMBER_MAX (INT64_C(1) << 53)
#define SPILL_MOMENT_MAX (INT64_C(1) << 60)

/* Is `data` a key of this owner and kind, with numbers in range? If so, set the numbers. */
bool spill_record_key_is_element(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                                 int64_t *incarnation, int64_t *seq);
bool spill_record_key_is_page(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                              int64_t *page);
bool spill_record_key_is_first(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                               int64_t *incarnation, int64_t *first, int64_t *page);
bool spill_record_key_is_op(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                            int64_t *incarnation, int64_t *ordinal);
bool spill_record_key_is_ops(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                             int64_t *incarnation, int64_t *first);

/* `session` borrows from `data`; NULL: the record of their number. */
bool spill_record_key_is_session(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                                 int64_t *incarnation, const uint8_t **session);

/* `id` borrows from `data`. */
bool spill_record_key_is_id(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                            int64_t *incarnation, const uint8_t **id, size_t *id_bytes,
                            int64_t *seq);

bool spill_record_key_is_rank(const spill_record_key_t *owner, const uint8_t *data, size_t size,
                              int64_t *incarnation, int64_t *seq);

/* The kind byte of a key that begins with this owner's prefix; 0 for any other key. */
uint8_t spill_record_key_kind_of(const spill_record_key_t *owner, const uint8_t *data, size_t size);

/* be32 0, kind byte, name. `name` may be empty. */
void spill_system_key(spill_buffer_t *key, spill_system_record_t kind, const char *name);

void spill_id_prefix(uint8_t *data, uint32_t id); /* be32 */

/* ---- embedded_codec.c: values ---------------------------------------------------------------- */

/*
 * The decoders accept any bytes. They return true only for a record that the rest of the store can
 * use: values are well-formed, and numbers are so small that sums do not overflow.
 */

/* Append the state's bytes, without the page's number, which is in the key. */
void spill_state_encode(const spill_state_t *state, bool head, spill_buffer_t *bytes);

/*
 * Fill `state` (and reuse its memory) from a record. Return false if the bytes are not a state of a
 * head (or page); `state` is then absent and empty.
 */
bool spill_state_decode(const uint8_t *data, size_t size, bool head, spill_state_t *state);

/*
 * An operation's entry in a record of its own, as earlier versions wrote it; its ordinal is in the
 * key. Only tests encode such a record.
 */
void spill_op_encode(const spill_op_entry_t *entry, spill_buffer_t *bytes);
bool spill_op_decode(const uint8_t *data, size_t size, spill_op_entry_t *entry);

/*
 * A list of operations with adjacent ordinals. `end` is the ordinal after its last one: op_count
 * for a state's newest operations, and SPILL_OPS_TOGETHER above the first ordinal in the key for a
 * list in a record of its own. Such keys have multiples of SPILL_OPS_TOGETHER.
 */
enum { SPILL_OPS_TOGETHER = 8 };
void spill_op_list_add(spill_buffer_t *list, const spill_op_entry_t *entry);
/* How many operations the list has, from 1 to SPILL_OPS_TOGETHER; 0: the bytes are no such list. */
int64_t spill_op_list_count(const uint8_t *data, size_t size);
/* Set *entry to operation `ordinal` of a valid list; false: it has none with that ordinal. */
bool spill_op_list_get(const uint8_t *data, size_t size, int64_t end, int64_t ordinal,
                       spill_op_entry_t *entry);

/* A session's entry, whose session is in the key, and the number of entries. */
void spill_session_encode(const spill_session_entry_t *entry, spill_buffer_t *bytes);
bool spill_session_decode(const uint8_t *data, size_t size, spill_session_entry_t *entry);
bool spill_session_number_decode(const uint8_t *data, size_t size, int64_t *number);

/*
 * An element: its type byte and its bytes. The decoded value borrows. Return false if it is not a
 * well-formed BSON value, or not a document although the layout requires one. O(size).
 */
bool spill_element_decode(const spill_definition_t *definition, const uint8_t *data, size_t size,
                          spill_value_t *value);

/*
 * The other fields of the owner with this key: a document whose first field, _id, is that owner.
 * `fields` borrows; do not destroy it. O(size).
 */
bool spill_fields_decode(const uint8_t *data, size_t size, const uint8_t *owner, size_t owner_bytes,
                         bson_t *fields);

/* A document of the catalog. It borrows; do not destroy it. O(size). */
bool spill_catalog_decode(const uint8_t *data, size_t size, bson_t *document);

#endif
