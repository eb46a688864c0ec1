// More habits with the Node driver, as habits.js: `node practices.js WORK URI APPLICATION OPTIONS`, options as JSON.
// Out: JSON lines `ready` and `done`.
"use strict";
const { MongoClient } = require("mongodb");

const [work, uri, appName, given] = process.argv.slice(2);
const options = JSON.parse(given);
const [database, collection] = options.place.split(".");
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const say = (event) => console.log(JSON.stringify({ event }));
const client = new MongoClient(uri, { appName, ignoreUndefined: true, ...(options.client || {}) });
const rows = client.db(database).collection(collection);

async function checks(n) {
  if (options.how === "ping") {
    await client.db("admin").command({ ping: 1 });
  } else {
    await client.db(database).listCollections({}, { nameOnly: true }).toArray();
  }
  await rows.findOne({ _id: n % 40 });
}

// The row's version is part of the filter, so that nobody's change is lost; who comes late reads again.
async function optimistic() {
  const row = await rows.findOne({ _id: 4 });
  await sleep(options.think_s);
  const version = row.version || 0;
  const filter = version ? { _id: 4, version } : { _id: 4 };
  await rows.updateOne(filter, { $set: { version: version + 1, by: appName } });
}

async function archives(n) {
  const old = await rows.find({ key: n % 50 }).limit(20).project({ _id: 1 }).toArray();
  if (old.length) {
    await rows.deleteMany({ _id: { $in: old.map((one) => one._id) } });
  }
}

function saves(n) {
  const more = options.changes ? { seen: n } : {};
  return rows.updateOne({ _id: n % 40 }, { $set: { state: "done", key: n % 40, ...more } });
}

function seen_at(n) {
  const now = Date.now();
  const filter = options.by_time ? { device: n % 8, at: now } : { device: n % 8 };
  return rows.updateOne(filter, { $set: { at: now, seen: n } }, { upsert: true });
}

const WORKS = {
  checks,
  optimistic,
  archives,
  // The tenant comes from a request that has none, and the driver leaves out what is undefined.
  tenant_missing: () => rows.updateMany({ tenant: {}.tenant }, { $set: { plan: "closed", at: new Date() } }),
  raises: () => rows.updateMany({ key: { $lt: 20 } }, { $inc: { price: 1 } }),
  field: (n) => rows.findOne({ [options.field]: n % 50 }),
  lists: (n) => rows.find({ key: n % 50 }, options.whole ? {} : { projection: { state: 1, key: 1 } }).toArray(),
  asks_text: (n) => rows.findOne({ _id: String(n % 40) }),
  asks: (n) => rows.findOne({ _id: n % 40 }),
  hinted: (n) => rows.findOne({ state: "done", key: n % 50 }, options.hint ? { hint: options.hint } : {}),
  saves,
  seen_at,
  ...require("./mishaps.js")({ client, rows, options, appName }),
  inserts: (n) => rows.insertOne({ key: n, text: "a row of today", state: "done" }),
};

async function main() {
  for (let first = 0; first < (options.fill || 0); first += 1000) {
    const made = Array.from({ length: Math.min(1000, options.fill - first) }, (_, n) => first + n);
    const text = "x".repeat(options.size || 20);
    await rows.insertMany(made.map((n) => ({ _id: n, key: n % 50, state: "done", price: 1, text })));
  }
  say("ready");
  const until = Date.now() + options.seconds * 1000;
  for (let n = 0; Date.now() < until; n += 1) {
    await WORKS[work](n).catch((error) => console.error(error.message));
    await sleep(options.pause_s || 0);
  }
  await client.close();
  say("done");
}

main();
