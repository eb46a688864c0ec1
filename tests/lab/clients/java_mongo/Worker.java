import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.bson.Document;
import org.bson.types.ObjectId;

/**
 * An application with MongoDB's Java driver: {@code Worker WORK URI APPLICATION OPTIONS}, options as JSON. Prints JSON
 * lines ready, resting and done. Works and options are those of clients/mongo_workers.py.
 */
final class Worker {
    static final int ROWS = 60;

    final Document options;
    final MongoClient client;
    final List<ObjectId> ids = new ArrayList<>();
    private final String uri;
    private final String name;

    private Worker(String uri, String name, String options) {
        this.uri = uri;
        this.name = name;
        this.options = Document.parse(options);
        client = connected();
    }

    MongoClient connected() {
        return MongoClients.create(MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(uri)).applicationName(name).build());
    }

    MongoCollection<Document> rowsOf(MongoClient one) {
        String[] place = options.getString("place").split("\\.", 2);
        return one.getDatabase(place[0]).getCollection(place[1]);
    }

    MongoCollection<Document> rows() {
        return rowsOf(client);
    }

    double number(String option) {
        return options.get(option, Number.class).doubleValue();
    }

    static void say(String event) {
        System.out.println("{\"event\": \"" + event + "\"}");
    }

    static void sleep(double seconds) {
        try {
            Thread.sleep((long) (seconds * 1000));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static Random random() {
        return ThreadLocalRandom.current();
    }

    static void between(double least, double most) {
        sleep(least + random().nextDouble() * (most - least));
    }

    /** Rest as somebody does who comes when he likes. */
    void pause() {
        sleep(-Math.log(1 - random().nextDouble()) * number("pause_s"));
    }

    ObjectId anyId() {
        return ids.get(random().nextInt(ids.size()));
    }

    List<ObjectId> sample(int count) {
        List<ObjectId> shuffled = new ArrayList<>(ids);
        Collections.shuffle(shuffled);
        return shuffled.subList(0, count);
    }

    void repeated(Runnable work) {
        for (int n = 0; n < number("count"); n++) {
            work.run();
        }
    }

    void untilOver(String option, Runnable work) {
        long until = System.nanoTime() + (long) (number(option) * 1e9);
        while (System.nanoTime() < until) {
            work.run();
        }
    }

    void inThreads(Runnable work) {
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < number("threads"); n++) {
            threads.add(new Thread(() -> untilOver("seconds", work)));
        }
        threads.forEach(Thread::start);
        for (Thread one : threads) {
            try {
                one.join();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    static void whatever(Runnable work) {
        try {
            work.run();
        } catch (MongoException error) {
            // The server's refusal is what the capture shall show.
        }
    }

    private void fill() {
        List<Document> made = new ArrayList<>();
        for (int n = 0; n < ROWS; n++) {
            ids.add(new ObjectId());
            made.add(new Document("_id", ids.get(n)).append("shelf", n % 7).append("text", "row " + n));
        }
        rows().insertMany(made);
    }

    public static void main(String[] words) {
        Logger.getLogger("org.mongodb.driver").setLevel(Level.SEVERE);
        Worker worker = new Worker(words[1], words[2], words[3]);
        if (worker.options.containsKey("fail_point")) {
            worker.client.getDatabase("admin").runCommand(worker.options.get("fail_point", Document.class));
        }
        if (worker.options.getBoolean("fill")) {
            worker.fill();
        }
        say("ready");
        new Works(worker).run(words[0]);
        worker.client.close();
        say("done");
    }
}
