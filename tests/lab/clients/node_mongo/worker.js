// Applications with the Node driver, for incidents: `node worker.js WORK URI APPLICATION OPTIONS`, options as JSON.
// Out: JSON lines `ready`, `resting` and `done`. Works and options are those of clients/mongo_workers.py.
"use strict";
const { MongoClient, ObjectId } = require("mongodb");

const ROWS = 60;
const [name, uri, appName, given] = process.argv.slice(2);
const options = JSON.parse(given);
const [database, collection] = options.place.split(".");
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const between = (least, most) => sleep(least + Math.random() * (most - least));
const pause = () => (options.pause_s ? sleep(-Math.log(1 - Math.random()) * options.pause_s) : null);
const say = (event) => console.log(JSON.stringify({ event }));
const whatever = (promise) => promise.catch(() => null);
const connected = () => new MongoClient(uri, { appName });
const below = (number) => Math.floor(Math.random() * number);
const any = (list) => list[below(list.length)];

const client = connected();
const rows = client.db(database).collection(collection);
const ids = [];

async function fill() {
  for (let n = 0; n < ROWS; n += 1) {
    ids.push(new ObjectId());
  }
  await rows.insertMany(ids.map((_id, n) => ({ _id, shelf: n % 7, text: `row ${n}` })));
}

function sample(count) {
  const left = [...ids];
  return Array.from({ length: count }, () => left.splice(below(left.length), 1)[0]);
}

async function untilOver(work) {
  const until = Date.now() + options.seconds * 1000;
  while (Date.now() < until) {
    await work();
  }
}

async function repeated(work) {
  for (let n = 0; n < options.count; n += 1) {
    await work(n);
  }
}

const inThreads = (work) => Promise.all(Array.from({ length: options.threads }, () => untilOver(work)));

const EVERYDAY = [
  () => rows.findOne({ _id: any(ids) }),
  () => rows.updateOne({ _id: any(ids) }, { $inc: { read: 1 } }),
  () => rows.find({ shelf: below(7) }).toArray(),
  () => rows.insertOne({ shelf: 8 }),
];

const everyday = () =>
  untilOver(async () => {
    await any(EVERYDAY)();
    await between(0.05, 0.4);
  });

async function one_by_one() {
  const look = (one) =>
    options.how === "in" ? rows.find({ _id: { $in: [one] } }).toArray() : rows.findOne({ _id: one });
  for (let round = 0; round < options.rounds; round += 1) {
    await rows.find({}).limit(ROWS).toArray();
    if (options.how === "burst") {
      await Promise.all(ids.map(look));
    } else {
      for (const one of ids) {
        await look(one);
      }
    }
    await sleep(1);
  }
}

const populate = () =>
  untilOver(async () => {
    await rows.find({ shelf: below(7) }).toArray();
    await rows.find({ _id: { $in: sample(30) } }).toArray();
    await between(0.01, 0.1);
  });

const users = () =>
  inThreads(async () => {
    await rows.findOne({ _id: any(ids) });
    await pause();
  });

const client_per_request = () =>
  repeated(async () => {
    const one = connected();
    await one.db(database).collection(collection).findOne({});
    await one.close();
    await between(0.05, 0.25);
  });

const reports = () =>
  inThreads(async () => {
    await rows.aggregate([{ $match: { shelf: below(7) } }, { $group: { _id: null, n: { $sum: 1 } } }]).toArray();
    await pause();
  });

const distinct = () =>
  repeated(async () => {
    await whatever(rows.distinct("shelf"));
    await between(0.3, 0.8);
  });

async function cursors() {
  const held = [];
  await repeated(async () => {
    held.push(rows.find({ shelf: { $gte: 0 } }, { batchSize: 5 }));
    await held.at(-1).next();
    await sleep(0.7);
  });
  await sleep(options.rest_s);
  process.exit(0); // without closing anything
}

const exportAll = () =>
  untilOver(async () => {
    for await (const one of rows.find({}, { batchSize: 20 })) {
      void one;
    }
  });

const duplicates = () =>
  repeated(async () => {
    await whatever(rows.insertOne({ _id: ids[0] }));
    await between(0.1, 0.6);
  });

async function read_own_writes() {
  const late = client.db(database).collection(collection, { readPreference: "secondary" });
  await repeated(async () => {
    const made = await rows.insertOne({ shelf: 3 });
    await sleep(options.pause_s);
    await late.findOne({ _id: made.insertedId });
    await between(0.2, 0.5);
  });
}

const writes = () =>
  repeated(async () => {
    await whatever(rows.insertOne({ shelf: 1 }));
    await between(0.3, 0.9);
  });

const logins = () =>
  repeated(async () => {
    const one = connected();
    await whatever(one.db("admin").command({ ping: 1 }));
    await one.close();
    await between(0.02, 0.1);
  });

async function rest() {
  say("resting");
  await sleep(options.rest_s);
  await whatever(rows.findOne({}));
}

const transactions = () =>
  repeated(async (number) => {
    const [one, other] = sample(2);
    const session = client.startSession();
    session.startTransaction();
    await rows.updateOne({ _id: one }, { $inc: { read: -1 } }, { session });
    await rows.updateOne({ _id: other }, { $inc: { read: 1 } }, { session });
    await (number % 5 === 4 ? session.abortTransaction() : session.commitTransaction());
    await session.endSession();
    await between(0.1, 0.5);
  });

async function transaction_left() {
  const session = client.startSession();
  session.startTransaction();
  await rows.updateOne({ _id: ids[0] }, { $inc: { read: 1 } }, { session });
  await rows.insertOne({ shelf: 2 }, { session });
  if (options.how === "crash") {
    process.exit(0);
  }
  say("resting");
  const until = Date.now() + options.rest_s * 1000;
  while (Date.now() < until) {
    if (options.how === "work") {
      await rows.find({ shelf: 3 }).toArray();
    }
    await sleep(1);
  }
}

const WORKS = {
  everyday, one_by_one, populate, users, client_per_request, reports, distinct, cursors, export: exportAll,
  duplicates, read_own_writes, writes, logins, pause: rest, transactions, transaction_left,
};

async function main() {
  if (options.fail_point) {
    await client.db("admin").command(options.fail_point);
  }
  if (options.fill) {
    await fill();
  }
  say("ready");
  await WORKS[name]();
  await client.close();
  say("done");
}

main();
