// Check with MongoDB's shell the documents of a store that test_mongosh.sh filled.
const assert = require('assert');

// Equal as EJSON, with keys in any order. EJSON also compares the types that the shell shows.
function same(found, wanted, what) {
  assert.deepStrictEqual(EJSON.serialize(found, { relaxed: false }),
    EJSON.serialize(wanted, { relaxed: false }), what);
}

const without = (document, ...names) => {
  const rest = { ...document };
  names.forEach((name) => delete rest[name]);
  return rest;
};

const activity = (n) => ({ type: 'post', ts: new Date(1767225600000 + n), n });
const run = (make, first, end) => Array.from({ length: end - first }, (_, i) => make(first + i));

// ---- preset feed: 000 and 001 ----------------------------------------------------------------

const user = db.users.findOne({ _id: 'user-00042' });
same(without(user, 'spill'), {
  _id: 'user-00042',
  activities: run(activity, 0, 20),
  activityCount: 50, // at the last seal
  hasOverflow: true,
  overflowPages: 3,
}, 'the user');

const pages = db.overflowActivities.find({ userId: 'user-00042' }).sort({ page: 1 }).toArray();
same(pages.map((page) => without(page, '_id', 'spill')), [
  { userId: 'user-00042', page: 0, activities: run(activity, 20, 35), count: 15 },
  { userId: 'user-00042', page: 1, activities: run(activity, 35, 50), count: 15 },
  { userId: 'user-00042', page: 2, activities: run(activity, 50, 60), count: 10 },
], 'the overflow pages');
same(pages.map((page) => page._id), run((page) => ({ owner: 'user-00042', page }), 0, 3), '_id');

same(db.overflowActivities.countDocuments({ userId: 'user-00042', page: 1 }), 1, 'one page');

const detected = db.users.aggregate([
  { $project: { activityCount: { $size: '$activities' }, estimatedSize: { $bsonSize: '$$ROOT' } } },
  { $match: { activityCount: { $gt: 20 } } },
  { $sort: { activityCount: -1 } },
  { $limit: 100 },
]).toArray();
same(detected, [], 'outliers');

// ---- preset sales: the manual's example ------------------------------------------------------

const customer = (n) => `user${String(n).padStart(2, '0')}`;

same(without(db.sales.findOne({ _id: 1 }), 'spill'),
  { _id: 1, customers_purchased: run(customer, 0, 50) }, 'a typical book');

same(without(db.sales.findOne({ _id: 2 }), 'spill'),
  { _id: 2, customers_purchased: run(customer, 0, 50), has_extras: true }, 'the outlier');

same(db.extra_sales.find({ book_id: 2 }).toArray().map((extra) => without(extra, '_id', 'spill')),
  [{ book_id: 2, customers_purchased_extra: run(customer, 50, 120) }], 'extra sales');

const joined = db.sales.aggregate([
  { $match: { has_extras: true } },
  { $lookup: { from: 'extra_sales', localField: '_id', foreignField: 'book_id', as: 'extras' } },
]).toArray();
same(joined.map((book) => [book._id, book.extras.length]), [[2, 1]], 'the join');
