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

/* Large documents come last: if an array explains them, its card says more. */
static bool is_of_documents(const spill_report_card_t *card)
{
    return !card->path && !card->group;
}

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
        spill_report_card_t *card = card_of(report, finding);
        card->critical = card->critical || finding->critical;
        if (card->count < SPILL_REPORT_CARD_FINDINGS)
            card->findings[card->count++] = finding;
        else
            card->left_out++;
    }
    qsort(report->cards, report->card_count, sizeof *report->cards, by_weight);
}
