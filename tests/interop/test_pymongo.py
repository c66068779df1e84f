"""test_pymongo.py URI: check with pymongo the documents of a store that the program filled."""

import datetime
import json
import sys

import pymongo
from bson.int64 import Int64

from program import count, findings, read, spillway

URI = sys.argv[1]
DATABASE = pymongo.MongoClient(URI).get_default_database()
THRESHOLD, PAGE = 20, 15
START = datetime.datetime(2026, 1, 1)


def expect(found, wanted, what):
    """Compare values and their BSON types: pymongo has a separate type for 64-bit integers."""
    if found != wanted or type(found) is not type(wanted):
        raise AssertionError(f"{what}: {found!r} ({type(found).__name__}) is not {wanted!r}")


def activity(number):
    """An activity as in 000, of one of two kinds."""
    made = {"type": "post", "ts": START + datetime.timedelta(seconds=number)}
    made.update({"content": f"No. {number}"} if number % 2 else {"targetId": f"post-{number}"})
    return made


def activity_line(owner, number):
    """A record to import: its element is `activity` and the owner's field."""
    element = activity(number)
    element["ts"] = {"$date": element["ts"].isoformat() + "Z"}
    return json.dumps({"userId": owner, **element})


def as_imported(owner, number):
    return {"userId": owner, **activity(number)}


def without_spill(document):
    return {key: value for key, value in document.items() if key != "spill"}


def check_bookkeeping(spill, pages):
    """Check only the names of the fields under `spill`; docs/reference/mongodb.md has their values."""
    allowed = {"epoch", "rev", "first", "n", "gone", "ops", "sealed", "closed", "pages", "low",
               "removed", "total", "intent", "src", "open", "sum", "journal", "top", "shown"}
    expect(set(spill) - allowed, set(), "fields of spill")
    for field in ("epoch", "rev", "first", "n"):
        expect(type(spill[field]), Int64, f"type of spill.{field}")
    expect("open" in spill and ("sealed" in spill or "gone" in spill), False, "open when closed")
    for size in spill.get("open", {}).values():
        expect(type(size), int, "type of a size in spill.open")
    if pages is not None:
        expect(spill["pages"], Int64(pages), "spill.pages")


# ---- preset feed: 000 and 001 --------------------------------------------------------------------

def define_feed():
    spillway("define", URI, "feed", "--preset", "feed", "--threshold", str(THRESHOLD), "--page",
             str(PAGE))


def import_feed():
    lines = [activity_line(owner, number) for owner, total in (("user-00042", 300), ("user-7", 12))
             for number in range(total)]
    spillway("import", URI, "feed", "-", "--owner", "userId", "--format", "ndjson",
             stdin="\n".join(lines) + "\n")


def check_feed_head():
    """Check the head. An import's batches stay together, so it may be closed before it is full."""
    head = DATABASE.users.find_one({"_id": "user-00042"})
    pages = DATABASE.overflowActivities.count_documents({"userId": "user-00042"})
    kept = len(head["activities"])
    expect(0 < kept <= THRESHOLD, True, "a head of at most the threshold")
    last = DATABASE.overflowActivities.find_one({"userId": "user-00042", "page": pages - 1})
    expect(without_spill(head), {
        "_id": "user-00042",
        "activities": [as_imported("user-00042", number) for number in range(kept)],
        "activityCount": 300 - last["count"],  # at the last seal; the library's own count is exact
        "hasOverflow": True,
        "overflowPages": pages,
    }, "the head of feed")
    for field in ("activityCount", "overflowPages"):
        expect(type(head[field]), int, f"type of {field}")  # 32 bits, as in the sources' Java
    expect(list(head["spill"]), ["activities"], "arrays under spill")
    check_bookkeeping(head["spill"]["activities"], pages)
    return pages


def check_feed_small():
    """Check a head without overflow: it lacks the overflow fields, which means false and 0."""
    head = DATABASE.users.find_one({"_id": "user-7"})
    expect(without_spill(head), {
        "_id": "user-7",
        "activities": [as_imported("user-7", number) for number in range(12)],
        "activityCount": 12,
    }, "a head without overflow")
    check_bookkeeping(head["spill"]["activities"], 0)


def check_feed_one_by_one():
    """Check that single appends fill the head exactly to the threshold, and fill the pages."""
    for number in range(THRESHOLD + PAGE + 1):
        spillway("append", URI, "feed", "user-9", str(number))
    head = DATABASE.users.find_one({"_id": "user-9"})
    expect(without_spill(head), {
        "_id": "user-9", "activities": list(range(THRESHOLD)), "activityCount": THRESHOLD + PAGE,
        "hasOverflow": True, "overflowPages": 2}, "a head filled one by one")
    pages = DATABASE.overflowActivities.find({"userId": "user-9"}).sort("page", 1)
    expect([page["count"] for page in pages], [PAGE, 1], "pages filled one by one")


def check_feed_pages(pages):
    """Check all pages of a user, sorted by page, as 001 reads them."""
    found = list(DATABASE.overflowActivities.find({"userId": "user-00042"}).sort("page", 1))
    expect(len(found), pages, "pages of feed")
    first = len(DATABASE.users.find_one({"_id": "user-00042"})["activities"])
    for number, page in enumerate(found):
        size = min(PAGE, 300 - first)
        expect(page.pop("_id"), {"owner": "user-00042", "page": number}, "_id of a page")
        expect(without_spill(page), {
            "userId": "user-00042",
            "page": number,
            "activities": [as_imported("user-00042", n) for n in range(first, first + size)],
            "count": size,
        }, f"page {number} of feed")
        for field in ("page", "count"):
            expect(type(page[field]), int, f"type of {field}")
        expect(page["spill"]["first"], Int64(first), "spill.first of a page")
        check_bookkeeping(page["spill"], None)
        first += size


def get_activities(user, skip, limit):
    """001's getActivities, step by step: the head, then the overflow if the head is too short."""
    document = DATABASE.users.find_one(
        {"_id": user}, {"activities": 1, "hasOverflow": 1, "overflowPages": 1})
    activities = list(document["activities"])
    if document.get("hasOverflow", False) and skip + limit > len(activities):
        for page in DATABASE.overflowActivities.find({"userId": user}).sort("page", 1):
            activities.extend(page["activities"])
    activities.sort(key=lambda element: element["ts"], reverse=True)
    return activities[skip:skip + limit]


def check_get_activities():
    """Check getActivities. Time stamps rise here, so its order by `ts` is that of the numbers."""
    for skip, limit in ((0, 20), (30, 20), (295, 20)):
        _, elements = read(URI, "feed", "user-00042", "--skip", str(skip), "--limit", str(limit))
        if skip + limit > THRESHOLD:
            expect(get_activities("user-00042", skip, limit), elements, f"skip {skip}")
    _, elements = read(URI, "feed", "user-7", "--limit", "5")
    expect(get_activities("user-7", 0, 5), elements, "a user without overflow")


def check_detection():
    """Check that 000's detection finds no head above the threshold."""
    found = DATABASE.users.aggregate([
        {"$project": {"activityCount": {"$size": "$activities"},
                      "estimatedSize": {"$bsonSize": "$$ROOT"}}},
        {"$match": {"activityCount": {"$gt": THRESHOLD}}},
        {"$sort": {"activityCount": -1}},
        {"$limit": 100},
    ])
    expect(list(found), [], "outliers found by 000's pipeline")


def check_page_equals():
    """Check that pymongo and the program read the same numbers and elements of a page."""
    for page in DATABASE.overflowActivities.find({"userId": "user-00042"}):
        first = page["spill"]["first"]
        numbers, elements = read(URI, "feed", "user-00042", "--oldest", "--after", str(first - 1),
                                 "--limit", str(page["count"]))
        expect(numbers, list(range(first, first + page["count"])), "numbers of a page")
        expect(elements, page["activities"], "elements of a page")
    expect(count(URI, "feed", "user-00042"), 300, "count")


# ---- preset feed-recent: the same documents, the newest in the head ------------------------------

def check_recent():
    spillway("define", URI, "recent", "--preset", "feed-recent", "--threshold", str(THRESHOLD),
             "--page", str(PAGE), "--collection", "people", "--page-collection", "peoplePages")
    lines = [activity_line("alice", number) for number in range(200)]
    spillway("import", URI, "recent", "-", "--owner", "userId", "--format", "ndjson",
             stdin="\n".join(lines) + "\n")
    DATABASE.people.update_one({"_id": "alice"}, {"$set": {"name": "Alice"}})
    head = DATABASE.people.find_one({"_id": "alice"})
    pages = list(DATABASE.peoplePages.find({"userId": "alice"}).sort("page", 1))
    spilled = sum(page["count"] for page in pages)
    expect(without_spill(head), {
        "_id": "alice",
        "name": "Alice",
        "activities": [as_imported("alice", number) for number in range(spilled, 200)],
        "activityCount": 200,
        "hasOverflow": True,
        "overflowPages": len(pages),
    }, "the head of feed-recent")
    check_bookkeeping(head["spill"]["activities"], len(pages))
    elements = [element for page in pages for element in page["activities"]]
    expect(elements, [as_imported("alice", number) for number in range(spilled)], "the pages")
    _, newest = read(URI, "recent", "alice", "--limit", "10")
    expect(get_newest("alice", 10), newest, "the newest page by one query of the head")


def get_newest(user, limit):
    """The newest elements by one query of the head, as 001 promises for its first page."""
    head = DATABASE.people.find_one({"_id": user}, {"activities": {"$slice": -limit}})
    return head["activities"][::-1]


# ---- order: newest-first -------------------------------------------------------------------------

def check_newest_first(keep):
    """Check that each document has its newest element at index 0, and is otherwise the same."""
    name = f"front-{keep}"
    users, overflow = DATABASE[f"{keep}Users"], DATABASE[f"{keep}Overflow"]
    spillway("define", URI, name, "--preset", "feed", "--keep", keep, "--order", "newest-first",
             "--threshold", str(THRESHOLD), "--page", str(PAGE), "--collection", users.name,
             "--page-collection", overflow.name)
    spillway("append", URI, name, "ada", "-", stdin="\n".join(map(str, range(7))) + "\n")
    spillway("append", URI, name, "ada", "7")
    users.update_one({"_id": "ada"}, {"$push": {"activities": {"$each": [8], "$position": 0}}})
    spillway("append", URI, name, "ada", "-", stdin="\n".join(map(str, range(9, 100))) + "\n")
    for number in (3, 50, 98):  # the oldest document, one in the middle, the newest
        spillway("remove", URI, name, "ada", str(number))
        spillway("edit", URI, name, "ada", str(number + 1), str(number + 1001))
    wanted = [n + 1000 if n - 1 in (3, 50, 98) else n for n in range(100) if n not in (3, 50, 98)]
    head = users.find_one({"_id": "ada"})
    pages = list(overflow.find({"userId": "ada"}).sort("page", -1))
    documents = [head, *pages] if keep == "newest" else [*pages, head]
    expect(head["activities"][0], 1099 if keep == "newest" else THRESHOLD - 1, "index 0")
    expect([element for document in documents for element in document["activities"]],
           wanted[::-1], f"keep {keep}: the documents' arrays, newest first")
    for document in pages:
        expect(document["count"], len(document["activities"]), "count of a page")
    expect(read(URI, name, "ada", "--oldest", "--limit", "100")[1], wanted, "the program's read")
    newest = users.find_one({"_id": "ada"}, {"activities": {"$slice": 5}})["activities"]
    if keep == "newest":
        expect(newest, read(URI, name, "ada", "--limit", "5")[1], "the newest by a slice")
    expect(count(URI, name, "ada"), 97, "count")
    expect(findings(URI, name), 0, "findings of verify")


# ---- preset sales: the manual's example ----------------------------------------------------------

def sell(book, first, end):
    """Append users [first, end), with the manual's names."""
    users = "\n".join(f'"user{number:02}"' for number in range(first, end))
    spillway("append", URI, "sales", str(book), "-", stdin=users + "\n")


def check_sales():
    spillway("define", URI, "sales", "--preset", "sales", "--page", "100")
    DATABASE.sales.insert_one({"_id": 2, "title": "The Wooden Amulet", "year": 2023,
                               "author": "Lesley Moreno"})
    sell(1, 0, 3)
    sell(2, 0, 40)
    sell(2, 40, 350)  # fills the head, then pages
    expect(without_spill(DATABASE.sales.find_one({"_id": 1})), {
        "_id": 1,
        "customers_purchased": ["user00", "user01", "user02"],
    }, "a book with few sales")
    head = DATABASE.sales.find_one({"_id": 2})
    extras = list(DATABASE.extra_sales.find({"book_id": 2}).sort("spill.first", 1))
    expect(without_spill(head), {
        "_id": 2, "title": "The Wooden Amulet", "year": 2023, "author": "Lesley Moreno",
        "customers_purchased": [f"user{number:02}" for number in range(50)],
        "has_extras": True,
    }, "the outlier")
    first = 50
    for extra in extras:
        customers = extra["customers_purchased_extra"]
        expect({key: value for key, value in extra.items() if key not in ("_id", "spill")}, {
            "book_id": 2,
            "customers_purchased_extra": [f"user{number:02}"
                                          for number in range(first, first + len(customers))],
        }, "extra sales")
        first += len(customers)
    expect(first, 350, "customers in all")
    expect([len(extra["customers_purchased_extra"]) for extra in extras], [100, 100, 100],
           "customers in each page")
    check_lookup()


def check_lookup():
    """Check that the manual's extra query, and a join on book_id, return every customer once."""
    found = list(DATABASE.sales.aggregate([
        {"$match": {"_id": 2, "has_extras": True}},
        {"$lookup": {"from": "extra_sales", "localField": "_id", "foreignField": "book_id",
                     "as": "extras"}},
    ]))
    customers = list(found[0]["customers_purchased"])
    for extra in sorted(found[0]["extras"], key=lambda page: page["spill"]["first"]):
        customers.extend(extra["customers_purchased_extra"])
    expect(customers, [f"user{number:02}" for number in range(350)], "customers of the join")


# ---- preset reviews-separate: 003's reviews in a separate collection -----------------------------

def review(number):
    """A review. Every third rating is a double."""
    rating = number % 5 + 1
    return {"customerName": f"customer {number}", "rating": rating + 0.5 if number % 3 else rating,
            "createdAt": START + datetime.timedelta(hours=number)}


def review_line(product, number):
    made = review(number)
    made["createdAt"] = {"$date": made["createdAt"].isoformat() + "Z"}
    return json.dumps({"productId": product, **made})


def review_element(number):
    made = review(number)
    made["createdAt"] = {"$date": made["createdAt"].isoformat() + "Z"}
    return json.dumps(made)


def check_product(numbers):
    """Check the product's document, and its reviews newest first, by 003's query."""
    ratings = [review(number)["rating"] for number in numbers]
    head = DATABASE.products.find_one({"_id": "mountain"})
    average = head["reviewSummary"].pop("averageRating")
    expect(abs(average - sum(ratings) / len(ratings)) < 1e-12, True, f"average {average}")
    expect(without_spill(head), {"_id": "mountain", "name": "Mountain-100", "price": 3399.99,
                                 "reviewSummary": {"totalCount": len(numbers)}}, "a product")
    check_bookkeeping(head["spill"]["reviewSummary"], 50)
    found = list(DATABASE.reviews.find({"productId": "mountain"}).sort("createdAt", -1).limit(10))
    expect([{key: value for key, value in one.items() if key not in ("_id", "spill")}
            for one in found],
           [{"productId": "mountain", **review(number)} for number in sorted(numbers)[:-11:-1]],
           "the newest reviews")
    expect(DATABASE.reviews.count_documents({"productId": "mountain"}), len(numbers), "reviews")
    for one in found:
        check_bookkeeping(one["spill"], None)
        expect(one["_id"], {"owner": "mountain", "page": int(one["spill"]["first"])}, "_id")


def check_reviews():
    spillway("define", URI, "reviews", "--preset", "reviews-separate")
    DATABASE.products.insert_one({"_id": "mountain", "name": "Mountain-100", "price": 3399.99})
    spillway("import", URI, "reviews", "-", "--owner", "productId", "--format", "ndjson",
             stdin="\n".join(review_line("mountain", number) for number in range(50)))
    check_product(list(range(50)))
    for number in (0, 17, 49):
        spillway("remove", URI, "reviews", "mountain", str(number))
    kept = [number for number in range(50) if number not in (0, 17, 49)]
    check_product(kept)
    spillway("trim", URI, "reviews", "mountain", "--below", "10")
    check_product([number for number in kept if number >= 10])
    keys = {name: [field for field, _ in index["key"]]
            for name, index in DATABASE.reviews.index_information().items()}
    expect(keys, {"_id_": ["_id"], "spillway_page": ["productId", "createdAt"],
                  "spillway_first": ["productId", "spill.first", "_id"]}, "indexes of reviews")


# ---- preset reviews-subset: the best three in the product -----------------------------------------

def check_top(numbers):
    """Check the summary: the best rated first, as in 003, and the later one of two equal ratings."""
    head = DATABASE.goods.find_one({"_id": "mountain"})
    best = sorted(numbers, key=lambda number: (-review(number)["rating"], -number))[:3]
    expect(head["reviewSummary"]["topReviews"], [review(number) for number in best], "topReviews")
    expect(list(head["reviewSummary"]), ["topReviews", "totalCount", "averageRating"],
           "fields of a summary")
    expect(head["reviewSummary"]["totalCount"], len(numbers), "totalCount")
    check_bookkeeping(head["spill"]["reviewSummary"], 40)
    expect([int(entry["seq"]) for entry in head["spill"]["reviewSummary"]["top"]], best, "top")
    expect(head["spill"]["reviewSummary"]["shown"], Int64(len(best)), "shown")


def check_subset():
    spillway("define", URI, "best", "--preset", "reviews-subset", "--collection", "goods",
             "--page-collection", "goodsReviews")
    for number in range(20):
        spillway("append", URI, "best", "mountain", review_element(number))
        if number in (0, 1, 7):
            expect(len(DATABASE.goods.find_one({})["reviewSummary"]["topReviews"]),
                   min(3, number + 1), "length of topReviews")
    spillway("import", URI, "best", "-", "--owner", "productId", "--format", "ndjson",
             stdin="\n".join(review_line("mountain", number) for number in range(20, 40)))
    kept = list(range(40))
    check_top(kept)
    for number in (39, 34, 29, 5):
        spillway("remove", URI, "best", "mountain", str(number))
        kept.remove(number)
        check_top(kept)
    spillway("trim", URI, "best", "mountain", "--below", "30")
    check_top([number for number in kept if number >= 30])
    keys = [field for field, _ in DATABASE.goodsReviews.index_information()["spillway_rank"]["key"]]
    expect(keys, ["productId", "rating", "spill.first"], "index of ranks")
    expect(findings(URI, "best"), 0, "findings of verify")


# ---- writers without Spillway --------------------------------------------------------------------

def check_plain_push():
    """Check that an element of a plain $push to a head is an ordinary element."""
    users = DATABASE.people
    for number in range(10):
        spillway("append", URI, "recent", "dora", str(2 * number))
        users.update_one({"_id": "dora"}, {"$push": {"activities": 2 * number + 1}})
    numbers, elements = read(URI, "recent", "dora", "--oldest", "--limit", "100")
    expect(numbers, list(range(20)), "numbers with plain pushes")
    expect(elements, list(range(20)), "elements with plain pushes")
    expect(count(URI, "recent", "dora"), 20, "count with plain pushes")
    expect(users.find_one({"_id": "dora"})["activityCount"], 10, "activityCount lags")
    for number in range(20, 60):  # spills also move the pushed elements
        spillway("append", URI, "recent", "dora", str(number))
    _, elements = read(URI, "recent", "dora", "--oldest", "--limit", "100")
    expect(elements, list(range(60)), "elements after spills")
    head = users.find_one({"_id": "dora"})
    expect(head["activityCount"], 60, "activityCount after a spill")
    expect(findings(URI, "recent"), 0, "findings of verify")


# ---- indexes -------------------------------------------------------------------------------------

def check_indexes():
    for collection, owner, number in ((DATABASE.overflowActivities, "userId", ["page"]),
                                      (DATABASE.extra_sales, "book_id", [])):
        keys = {name: [field for field, _ in index["key"]]
                for name, index in collection.index_information().items()}
        expect(keys, {"_id_": ["_id"], "spillway_page": [owner, *number],
                      "spillway_first": [owner, "spill.first", "_id"]},
               f"indexes of {collection.name}")


def check_explain():
    """Check that the sources' page lookups use an index, if the server supports explain."""
    lookups = [DATABASE.overflowActivities.find({"userId": "user-00042", "page": 3}),
               DATABASE.overflowActivities.find({"userId": "user-00042"}).sort("page", 1),
               DATABASE.extra_sales.find({"book_id": 2})]
    for lookup in lookups:
        try:
            plan = json.dumps(lookup.explain(), default=str)
        except pymongo.errors.OperationFailure as error:
            print(f"not explained: {error}", file=sys.stderr)
            return
        if "spillway_page" not in plan and "spillway_first" not in plan:
            raise AssertionError(f"no index in {plan}")


def main():
    define_feed()
    import_feed()
    check_feed_pages(check_feed_head())
    check_feed_small()
    check_feed_one_by_one()
    check_get_activities()
    check_detection()
    check_page_equals()
    check_recent()
    check_newest_first("newest")
    check_newest_first("oldest")
    check_sales()
    check_reviews()
    check_subset()
    check_plain_push()
    check_indexes()
    check_explain()
    for name in ("feed", "recent", "sales", "reviews"):
        expect(findings(URI, name), 0, f"findings of verify in {name}")


main()
