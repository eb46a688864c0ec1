// Habits of mongo_habits.py with the Node driver: `node habits.js WORK URI APPLICATION OPTIONS`, options as JSON.
// Out: JSON lines `ready` and `done`. Works and options are alike; those that are not here pymongo alone knows,
// and `unacknowledged`, an insert with w: 0, it does not know.
"use strict";
const { MongoClient } = require("mongodb");

const [work, uri, appName, given] = process.argv.slice(2);
const options = JSON.parse(given);
const [database, collection] = options.place.split(".");
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const say = (event) => console.log(JSON.stringify({ event }));
const client = new MongoClient(uri, { appName });
const rows = client.db(database).collection(collection);
const sessions = [];

async function fill() {
  for (let first = 0; first < (options.fill || 0); first += 1000) {
    const count = Math.min(1000, options.fill - first);
    const made = Array.from({ length: count }, (_, n) => first + n);
    const text = "x".repeat(options.size || 20);
    await rows.insertMany(made.map((n) => ({ _id: n, key: n % 50, state: "done", text })));
  }
}

async function lookInSession(n) {
  sessions.push(client.startSession());
  await rows.findOne({ _id: n % 40 }, { session: sessions.at(-1) });
}

async function lookWithIndexes(n) {
  await rows.createIndex({ key: 1 });
  await rows.createIndex({ state: 1, key: 1 });
  await rows.findOne({ key: n % 50 });
}

async function shelves(n) {
  await rows.findOne({ _id: n % 40 });
  await rows.distinct("key");
}

const limit = options.limit_ms ? { maxTimeMS: options.limit_ms } : {};
const WORKS = {
  updates_nothing: (n) => rows.updateOne({ _id: `${n % 40}` }, { $set: { state: "shipped" } }),
  unacknowledged: (n) => rows.insertOne({ key: n, text: "never heard of again" }, { writeConcern: { w: 0 } }),
  asks: (n) => rows.findOne({ _id: n % 40 }),
  polls: () => rows.find({ state: "new" }).limit(1).toArray(),
  inserts_alone: (n) => rows.insertOne({ key: n, text: "imported row", state: "done" }),
  session_each: lookInSession,
  indexes_each: lookWithIndexes,
  totals: (n) => rows.aggregate([{ $match: { key: n % 50 } }, { $count: "n" }], limit).toArray(),
  shelves,
  walks: (n) => rows.find({ key: n % 50 }, { batchSize: 1 }).toArray(),
};

async function main() {
  if (options.fail_point) {
    await client.db("admin").command(options.fail_point);
  }
  await fill();
  say("ready");
  const until = Date.now() + options.seconds * 1000;
  for (let n = 0; Date.now() < until; n += 1) {
    await WORKS[work](n).catch(() => null);
    await sleep(options.pause_s || 0);
  }
  await client.close();
  say("done");
}

main();
