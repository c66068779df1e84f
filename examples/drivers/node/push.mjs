// Push an array past 16 MB with the Node driver. Usage: node push.mjs URI [--pause]
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { MongoClient } from "mongodb";

const ELEMENTS = 44;
const PAYLOAD = 1_000_000;

function element(number) {
  return { n: number, payload: String.fromCharCode(97 + (number % 26)).repeat(PAYLOAD) };
}

function digest(elements) {
  const sha = createHash("sha256");
  for (const { n, payload } of elements) sha.update(`${n}:${payload}`);
  return sha.digest("hex");
}

async function push(feeds, first, end) {
  for (let number = first; number < end; number++)
    await feeds.updateOne({ _id: "long" }, { $push: { events: element(number) } }, { upsert: true });
}

const client = await new MongoClient(process.argv[2]).connect();
const feeds = client.db().collection("feeds");
await push(feeds, 0, ELEMENTS / 2);
if (process.argv.includes("--pause")) {
  console.log("paused");
  await once(process.stdin, "data");
  process.stdin.unref();
  await feeds.findOne({ _id: "none" }); // the driver repeats a read on a new connection
}
await push(feeds, ELEMENTS / 2, ELEMENTS);

const pushed = Array.from({ length: ELEMENTS }, (_, number) => element(number));
const { events } = await feeds.findOne({ _id: "long" });
assert.equal(digest(events), digest(pushed), `read ${events.length} elements that differ`);

await feeds.insertOne({ _id: "gone" });
const small = [0, 1, 2].map((n) => ({ n, payload: "" }));
const result = await feeds.bulkWrite([
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
assert.deepEqual((await feeds.findOne({ _id: "short" })).events, small);
assert.equal(await feeds.findOne({ _id: "gone" }), null);

const long = await feeds.findOne({ _id: "long" });
assert.equal(long.title, "long");
assert(!("spill" in long), "bookkeeping is visible");
console.log("elements", long.events.length, "sha256", digest(long.events));
await client.close();
