#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- values ---------------------------------------------------------------------------------- */

static bson_t *kinds_document(void)
{
    static const uint8_t bytes[] = {0, 1, 2, 0xff};
    bson_oid_t oid;
    bson_decimal128_t decimal;
    bson_t *all = bson_new();
    bson_t child = BSON_INITIALIZER;
    bson_t list = BSON_INITIALIZER;
    bson_oid_init_from_string(&oid, "0123456789abcdef01234567");
    bson_decimal128_from_string("123.456E-7", &decimal);
    BSON_APPEND_UTF8(&child, "text", "within");
    BSON_APPEND_INT32(&child, "number", 3);
    BSON_APPEND_DOUBLE(all, "double", 0.25);
    BSON_APPEND_UTF8(all, "text", "a string");
    BSON_APPEND_UTF8(all, "empty text", "");
    BSON_APPEND_DOCUMENT(all, "document", &child);
    BSON_APPEND_INT32(&list, "0", 1);
    BSON_APPEND_NULL(&list, "1");
    BSON_APPEND_ARRAY(all, "array", &list);
    BSON_APPEND_BINARY(all, "binary", BSON_SUBTYPE_BINARY, bytes, sizeof bytes);
    BSON_APPEND_BINARY(all, "user binary", BSON_SUBTYPE_USER, bytes, 0);
    BSON_APPEND_UNDEFINED(all, "undefined");
    BSON_APPEND_OID(all, "oid", &oid);
    BSON_APPEND_BOOL(all, "true", true);
    BSON_APPEND_BOOL(all, "false", false);
    BSON_APPEND_DATE_TIME(all, "date", INT64_C(1500000000123));
    BSON_APPEND_NULL(all, "null");
    BSON_APPEND_REGEX(all, "regex", "a.*b", "i");
    BSON_APPEND_DBPOINTER(all, "pointer", "collection", &oid);
    BSON_APPEND_CODE(all, "code", "return 1");
    BSON_APPEND_SYMBOL(all, "symbol", "sym");
    BSON_APPEND_CODE_WITH_SCOPE(all, "scoped", "return x", &child);
    BSON_APPEND_INT32(all, "int32", -7);
    BSON_APPEND_TIMESTAMP(all, "timestamp", 5, 6);
    BSON_APPEND_INT64(all, "int64", INT64_MIN);
    BSON_APPEND_DECIMAL128(all, "decimal", &decimal);
    BSON_APPEND_MINKEY(all, "minkey");
    BSON_APPEND_MAXKEY(all, "maxkey");
    bson_destroy(&child);
    bson_destroy(&list);
    return all;
}

static const bson_t *all_kinds(void)
{
    static bson_t *all;
    if (!all)
        all = kinds_document();
    return all;
}

int model_kinds(void)
{
    return (int)bson_count_keys(all_kinds());
}

spill_value_t model_value(int kind)
{
    static spill_value_t values[64];
    static int count;
    bson_iter_t iter;
    if (count == 0) {
        bson_iter_init(&iter, all_kinds());
        while (bson_iter_next(&iter))
            values[count++] = spill_value_from_iter(&iter);
    }
    return values[count > 0 ? kind % count : 0];
}

/* Ratings are integers and doubles; one in four documents has no rating. */
static bool has_rating(int kind)
{
    return kind % 4 != 3;
}

static double rating_of(int kind)
{
    return kind % 4 == 1 ? kind + 0.1 : kind;
}

spill_value_t model_element(const model_t *model, int kind)
{
    static bson_t *documents[64];
    if (!model->documents)
        return model_value(kind);
    bson_t **document = &documents[kind % model_kinds()];
    if (!*document) {
        spill_value_t value = model_value(kind);
        *document = bson_new();
        spill_value_append(&value, *document, "value");
        if (kind % 4 == 0)
            BSON_APPEND_INT32(*document, "rating", kind);
        else if (has_rating(kind))
            BSON_APPEND_DOUBLE(*document, "rating", rating_of(kind));
    }
    return (spill_value_t){.data = bson_get_data(*document),
                           .size_bytes = (*document)->len,
                           .type = BSON_TYPE_DOCUMENT};
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* A number ranks above everything except dates; higher values rank higher. */
typedef struct rank {
    int class;
    double value;
} rank_t;

static rank_t rank_of(const model_t *model, int kind)
{
    spill_value_t value = model_value(kind);
    if (strcmp(model->by, "rating") == 0)
        return has_rating(kind) ? (rank_t){1, rating_of(kind)} : (rank_t){0};
    if (strcmp(model->by, "value") != 0)
        return (rank_t){0};
    switch (value.type) {
    case BSON_TYPE_DOUBLE:
        return (rank_t){1, 0.25};
    case BSON_TYPE_INT32:
        return (rank_t){1, -7};
    case BSON_TYPE_INT64:
        return (rank_t){1, (double)INT64_MIN};
    case BSON_TYPE_DATE_TIME:
        return (rank_t){2, 0};
    default:
        return (rank_t){0};
    }
}

static bool ranks_above(rank_t left, rank_t right)
{
    return left.class != right.class ? left.class > right.class : left.value > right.value;
}

/* ---- the plain array ------------------------------------------------------------------------- */

void model_clear(model_t *model)
{
    bson_free(model->kinds);
    *model = (model_t){0};
}

/* The lowest-ranked element; of several, the oldest. */
static int64_t last_in_rank(const model_t *model)
{
    int64_t last = -1;
    for (int64_t seq = 0; seq < model->count; seq++)
        if (model->kinds[seq] >= 0 && (last < 0 || ranks_above(rank_of(model, model->kinds[last]),
                                                               rank_of(model, model->kinds[seq]))))
            last = seq;
    return last;
}

void model_push(model_t *model, int kind)
{
    if (model->count == model->capacity) {
        model->capacity = model->capacity ? 2 * model->capacity : 64;
        model->kinds = bson_realloc(model->kinds, (size_t)model->capacity * sizeof *model->kinds);
    }
    model->kinds[model->count++] = kind % model_kinds();
    model->live++;
    while (model->top_n && model->live > model->cap)
        model_remove(model, last_in_rank(model));
    for (; model->cap > 0 && model->live > model->cap; model->watermark++)
        model_remove(model, model->watermark);
}

void model_next(const model_t *model, spill_value_t *elements, int count)
{
    for (int i = 0; i < count; i++)
        elements[i] = model_element(model, (int)model->count + i);
}

void model_appended(model_t *model, int count, const spill_append_result_t *result)
{
    assert_int_equal(result->first, model->count);
    assert_int_equal(result->count, count);
    for (int i = 0; i < count; i++)
        model_push(model, (int)model->count);
    int64_t dropped = 0;
    for (int64_t seq = result->first; seq < model->count; seq++)
        dropped += model->kinds[seq] < 0;
    assert_int_equal(result->dropped, dropped);
}

void model_set(model_t *model, int64_t seq, int kind)
{
    model->kinds[seq] = kind % model_kinds();
}

void model_remove(model_t *model, int64_t seq)
{
    model->live -= model->kinds[seq] >= 0;
    model->kinds[seq] = -1;
}

void model_trim(model_t *model, int64_t below)
{
    for (int64_t seq = 0; seq < below && seq < model->count; seq++)
        model_remove(model, seq);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void expect_element(const model_t *model, int64_t seq, const spill_element_t *element)
{
    spill_value_t expected = model_element(model, model->kinds[seq]);
    if (element->seq != seq || !spill_value_equal(&element->value, &expected))
        fail_msg("element %lld where %lld is expected, or another value", (long long)element->seq,
                 (long long)seq);
}

void model_check_read(const model_t *model, spill_array_t *array, const spill_value_t *owner,
                      const spill_read_options_t *options)
{
    spill_slice_t *slice;
    spill_error_t error;
    expect_ok(spill_array_read(array, owner, options, &slice, &error), &error);
    int64_t skip = options->skip;
    size_t taken = 0;
    bool more = false;
    for (int64_t i = 0; i < model->count; i++) {
        int64_t seq = options->order == SPILL_OLDEST_FIRST ? i : model->count - 1 - i;
        if (model->kinds[seq] < 0 || seq <= options->after || seq >= options->before || skip-- > 0)
            continue;
        more = (int64_t)taken == options->limit;
        if (more)
            break;
        assert_true(taken < slice->count);
        expect_element(model, seq, &slice->elements[taken++]);
    }
    assert_int_equal(taken, slice->count);
    if (more) {
        assert_true(slice->more);
        assert_int_equal(slice->next, slice->elements[taken - 1].seq);
    }
    spill_slice_free(slice);
}

static void check_statistics(const model_t *model, const spill_count_t *count)
{
    int64_t values = 0;
    double sum = 0;
    for (int64_t seq = 0; seq < model->count; seq++) {
        int kind = model->kinds[seq];
        if (kind < 0 || !has_rating(kind))
            continue;
        values++;
        sum += rating_of(kind);
    }
    assert_int_equal(count->values, values);
    assert_true(count->sum - sum < 1e-6 && sum - count->sum < 1e-6);
    assert_true(values == 0 || (count->average - sum / (double)values < 1e-6 &&
                                sum / (double)values - count->average < 1e-6));
}

void model_check_count(const model_t *model, spill_array_t *array, const spill_value_t *owner)
{
    spill_count_t count;
    spill_error_t error;
    expect_ok(spill_array_count(array, owner, &count, &error), &error);
    assert_int_equal(count.exists, model->count > 0);
    assert_int_equal(count.count, model->live);
    assert_int_equal(count.next, model->count);
    if (model->documents && !model->top_n)
        check_statistics(model, &count);
}

/* The highest-ranked element that is not marked yet, of several the newest; -1: none is left. */
static int64_t next_in_rank(const model_t *model, const bool *taken)
{
    int64_t top_n = -1;
    for (int64_t seq = model->count - 1; seq >= 0; seq--)
        if (model->kinds[seq] >= 0 && !taken[seq] &&
            (top_n < 0 ||
             ranks_above(rank_of(model, model->kinds[seq]), rank_of(model, model->kinds[top_n]))))
            top_n = seq;
    return top_n;
}

void model_check_top(const model_t *model, spill_array_t *array, const spill_value_t *owner)
{
    spill_error_t error;
    spill_slice_t *all, *one;
    size_t expected = (size_t)(model->live < model->top ? model->live : model->top);
    bool *taken = bson_malloc0((size_t)model->count + 1);
    expect_ok(spill_array_top(array, owner, INT64_MAX, &all, &error), &error);
    expect_ok(spill_array_top(array, owner, 1, &one, &error), &error);
    assert_int_equal(all->count, expected);
    assert_false(all->more);
    for (size_t i = 0; i < expected; i++) {
        int64_t seq = next_in_rank(model, taken);
        expect_element(model, seq, &all->elements[i]);
        taken[seq] = true;
    }
    assert_int_equal(one->count, expected > 0);
    assert_int_equal(one->more, expected > 1);
    if (expected > 0)
        assert_int_equal(one->elements[0].seq, all->elements[0].seq);
    spill_slice_free(all);
    spill_slice_free(one);
    bson_free(taken);
}

typedef struct walk {
    const model_t *model;
    int64_t seq;
} walk_t;

static bool compare_next(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    walk_t *walk = context;
    (void)owner;
    while (walk->seq < walk->model->count && walk->model->kinds[walk->seq] < 0)
        walk->seq++;
    assert_true(walk->seq < walk->model->count);
    expect_element(walk->model, walk->seq++, element);
    return true;
}

void model_check_export(const model_t *model, spill_array_t *array, const spill_value_t *owner)
{
    walk_t walk = {.model = model};
    spill_error_t error;
    expect_ok(spill_array_export(array, owner, compare_next, &walk, &error), &error);
    for (; walk.seq < model->count; walk.seq++)
        assert_true(model->kinds[walk.seq] < 0);
}

static void report_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_error("page %lld, I%d: %s\n", (long long)finding->page, finding->invariant,
                finding->text);
}

void model_check_verify(spill_array_t *array, const spill_value_t *owner)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    expect_ok(spill_array_verify(array, owner, report_finding, NULL, &summary, &error), &error);
    assert_int_equal(summary.findings, 0);
}
