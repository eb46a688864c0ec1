// Mishaps with the Node driver, which practices.js runs: sessions that are forgotten, text for numbers, loads, suites.
// In: the program's client, rows, options and name. Out: works, each one round.
"use strict";

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const any = (least, most) => sleep(least + Math.random() * (most - least));
const TRIES = 3;

module.exports = ({ client, rows, options, appName }) => {
  const database = client.db(rows.dbName);
  const orders = database.collection(`${rows.collectionName}_orders`);

  // The stock's update has no session, so that it is no part of the transaction and stays where that is taken back.
  async function sells_beside(n) {
    const session = client.startSession();
    try {
      session.startTransaction();
      await orders.insertOne({ _id: `${appName}-${n}`, item: 20 + (n % 20) }, { session });
      await rows.updateOne({ _id: 20 + (n % 20) }, { $inc: { stock: -1 } });
      await sleep(options.think_s);
      await (n % 3 === 1 ? session.abortTransaction() : session.commitTransaction());
    } finally {
      await session.endSession();
    }
  }

  async function numbers() {
    for (let tried = 0; tried < TRIES; tried += 1) {
      const [last] = await rows.find({}).sort({ _id: -1 }).limit(1).toArray();
      await any(options.think_s / 2, options.think_s * 1.5);
      const made = await rows.insertOne({ _id: last ? last._id + 1 : 1, by: appName }).catch(() => null);
      if (made) {
        return;
      }
    }
  }

  // A form's values are text, and what is stored is what the form has.
  async function counts_as_text(n) {
    const row = await rows.findOne({ _id: n % 8 });
    await rows.updateOne({ _id: n % 8 }, { $set: { views: String(Number(row.views || 0) + 1) } });
  }

  async function loaded(n, part) {
    const texts = Array.from({ length: 25 }, (_, row) => ({ _id: `${n}-${part}-${row}`, text: "x".repeat(300) }));
    for (let done = false; !done; ) {
      done = await rows.insertMany(texts).then(() => true, (error) => error.code === 11000);
    }
  }

  async function leads() {
    const now = Date.now() / 1000;
    const free = { _id: "leader", $or: [{ by: appName }, { until: { $lt: now } }] };
    const mine = { $set: { by: appName, until: now + options.lease_s } };
    if (await rows.findOneAndUpdate(free, mine)) {
      await rows.updateOne({ _id: "invoices" }, { $inc: { runs: 1 }, $set: { by: appName } });
    }
  }

  // A suite of tests has a database of its own, which goes with it.
  async function suite(n) {
    const own = client.db(`ci_${appName}_${n}`.replaceAll(".", "_"));
    const carts = own.collection("carts");
    await carts.createIndex({ user: 1 });
    await carts.insertMany([1, 2, 3, 4].map((user) => ({ user, items: user })));
    await carts.updateOne({ user: 2 }, { $set: { items: 7 } });
    await carts.find({ user: 2 }).toArray();
    await carts.deleteOne({ user: 3 });
    await own.dropDatabase();
  }

  async function posts(n) {
    const text = n % 5 === 3 ? "See <script>alert('hi')</script> for it." : "I like it very much.";
    for (let tried = 0; tried < TRIES; tried += 1) {
      const made = await rows.insertOne({ _id: `${appName}-${n}`, text }).catch(() => null);
      if (made) {
        return;
      }
      await sleep(0.1);
    }
  }

  return {
    sells_beside,
    numbers,
    counts_as_text,
    counts: (n) => rows.updateOne({ _id: n % 8 }, { $inc: { views: 1 } }),
    loads: (n) => Promise.all(Array.from({ length: options.threads || 6 }, (_, part) => loaded(n, part))),
    leads,
    suite,
    posts,
  };
};
