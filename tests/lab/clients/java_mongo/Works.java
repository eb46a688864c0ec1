import com.mongodb.ReadPreference;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.bson.Document;
import org.bson.types.ObjectId;

/** What an application can do, each by name. */
final class Works {
    private static final int POOL = 10;

    private final Worker app;
    private final MongoCollection<Document> rows;
    private final Map<String, Runnable> known = Map.ofEntries(
            Map.entry("everyday", this::everyday), Map.entry("one_by_one", this::oneByOne),
            Map.entry("populate", this::populate), Map.entry("users", this::users),
            Map.entry("client_per_request", this::clientPerRequest), Map.entry("reports", this::reports),
            Map.entry("distinct", this::distinct), Map.entry("cursors", this::cursors),
            Map.entry("export", this::export), Map.entry("duplicates", this::duplicates),
            Map.entry("read_own_writes", this::readOwnWrites), Map.entry("writes", this::writes),
            Map.entry("logins", this::logins), Map.entry("pause", this::pause),
            Map.entry("transactions", this::transactions), Map.entry("transaction_left", this::transactionLeft));

    Works(Worker app) {
        this.app = app;
        rows = app.rows();
    }

    void run(String name) {
        known.get(name).run();
    }

    private static Document field(String name, Object value) {
        return new Document(name, value);
    }

    private void one(ObjectId id) {
        rows.find(field("_id", id)).first();
    }

    private void all(Document filter, int limit, int batch) {
        rows.find(filter).limit(limit).batchSize(batch).into(new ArrayList<>());
    }

    private void all(Document filter) {
        all(filter, 0, 0);
    }

    private void everyday() {
        app.untilOver("seconds", () -> {
            switch (Worker.random().nextInt(4)) {
                case 0 -> one(app.anyId());
                case 1 -> rows.updateOne(field("_id", app.anyId()), field("$inc", field("read", 1)));
                case 2 -> all(field("shelf", Worker.random().nextInt(7)));
                default -> rows.insertOne(field("shelf", 8));
            }
            Worker.between(0.05, 0.4);
        });
    }

    private void look(ObjectId id) {
        if (app.options.getString("how").equals("in")) {
            all(field("_id", field("$in", List.of(id))));
        } else {
            one(id);
        }
    }

    /** Read a list, then each of its rows alone: in turn, as a burst over the pool, or with $in of one value. */
    private void oneByOne() {
        for (int round = 0; round < app.number("rounds"); round++) {
            all(new Document(), Worker.ROWS, 0);
            if (app.options.getString("how").equals("burst")) {
                burst();
            } else {
                app.ids.forEach(this::look);
            }
            Worker.sleep(1);
        }
    }

    private void burst() {
        ExecutorService pool = Executors.newFixedThreadPool(POOL);
        app.ids.forEach(id -> pool.execute(() -> look(id)));
        pool.shutdown();
        try {
            pool.awaitTermination(1, TimeUnit.MINUTES);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private void populate() {
        app.untilOver("seconds", () -> {
            all(field("shelf", Worker.random().nextInt(7)));
            all(field("_id", field("$in", app.sample(30))));
            Worker.between(0.01, 0.1);
        });
    }

    private void users() {
        app.inThreads(() -> {
            one(app.anyId());
            app.pause();
        });
    }

    private void clientPerRequest() {
        app.repeated(() -> {
            try (MongoClient client = app.connected()) {
                app.rowsOf(client).find().first();
            }
            Worker.between(0.05, 0.25);
        });
    }

    private void reports() {
        app.inThreads(() -> {
            Document totals = field("_id", null).append("n", field("$sum", 1));
            Document match = field("$match", field("shelf", Worker.random().nextInt(7)));
            rows.aggregate(List.of(match, field("$group", totals))).into(new ArrayList<>());
            app.pause();
        });
    }

    private void distinct() {
        app.repeated(() -> {
            Worker.whatever(() -> rows.distinct("shelf", Integer.class).into(new ArrayList<>()));
            Worker.between(0.3, 0.8);
        });
    }

    /** Open one cursor after the other, read none to its end, and end without closing anything. */
    private void cursors() {
        List<MongoCursor<Document>> held = new ArrayList<>();
        app.repeated(() -> {
            held.add(rows.find(field("shelf", field("$gte", 0))).batchSize(5).iterator());
            held.get(held.size() - 1).next();
            Worker.sleep(0.7);
        });
        Worker.sleep(app.number("rest_s"));
        Runtime.getRuntime().halt(0);
    }

    private void export() {
        app.untilOver("seconds", () -> all(new Document(), 0, 20));
    }

    private void duplicates() {
        app.repeated(() -> {
            Worker.whatever(() -> rows.insertOne(field("_id", app.ids.get(0))));
            Worker.between(0.1, 0.6);
        });
    }

    private void readOwnWrites() {
        MongoCollection<Document> late = rows.withReadPreference(ReadPreference.secondary());
        app.repeated(() -> {
            Document made = field("_id", new ObjectId()).append("shelf", 3);
            rows.insertOne(made);
            Worker.sleep(app.number("pause_s"));
            late.find(field("_id", made.get("_id"))).first();
            Worker.between(0.2, 0.5);
        });
    }

    private void writes() {
        app.repeated(() -> {
            Worker.whatever(() -> rows.insertOne(field("shelf", 1)));
            Worker.between(0.3, 0.9);
        });
    }

    private void logins() {
        app.repeated(() -> {
            try (MongoClient client = app.connected()) {
                Worker.whatever(() -> client.getDatabase("admin").runCommand(field("ping", 1)));
            }
            Worker.between(0.02, 0.1);
        });
    }

    /** Rest after the first request, and ask again on the same connection. */
    private void pause() {
        Worker.say("resting");
        Worker.sleep(app.number("rest_s"));
        Worker.whatever(() -> rows.find().first());
    }

    private void add(ClientSession session, ObjectId id, int number) {
        rows.updateOne(session, field("_id", id), field("$inc", field("read", number)));
    }

    /** Move something from one row to another, all or nothing; a few are taken back. */
    private void transactions() {
        AtomicInteger number = new AtomicInteger();
        app.repeated(() -> {
            List<ObjectId> pair = app.sample(2);
            try (ClientSession session = app.client.startSession()) {
                session.startTransaction();
                add(session, pair.get(0), -1);
                add(session, pair.get(1), 1);
                if (number.incrementAndGet() % 5 == 0) {
                    session.abortTransaction();
                } else {
                    session.commitTransaction();
                }
            }
            Worker.between(0.1, 0.5);
        });
    }

    /** Begin a transaction and never end it: crash, stay, or stay and do other work. */
    private void transactionLeft() {
        ClientSession session = app.client.startSession();
        session.startTransaction();
        add(session, app.ids.get(0), 1);
        rows.insertOne(session, field("shelf", 2));
        if (app.options.getString("how").equals("crash")) {
            Runtime.getRuntime().halt(0);
        }
        Worker.say("resting");
        app.untilOver("rest_s", () -> {
            if (app.options.getString("how").equals("work")) {
                all(field("shelf", 3));
            }
            Worker.sleep(1);
        });
    }
}
