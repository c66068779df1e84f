/* The problems of a report: findings of one array, map or group of collections belong together. */
#include "tools/report/report.h"

#include <stdlib.h>

/* The bytes by which problems are sorted: of the largest document, or of all collections. */
static int64_t weight_of(const spill_scan_result_t *result, const spill_scan_finding_t *finding)
{
    if (finding->group)
        return finding->group->bytes;
    return finding->path ? finding->path->bytes_max
                         : result->collections[finding->collection].sizes.max;
}

/* A finding of documents has no path and no group: its collection identifies it. */
static bool is_of(const spill_report_card_t *card, const spill_scan_finding_t *finding)
{
    return card->path == finding->path && card->group == finding->group &&
           (card->path || card->group || card->collection == finding->collection);
}

static spill_report_card_t *card_of(spill_report_t *report, const spill_scan_finding_t *finding)
{
    for (size_t i = 0; i < report->card_count; i++)
        if (is_of(&report->cards[i], finding))
            return &report->cards[i];
    spill_report_card_t *card = &report->cards[report->card_count++];
    *card = (spill_report_card_t){.path = finding->path,
                                  .group = finding->group,
                                  .collection = finding->collection,
                                  .first = report->card_count,
                                  .weight = weight_of(report->result, finding)};
    return card;
}

/* Large documents that no array or map explains. They come last. */
static bool is_of_documents(const spill_report_card_t *card)
{
    return !card->path && !card->group;
}

/* ---- large documents ------------------------------------------------------------------------- */

/* Is at least half of the document the path's arrays? */
static bool has_most(const spill_owners_t *owners, const spill_large_owner_t *document)
{
    for (size_t i = 0; i < owners->count; i++) {
        const spill_large_owner_t *owner = &owners->items[i];
        if (owner->place == document->place && owner->document_bytes == document->bytes)
            return owner->bytes >= document->bytes / 2;
    }
    return false;
}

/* Does the card's array or map explain all of the collection's largest documents? */
static bool explains(const spill_report_t *report, const spill_report_card_t *card,
                     const spill_scan_collection_t *collection)
{
    const spill_owners_t *largest = &collection->largest;
    if (!card->path || &report->result->collections[card->collection] != collection)
        return false;
    for (size_t i = 0; i < largest->count; i++)
        if (largest->items[i].bytes > report->result->limits.document_bytes / 2 &&
            !has_most(&card->path->heaviest, &largest->items[i]) &&
            !has_most(&card->path->owners, &largest->items[i]))
            return false;
    return largest->count > 0;
}

static void add_to_card(spill_report_card_t *card, const spill_scan_finding_t *finding)
{
    card->critical = card->critical || finding->critical;
    if (card->count < SPILL_REPORT_CARD_FINDINGS)
        card->findings[card->count++] = finding;
    else
        card->left_out++;
}

/* Move large documents to the card of the array or map that explains them: it is one problem. */
static void join_documents(spill_report_t *report, size_t at)
{
    const spill_report_card_t documents = report->cards[at];
    const spill_scan_collection_t *collection = &report->result->collections[documents.collection];
    for (size_t i = 0; i < report->card_count; i++) {
        if (!explains(report, &report->cards[i], collection))
            continue;
        for (size_t j = 0; j < documents.count; j++)
            add_to_card(&report->cards[i], documents.findings[j]);
        report->cards[at] = report->cards[--report->card_count];
        return;
    }
}

/* ---- all cards ------------------------------------------------------------------------------- */

static int by_weight(const void *left, const void *right)
{
    const spill_report_card_t *one = left, *two = right;
    if (one->critical != two->critical)
        return one->critical ? -1 : 1;
    if (is_of_documents(one) != is_of_documents(two))
        return is_of_documents(one) ? 1 : -1;
    if (one->weight != two->weight)
        return one->weight > two->weight ? -1 : 1;
    return (one->first > two->first) - (one->first < two->first);
}

void spill_report_collect(spill_report_t *report)
{
    const spill_scan_result_t *result = report->result;
    report->cards = bson_malloc0((result->finding_count + 1) * sizeof *report->cards);
    for (size_t i = 0; i < result->finding_count; i++) {
        const spill_scan_finding_t *finding = &result->findings[i];
        add_to_card(card_of(report, finding), finding);
    }
    for (size_t i = report->card_count; i > 0; i--)
        if (is_of_documents(&report->cards[i - 1]))
            join_documents(report, i - 1);
    qsort(report->cards, report->card_count, sizeof *report->cards, by_weight);
}
