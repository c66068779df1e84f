// Push an array past 16 MB with the Java driver. Usage: java -cp 'jars/*' Push.java URI [--pause]

import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Updates.combine;
import static com.mongodb.client.model.Updates.push;
import static com.mongodb.client.model.Updates.pushEach;
import static com.mongodb.client.model.Updates.set;

import com.mongodb.ConnectionString;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.Document;

public class Push {
    static final int ELEMENTS = 44;
    static final int PAYLOAD = 1_000_000;

    static Document element(int number) {
        String letter = String.valueOf((char) ('a' + number % 26));
        return new Document("n", number).append("payload", letter.repeat(PAYLOAD));
    }

    static String digest(List<Document> elements) throws Exception {
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        for (Document element : elements) {
            String text = element.getInteger("n") + ":" + element.getString("payload");
            sha.update(text.getBytes(StandardCharsets.UTF_8));
        }
        return HexFormat.of().formatHex(sha.digest());
    }

    static void pushAll(MongoCollection<Document> feeds, int first, int end) {
        for (int number = first; number < end; number++) {
            feeds.updateOne(
                    eq("_id", "long"), push("events", element(number)), new UpdateOptions().upsert(true));
        }
    }

    static void check(boolean condition, String what) {
        if (!condition) {
            throw new IllegalStateException(what);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String uri = arguments[0];
        try (MongoClient client = MongoClients.create(uri)) {
            String database = new ConnectionString(uri).getDatabase();
            MongoCollection<Document> feeds = client.getDatabase(database).getCollection("feeds");
            pushAll(feeds, 0, ELEMENTS / 2);
            if (List.of(arguments).contains("--pause")) {
                System.out.println("paused");
                System.in.read();
                feeds.find(eq("_id", "none")).first(); // the driver repeats a read on a new connection
            }
            pushAll(feeds, ELEMENTS / 2, ELEMENTS);

            List<Document> pushed = IntStream.range(0, ELEMENTS).mapToObj(Push::element).toList();
            List<Document> events =
                    feeds.find(eq("_id", "long")).first().getList("events", Document.class);
            check(digest(events).equals(digest(pushed)), "the elements read differ");

            feeds.insertOne(new Document("_id", "gone"));
            List<Document> small =
                    IntStream.range(0, 3).mapToObj(n -> new Document("n", n).append("payload", "")).toList();
            var result =
                    feeds.bulkWrite(
                            List.of(
                                    new InsertOneModel<>(
                                            new Document("_id", "short").append("events", List.of())),
                                    new UpdateOneModel<>(eq("_id", "short"), pushEach("events", small)),
                                    new UpdateOneModel<>(
                                            eq("_id", "long"),
                                            combine(push("events", element(ELEMENTS)), set("title", "long"))),
                                    new DeleteOneModel<>(eq("_id", "gone"))));
            check(
                    result.getInsertedCount() == 1
                            && result.getModifiedCount() == 2
                            && result.getDeletedCount() == 1,
                    "the bulk write answers " + result);
            check(
                    feeds.find(eq("_id", "short")).first().getList("events", Document.class).equals(small),
                    "the short array differs");
            check(feeds.find(eq("_id", "gone")).first() == null, "a deleted document is there");

            Document last = feeds.find(eq("_id", "long")).first();
            check("long".equals(last.getString("title")), "the title was not set");
            check(!last.containsKey("spill"), "bookkeeping is visible");
            events = last.getList("events", Document.class);
            System.out.println("elements " + events.size() + " sha256 " + digest(events));
        }
    }
}
