// Push an array past 16 MB with mongoose: push and save. Usage: node push.mjs URI [--pause]
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import mongoose from "mongoose";

const ELEMENTS = 44;
const PAYLOAD = 1_000_000;

const Event = new mongoose.Schema({ n: Number, payload: String }, { _id: false });
const Feed = mongoose.model(
  "Feed",
  new mongoose.Schema({ _id: String, title: String, events: [Event] }, { collection: "feeds" }),
);

function element(number) {
  return { n: number, payload: String.fromCharCode(97 + (number % 26)).repeat(PAYLOAD) };
}

function digest(elements) {
  const sha = createHash("sha256");
  for (const { n, payload } of elements) sha.update(`${n}:${payload}`);
  return sha.digest("hex");
}

// The document in memory keeps all elements; each save sends only the new one.
async function push(feed, first, end) {
  for (let number = first; number < end; number++) {
    feed.events.push(element(number));
    await feed.save();
  }
}

await mongoose.connect(process.argv[2]);
const feed = await new Feed({ _id: "long", events: [] }).save();
await push(feed, 0, ELEMENTS / 2);
if (process.argv.includes("--pause")) {
  console.log("paused");
  await once(process.stdin, "data");
  process.stdin.unref();
  await Feed.findById("none"); // the driver repeats a read on a new connection
}
await push(feed, ELEMENTS / 2, ELEMENTS);

const pushed = Array.from({ length: ELEMENTS }, (_, number) => element(number));
const { events } = await Feed.findById("long");
assert.equal(digest(events), digest(pushed), `read ${events.length} elements that differ`);

await new Feed({ _id: "gone" }).save();
const small = [0, 1, 2].map((n) => ({ n, payload: "-" }));
const result = await Feed.bulkWrite([
  { insertOne: { document: { _id: "short", events: [] } } },
  { updateOne: { filter: { _id: "short" }, update: { $push: { events: { $each: small } } } } },
  {
    updateOne: {
      filter: { _id: "long" },
      update: { $push: { events: element(ELEMENTS) }, $set: { title: "long" } },
    },
  },
  { deleteOne: { filter: { _id: "gone" } } },
]);
assert.deepEqual([result.insertedCount, result.modifiedCount, result.deletedCount], [1, 2, 1]);
assert.deepEqual((await Feed.findById("short").lean()).events, small);
assert.equal(await Feed.findById("gone"), null);

const long = await Feed.findById("long").lean();
assert.equal(long.title, "long");
assert(!("spill" in long), "bookkeeping is visible");
console.log("elements", long.events.length, "sha256", digest(long.events));
await mongoose.disconnect();
