// Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with only
// Node's driver.
//
//     node feed.mjs NAME read OWNER [LIMIT [BEFORE]]   newest first; BEFORE is a printed number
//     node feed.mjs NAME count OWNER
//     node feed.mjs NAME append OWNER ELEMENT...       one operation per element
//
// NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word).
// The environment variable SPILLWAY_URI has the store's URI, with a database.
// docs/reference/mongodb.md explains the fields under `spill`;
// docs/how-to/recipes.md explains which calls are safe and why.

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { Binary, BSON, Long, MongoClient } from 'mongodb';

const { EJSON } = BSON;
const OP_BYTES = 112; // the maximum size of a stored operation id
const MARGIN_BYTES = 512; // fields of `spill` that may be added, and longer numbers

// The values and the fields of definitions that this recipe knows. Another field may be a rule that an
// append of the recipe would break, so checkKnown refuses the definition.
const KNOWN_VALUES = { layout: ['outlier'], keep: ['newest', 'oldest'] };
const KNOWN_FIELDS = `
  name collection array countField overflowField pagesField pageCollection pageOwner pageNumber
  pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest bounds
  bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax
  `.trim().split(/\s+/);

// Sequence numbers are 64-bit integers. The driver reads them as numbers while they are exact.
const NO_NUMBER = Long.MAX_VALUE;
const below = (seq, before) => before === NO_NUMBER || seq < before;

class Feed {
  static async open(client, name) {
    const database = client.db();
    const found = await database.collection('spillway.definitions').findOne({ _id: name });
    if (!found) throw new Error(`there is no definition '${name}'`);
    const feed = new Feed();
    feed.name = name;
    feed.definition = found.entry; // bounds may change: an application should read it again sometimes
    checkKnown(name, found.entry);
    feed.keepsNewest = found.entry.keep === 'newest';
    feed.heads = { // a head may have several arrays
      collection: database.collection(found.entry.collection),
      array: found.entry.array, // may be a path, such as stats.events
      spill: `spill.${found.entry.array.replaceAll('.', '$')}`,
      count: found.entry.countField,
    };
    feed.pages = {
      collection: database.collection(found.entry.pageCollection),
      array: found.entry.pageArray,
      spill: 'spill',
      count: found.entry.pageCount,
    };
    return feed;
  }

  // ---- reading -----------------------------------------------------------------------------

  // The state of the document that `match` finds, and its newest elements below `before`.
  async readDocument({ collection, array, spill }, match, before, limit) {
    const live = { $cond: [hasTypes(array), { $size: { $ifNull: [`$${array}`, []] } }, -1] };
    const gone = { $ifNull: [`$${spill}.gone`, []] };
    const goneBelow = { $size: { $filter: { input: gone, cond: { $lt: ['$$this', before] } } } };
    const place = { $subtract: [{ $subtract: [before, `$${spill}.first`] }, goneBelow] };
    const end = { $max: [0, { $min: [live, place] }] }; // elements below `before`
    const start = { $max: [0, { $subtract: [end, limit] }] };
    const count = { $min: [limit, end] };
    const run = {
      $cond: [{ $gt: [count, 0] }, { $slice: [`$${array}`, start, { $max: [1, count] }] }, []],
    };
    const project = { $project: { spill: `$${spill}`, live, start, run } };
    const [found] = await collection.aggregate([...match, project]).toArray();
    const what = `${collection.collectionName}: '${array}'`;
    if (found?.live < 0)
      throw new Error(`${what} is not an array, or a field around it is not a document`);
    if (found?.live > 0 && !found.spill?.epoch)
      throw new Error(`${what} is unmanaged; adopt it with \`spillway migrate\``);
    if (!found?.spill?.epoch) return null;
    const state = { gone: [], ...found.spill };
    state.end = state.first + found.live + state.gone.length;
    state.rows = number(state, found.start, found.run);
    return state;
  }

  head(owner, before = NO_NUMBER, limit = 0) {
    return this.readDocument(this.heads, [{ $match: { _id: { $eq: owner } } }], before, limit);
  }

  // The owner's last page that begins below `before`: only pages that the head counts, and of its
  // own incarnation (epoch). Found by index, never by count.
  page(owner, head, before = NO_NUMBER, limit = 0) {
    const match = {
      [this.definition.pageOwner]: { $eq: owner },
      'spill.epoch': head.epoch,
      '_id.page': { $lt: head.pages },
      'spill.first': { $lt: before },
    };
    const newest = [{ $match: match }, { $sort: { 'spill.first': -1, _id: -1 } }, { $limit: 1 }];
    return this.readDocument(this.pages, newest, before, limit);
  }

  // Up to `limit` elements numbered below `before`, newest first, as {seq, element}. The last
  // number is the cursor for the next page. Appends do not invalidate it.
  async read(owner, limit = 20, before = NO_NUMBER) {
    const head = await this.head(owner, before, limit);
    const rows = [];
    while (head && !below(before, head.low + 1) && rows.length < limit) {
      let part = null;
      if (!this.keepsNewest || !below(head.first, before))
        part = await this.page(owner, head, before, limit - rows.length);
      if (!part && below(head.first, before)) part = head;
      if (!part) break;
      rows.push(...part.rows.filter((row) => row.seq >= head.low));
      before = part.first;
    }
    return rows.slice(0, limit);
  }

  // The exact number of live elements. The head's count field may be out of date.
  async count(owner) {
    for (;;) {
      const head = await this.head(owner);
      if (!head) return 0;
      const dead = head.low + head.removed;
      if (this.keepsNewest) return head.end - head.gone.length - dead; // `removed` counts below `first`
      if (head.pages === 0) return head.end - dead;
      const last = await this.page(owner, head);
      const again = await this.head(owner);
      // A removal or a trim in between raises `rev`, a new page raises `pages`: then try again.
      const same = again?.rev === head.rev && again.pages === head.pages;
      if (same) return (last ?? head).end - dead; // the first page may not exist yet
    }
  }

  // ---- appending ---------------------------------------------------------------------------

  // The identity of one append: make it before the first try, keep it until there is an answer.
  // `base` is a value of the owner's `n` from before the first try.
  async operation(owner) {
    const head = await this.head(owner);
    const last = head && !this.keepsNewest && head.pages > 0 ? await this.page(owner, head) : null;
    return { id: randomUUID(), base: (last ?? head)?.n ?? 0 };
  }

  // Returns the element's sequence number. After a time-out, repeat it with the same operation.
  async append(owner, element, operation) {
    const seq = await this.push(owner, element, operation);
    // No head, no room, a closed page, or appended before: leave it to the program.
    return seq ?? this.appendByProgram(owner, element, operation);
  }

  // The document that accepts appends, and its bounds.
  async tail(owner) {
    const { bounds, pageOwner } = this.definition;
    const head = this.keepsNewest ? null : await this.head(owner);
    if (head?.pages > 0) // keep oldest: the last page
      return {
        ...this.pages,
        match: {
          _id: { $eq: { owner, page: head.pages - 1 } },
          [pageOwner]: { $eq: owner },
          'spill.epoch': head.epoch,
        },
        slots: bounds.pageCapacity,
        bytes: bounds.pageBytesMax,
      };
    const page = bounds.pageCapacity; // keep newest: the head grows by a page, and a little, before it spills
    return {
      ...this.heads,
      match: { _id: { $eq: owner }, [`${this.heads.spill}.epoch`]: { $exists: true } },
      slots: bounds.threshold + (this.keepsNewest ? page + Math.floor(page / 8) + 1 : 0),
      bytes: bounds.headBytesMax,
    };
  }

  // One findAndModify with a guard as its filter. null: refused, and nothing has changed.
  async push(owner, element, operation) {
    const { collection, array, spill, count, match, slots, bytes } = await this.tail(owner);
    const window = this.definition.opWindow;
    const id = new Binary(Buffer.from(operation.id));
    const live = { $size: { $ifNull: [`$${array}`, []] } };
    const gone = { $size: { $ifNull: [`$${spill}.gone`, []] } };
    const grows = elementBytes(element) + OP_BYTES * (window + 1) + MARGIN_BYTES;
    const guard = {
      ...match,
      [`${spill}.sealed`]: { $ne: true },
      [`${spill}.ops.id`]: { $ne: id }, // not appended before
      [`${spill}.n`]: { $lt: operation.base + window }, // or the window may have dropped the id
      $expr: {
        $and: [
          { $lte: [{ $add: [live, gone, 1] }, slots] },
          { $lte: [{ $add: [{ $bsonSize: '$$ROOT' }, grows] }, bytes] },
          // Another program may have replaced the array: then deleted numbers lie behind its end.
          { $lt: [{ $max: `$${spill}.gone` }, { $add: [`$${spill}.first`, live, gone] }] },
        ],
      },
    };
    const note = { id, count: Long.fromInt(1), after: Long.fromInt(0) };
    const update = {
      $push: {
        [array]: { $each: [element] },
        [`${spill}.ops`]: { $each: [note], $position: 0, $slice: window },
      },
      $inc: { [`${spill}.n`]: Long.fromInt(1), ...(count ? { [count]: 1 } : {}) },
    };
    const after = await collection.findOneAndUpdate(guard, update, {
      returnDocument: 'after',
      projection: { _id: 0, first: `$${spill}.first`, live, gone },
    });
    return after && after.first + after.live + after.gone - 1;
  }

  // `spillway append` creates heads and pages, spills, and recognizes repeated operations.
  appendByProgram(owner, element, operation) {
    const program = process.env.SPILLWAY ?? 'spillway';
    const op = `${operation.id}@${operation.base}`;
    const place = ['append', 'env:', this.name, extended(owner), '-'];
    return Number(
      execFileSync(program, [...place, '--quiet', '--op', op], {
        input: `${extended(element)}\n`,
        stdio: ['pipe', 'pipe', 'inherit'],
      }),
    );
  }
}

// Refuse a definition that has a field, or a value, that this recipe does not know.
function checkKnown(name, definition) {
  const values = Object.entries(KNOWN_VALUES)
    .filter(([field, known]) => !known.includes(definition[field]))
    .map(([field]) => `${field} '${definition[field]}'`);
  const bounds = Object.keys(definition.bounds).map((field) => `bounds.${field}`);
  const fields = [...Object.keys(definition), ...bounds]
    .filter((field) => !KNOWN_FIELDS.includes(field))
    .map((field) => `field '${field}'`);
  const [unknown] = [...values, ...fields];
  if (unknown)
    throw new Error(
      `definition '${name}': this recipe does not know its ${unknown}; use the library or the program`,
    );
}

// An expression: the array, and each document around it, is missing or has its type.
function hasTypes(array) {
  const parts = array.split('.');
  const paths = parts.map((_, last) => parts.slice(0, last + 1).join('.'));
  const type = (path) => (path === array ? 'array' : 'object');
  return { $and: paths.map((path) => ({ $in: [{ $type: `$${path}` }, ['missing', type(path)]] })) };
}

// Sequence numbers of live elements, from index `start` of the array, newest first.
function number(state, start, run) {
  const gone = [...state.gone].sort((left, right) => left - right);
  let seq = state.first + Number(start);
  const rows = run.map((element) => {
    for (; gone.length > 0 && gone[0] <= seq; gone.shift()) seq++;
    return { seq: seq++, element };
  });
  return rows.reverse();
}

// The size of an array entry: its value, and an index of up to seven digits.
function elementBytes(element) {
  return BSON.calculateObjectSize({ '': element }) + 8;
}

// Canonical Extended JSON. A JavaScript number becomes an int32 if it is one, else a double.
function extended(value) {
  return EJSON.stringify(value, { relaxed: false });
}

// Relaxed Extended JSON: integers become int32 if they fit.
function parseOwner(text) {
  try {
    return EJSON.parse(text);
  } catch {
    return text;
  }
}

const [name, command, owner, ...rest] = process.argv.slice(2);
const client = new MongoClient(process.env.SPILLWAY_URI, {
  // Appends survive, and reads see only what survives, as long as a majority of the servers does.
  writeConcern: { w: 'majority' },
  readConcern: { level: 'majority' },
});
try {
  const feed = await Feed.open(client, name);
  const of = parseOwner(owner);
  if (command === 'read') {
    for (const row of await feed.read(of, ...rest.map(Number))) console.log(EJSON.stringify(row));
  } else if (command === 'count') {
    console.log(await feed.count(of));
  } else if (command === 'append') {
    for (const element of rest.map((text) => EJSON.parse(text)))
      console.log(await feed.append(of, element, await feed.operation(of)));
  } else {
    throw new Error('usage: node feed.mjs NAME read|count|append OWNER ...');
  }
} finally {
  await client.close();
}
