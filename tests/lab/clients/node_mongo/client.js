// Work of an application with the Node driver: `node client.js WORK URI`.
// Out: one JSON line for each command that the driver's own monitoring reports, with the fields of command_log.py.
"use strict";
const { MongoClient } = require("mongodb");

const begun = new Map();

function listened(client) {
  client.on("commandStarted", (event) => begun.set(event.requestId, event));
  client.on("commandSucceeded", (event) => told(event, event.reply ?? {}, {}));
  client.on("commandFailed", (event) => {
    // A failure with a code is the server's reply; another one is the connection's.
    const answer = event.failure.code === undefined ? {} : { ok: 0, code: event.failure.code };
    told(event, answer, { error: event.failure.name });
  });
  return client;
}

function told(event, reply, more) {
  const { command, databaseName } = begun.get(event.requestId);
  begun.delete(event.requestId);
  const first = command[event.commandName];
  const cursor = reply.cursor ?? {};
  const batch = cursor.firstBatch ?? cursor.nextBatch;
  const record = {
    event: "command",
    request_id: event.requestId,
    command: event.commandName,
    database: databaseName,
    collection: command.collection ?? (typeof first === "string" ? first : null),
    answered: reply.ok !== undefined,
    ok: reply.ok === undefined ? null : reply.ok === 1,
    code: reply.code ?? null,
    n: reply.n ?? null,
    n_modified: reply.nModified ?? null,
    write_errors: (reply.writeErrors ?? []).map((one) => one.code),
    cursor_id: cursor.id === undefined ? null : String(cursor.id),
    returned: batch === undefined ? null : batch.length,
    lsid: command.lsid === undefined ? null : command.lsid.id.toString("hex"),
    txn_number: command.txnNumber === undefined ? null : Number(command.txnNumber),
    duration_us: Math.round(event.duration * 1000),
    acknowledged: command.writeConcern?.w !== 0,
    ...more,
  };
  console.log(JSON.stringify(record));
}

async function everyday(client) {
  const books = client.db("library").collection("books");
  await books.insertMany(Array.from({ length: 40 }, (_, i) => ({ _id: i, title: `volume ${i}`, shelf: i % 5 })));
  await books.createIndex({ shelf: 1 });
  const shelf = await books.find({ shelf: 3 }, { batchSize: 3 }).toArray();
  await books.updateOne({ _id: 7 }, { $set: { lent: true } });
  await books.updateMany({ shelf: 1 }, { $inc: { read: 1 } });
  await books.deleteOne({ _id: 39 });
  await books.aggregate([{ $match: { shelf: { $gt: 1 } } }, { $group: { _id: "$shelf", n: { $sum: 1 } } }]).toArray();
  await books.countDocuments({});
  await client.db("admin").command({ ping: 1 });
  return { found: shelf.length };
}

async function pagesOneByOne(client) {
  const pages = client.db("shop").collection("pages");
  await pages.insertMany(Array.from({ length: 30 }, (_, i) => ({ _id: i, text: `page ${i}` })));
  for (let i = 0; i < 30; i += 1) {
    await pages.findOne({ _id: i });
  }
  try {
    await pages.insertOne({ _id: 3, text: "again" });
  } catch (error) {
    return { refused: error.code };
  }
  return {};
}

async function leftOpen(client) {
  await pagesOneByOne(client);
  const cursor = client.db("shop").collection("pages").find({}, { batchSize: 4 });
  await cursor.next();
  console.log(JSON.stringify({ event: "left", cursor_id: String(cursor.id) }));
  process.exit(0); // without closing anything, as an application that crashes
}

const WORKS = { everyday, leftOpen, pagesOneByOne };

async function main() {
  const [work, uri] = process.argv.slice(2);
  const client = listened(new MongoClient(uri, { monitorCommands: true, appName: `node-${work}` }));
  await client.connect();
  const done = await WORKS[work](client);
  await client.close();
  console.log(JSON.stringify({ event: "done", ...done }));
}

main();
