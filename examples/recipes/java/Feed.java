import com.mongodb.ConnectionString;
import com.mongodb.ReadConcern;
import com.mongodb.WriteConcern;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.ReturnDocument;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.bson.BsonDocument;
import org.bson.BsonValue;
import org.bson.Document;
import org.bson.RawBsonDocument;
import org.bson.codecs.BsonDocumentCodec;
import org.bson.json.JsonMode;
import org.bson.json.JsonParseException;
import org.bson.json.JsonWriterSettings;
import org.bson.types.Binary;

/**
 * Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with only the
 * Java driver.
 *
 * <pre>
 *     java -cp 'jars/*' Feed.java NAME read OWNER [LIMIT [BEFORE]]   newest first
 *     java -cp 'jars/*' Feed.java NAME count OWNER
 *     java -cp 'jars/*' Feed.java NAME append OWNER ELEMENT...       one operation per element
 * </pre>
 *
 * NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word),
 * BEFORE is a number that was printed. The environment variable SPILLWAY_URI has the store's URI, with
 * a database. docs/reference/mongodb.md explains the fields under `spill`; docs/how-to/recipes.md
 * explains which calls are safe and why.
 */
public final class Feed {
    private static final long NO_NUMBER = Long.MAX_VALUE; // above every sequence number
    private static final int OP_BYTES = 112; // the maximum size of a stored operation id
    private static final int MARGIN_BYTES = 512; // fields of `spill` that may be added, longer numbers

    /**
     * The fields of definitions that this recipe knows. Another field may be a rule that an append of the
     * recipe would break, so checkKnown refuses the definition.
     */
    private static final Set<String> KNOWN_FIELDS = Set.of("""
            name collection array countField overflowField pagesField pageCollection pageOwner pageNumber
            pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest
            bounds bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax
            """.strip().split("\\s+"));
    private static final Map<String, Set<String>> KNOWN_VALUES =
            Map.of("layout", Set.of("outlier"), "keep", Set.of("newest", "oldest"));

    /** An element and its number. */
    record Row(long seq, BsonValue element) {}

    /** The identity of one append; `base` is a value of the owner's `n` from before it. */
    record Operation(String id, long base) {}

    /** The place of an array in the documents of a collection; `count` may be empty. */
    record Place(MongoCollection<Document> collection, String array, String spill, String count) {}

    /** The document that accepts appends, and its bounds. */
    record Tail(Place place, Document match, long slots, long bytes) {}

    /** A document's bookkeeping, and elements of it, newest first. */
    record State(Document spill, int live, List<Row> rows) {
        long number(String field) {
            return spill.get(field) instanceof Number value ? value.longValue() : 0;
        }

        int gone() {
            return spill.getList("gone", Number.class, List.of()).size();
        }

        long end() {
            return number("first") + live + gone();
        }
    }

    private final String name;
    private final Document definition; // bounds may change: read it again sometimes
    private final Document bounds;
    private final boolean keepsNewest;
    private final Place heads;
    private final Place pages;

    Feed(MongoDatabase database, String name) {
        MongoCollection<Document> definitions = database.getCollection("spillway.definitions");
        Document found = definitions.find(doc("_id", name)).first();
        if (found == null) {
            throw new IllegalArgumentException("there is no definition '" + name + "'");
        }
        this.name = name;
        definition = found.get("entry", Document.class);
        bounds = definition.get("bounds", Document.class);
        checkKnown();
        keepsNewest = definition.getString("keep").equals("newest");
        String array = definition.getString("array"); // a head may have several; may be a path
        heads = new Place(database.getCollection(definition.getString("collection")), array,
                "spill." + array.replace('.', '$'), definition.getString("countField"));
        pages = new Place(database.getCollection(definition.getString("pageCollection")),
                definition.getString("pageArray"), "spill", definition.getString("pageCount"));
    }

    /** Refuse a definition that has a field, or a value, that this recipe does not know. */
    private void checkKnown() {
        List<String> unknown = new ArrayList<>();
        KNOWN_VALUES.forEach((field, values) -> {
            if (!values.contains(String.valueOf(definition.get(field)))) {
                unknown.add(field + " '" + definition.get(field) + "'");
            }
        });
        List<String> fields = new ArrayList<>(definition.keySet());
        bounds.keySet().forEach(field -> fields.add("bounds." + field));
        fields.removeAll(KNOWN_FIELDS);
        fields.forEach(field -> unknown.add("field '" + field + "'"));
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException("definition '" + name + "': this recipe does not know its "
                    + unknown.get(0) + "; use the library or the program");
        }
    }

    private static Document doc(String key, Object value) {
        return new Document(key, value);
    }

    private static Document live(Place place) {
        return doc("$size", doc("$ifNull", List.of("$" + place.array(), List.of())));
    }

    private static Document gone(Place place) {
        return doc("$ifNull", List.of("$" + place.spill() + ".gone", List.of()));
    }

    // ---- reading -----------------------------------------------------------------------------

    /** An expression: the array, and each document around it, is missing or has its type. */
    private static Document hasTypes(String array) {
        List<Document> all = new ArrayList<>();
        for (int end = array.indexOf('.'); end > 0; end = array.indexOf('.', end + 1)) {
            all.add(hasType(array.substring(0, end), "object"));
        }
        all.add(hasType(array, "array"));
        return doc("$and", all);
    }

    private static Document hasType(String path, String type) {
        return doc("$in", List.of(doc("$type", "$" + path), List.of("missing", type)));
    }

    /** The state of the document that `stages` find, and its newest elements below `before`. */
    private State readDocument(Place place, List<Document> stages, long before, int limit) {
        Document live = doc("$cond", List.of(hasTypes(place.array()), live(place), -1));
        Document below = doc("$size", doc("$filter",
                doc("input", gone(place)).append("cond", doc("$lt", List.of("$$this", before)))));
        Document past = doc("$subtract", List.of(before, "$" + place.spill() + ".first"));
        Document end = doc("$max", List.of(0, doc("$min", // elements below `before`
                List.of(live, doc("$subtract", List.of(past, below))))));
        Document start = doc("$max", List.of(0, doc("$subtract", List.of(end, limit))));
        Document count = doc("$min", List.of(limit, end));
        Document slice = doc("$slice",
                List.of("$" + place.array(), start, doc("$max", List.of(1, count))));
        Document run = doc("$cond", List.of(doc("$gt", List.of(count, 0)), slice, List.of()));
        List<Document> pipeline = new ArrayList<>(stages);
        pipeline.add(doc("$project", doc("spill", "$" + place.spill())
                .append("live", live).append("start", start).append("run", run)));
        RawBsonDocument raw =
                place.collection().aggregate(pipeline, RawBsonDocument.class).first();
        if (raw == null) {
            return null;
        }
        int size = raw.getNumber("live").intValue();
        String what = place.collection().getNamespace().getCollectionName() + ": '" + place.array() + "'";
        if (size < 0) {
            throw new IllegalStateException(what + " is not an array, or a field around it is not a document");
        }
        Document spill = raw.containsKey("spill")
                ? Document.parse(raw.getDocument("spill").toJson()) : new Document();
        if (!spill.containsKey("epoch") && size > 0) {
            throw new IllegalStateException(what + " is unmanaged; adopt it with `spillway migrate`");
        }
        if (!spill.containsKey("epoch")) {
            return null;
        }
        List<Row> rows = number(spill, raw.getNumber("start").longValue(), raw.getArray("run"));
        return new State(spill, size, rows);
    }

    private State head(Object owner, long before, int limit) {
        return readDocument(heads, List.of(doc("$match", doc("_id", doc("$eq", owner)))), before, limit);
    }

    /**
     * The owner's last page that begins below `before`: only pages that the head counts, and of its
     * own incarnation (epoch). Found by index, never by count.
     */
    private State page(Object owner, State head, long before, int limit) {
        Document match = doc(definition.getString("pageOwner"), doc("$eq", owner))
                .append("spill.epoch", head.number("epoch"))
                .append("_id.page", doc("$lt", head.number("pages")))
                .append("spill.first", doc("$lt", before));
        return readDocument(pages, List.of(doc("$match", match),
                doc("$sort", doc("spill.first", -1).append("_id", -1)), doc("$limit", 1)), before,
                limit);
    }

    /**
     * Up to `limit` elements numbered below `before`, newest first. The last number is the cursor
     * for the next page. Appends do not invalidate it.
     */
    List<Row> read(Object owner, int limit, long before) {
        State head = head(owner, before, limit);
        List<Row> rows = new ArrayList<>();
        while (head != null && before > head.number("low") && rows.size() < limit) {
            State part = null;
            if (!keepsNewest || before <= head.number("first")) {
                part = page(owner, head, before, limit - rows.size());
            }
            if (part == null && head.number("first") < before) {
                part = head;
            }
            if (part == null) {
                break;
            }
            for (Row row : part.rows()) {
                if (row.seq() >= head.number("low") && rows.size() < limit) {
                    rows.add(row);
                }
            }
            before = part.number("first");
        }
        return rows;
    }

    /** The exact number of live elements. The head's count field may be out of date. */
    long count(Object owner) {
        while (true) {
            State head = head(owner, NO_NUMBER, 0);
            if (head == null) {
                return 0;
            }
            long dead = head.number("low") + head.number("removed");
            if (keepsNewest) { // `removed` counts deleted numbers below `first`
                return head.end() - head.gone() - dead;
            }
            if (head.number("pages") == 0) {
                return head.end() - dead;
            }
            State last = page(owner, head, NO_NUMBER, 0);
            State again = head(owner, NO_NUMBER, 0);
            // A removal or a trim in between raises `rev`, a new page raises `pages`: then try again.
            if (again != null && again.number("rev") == head.number("rev")
                    && again.number("pages") == head.number("pages")) {
                return (last != null ? last : head).end() - dead; // it may not exist yet
            }
        }
    }

    // ---- appending ---------------------------------------------------------------------------

    /** Make it before the first try of an append, and keep it until there is an answer. */
    Operation operation(Object owner) {
        State last = head(owner, NO_NUMBER, 0);
        if (last != null && !keepsNewest && last.number("pages") > 0) {
            State page = page(owner, last, NO_NUMBER, 0);
            last = page != null ? page : last;
        }
        return new Operation(UUID.randomUUID().toString(), last != null ? last.number("n") : 0);
    }

    /** Returns the element's sequence number. After a time-out, repeat it with the same operation. */
    long append(Object owner, BsonValue element, Operation operation)
            throws IOException, InterruptedException {
        Document after = push(tail(owner), element, operation);
        if (after == null) { // no head, no room, a closed page, or appended before
            return appendByProgram(owner, element, operation);
        }
        return ((Number) after.get("first")).longValue() + after.getInteger("live")
                + after.getInteger("gone") - 1;
    }

    private Tail tail(Object owner) {
        State head = keepsNewest ? null : head(owner, NO_NUMBER, 0);
        long page = number(bounds, "pageCapacity");
        if (head != null && head.number("pages") > 0) { // keep oldest: the last page
            Document id = doc("owner", owner).append("page", head.number("pages") - 1);
            Document match = doc("_id", doc("$eq", id))
                    .append(definition.getString("pageOwner"), doc("$eq", owner))
                    .append("spill.epoch", head.number("epoch"));
            return new Tail(pages, match, page, number(bounds, "pageBytesMax"));
        }
        Document match = doc("_id", doc("$eq", owner))
                .append(heads.spill() + ".epoch", doc("$exists", true));
        // Keep newest: the head grows by a page, and a little, before it spills.
        long slots = number(bounds, "threshold") + (keepsNewest ? page + page / 8 + 1 : 0);
        return new Tail(heads, match, slots, number(bounds, "headBytesMax"));
    }

    /** One findAndModify with a guard as its filter. null: refused, and nothing has changed. */
    private Document push(Tail tail, BsonValue element, Operation operation) {
        Place place = tail.place();
        String spill = place.spill();
        int window = ((Number) definition.get("opWindow")).intValue();
        Binary id = new Binary(operation.id().getBytes(StandardCharsets.UTF_8));
        Document gone = doc("$size", gone(place));
        long grows = bytes(element) + (long) OP_BYTES * (window + 1) + MARGIN_BYTES;
        Document guard = new Document(tail.match())
                .append(spill + ".sealed", doc("$ne", true))
                .append(spill + ".ops.id", doc("$ne", id)) // not appended before
                .append(spill + ".n", doc("$lt", operation.base() + window)) // or the id may be dropped
                .append("$expr", doc("$and", List.of(
                        doc("$lte", List.of(doc("$add", List.of(live(place), gone, 1)),
                                tail.slots())),
                        doc("$lte", List.of(doc("$add", List.of(doc("$bsonSize", "$$ROOT"), grows)),
                                tail.bytes())),
                        // Another program may have replaced the array: then deleted numbers lie
                        // behind its end.
                        doc("$lt", List.of(doc("$max", "$" + spill + ".gone"),
                                doc("$add", List.of("$" + spill + ".first", live(place), gone)))))));
        Document note = doc("id", id).append("count", 1L).append("after", 0L);
        Document increment = doc(spill + ".n", 1L);
        if (!place.count().isEmpty()) {
            increment.append(place.count(), 1);
        }
        Document update = doc("$push", doc(place.array(), doc("$each", List.of(element)))
                        .append(spill + ".ops", doc("$each", List.of(note))
                                .append("$position", 0).append("$slice", window)))
                .append("$inc", increment);
        Document fields = doc("_id", 0).append("first", "$" + spill + ".first")
                .append("live", live(place)).append("gone", gone);
        return place.collection().findOneAndUpdate(guard, update, new FindOneAndUpdateOptions()
                .projection(fields).returnDocument(ReturnDocument.AFTER));
    }

    /** `spillway append` creates heads and pages, spills, and recognizes repeated operations. */
    private long appendByProgram(Object owner, BsonValue element, Operation operation)
            throws IOException, InterruptedException {
        String program = System.getenv().getOrDefault("SPILLWAY", "spillway");
        Process process = new ProcessBuilder(program, "append", "env:", name,
                json(owner, JsonMode.EXTENDED), "-", "--quiet", "--op",
                operation.id() + "@" + operation.base())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var input = process.getOutputStream()) {
            input.write((json(element, JsonMode.EXTENDED) + "\n").getBytes(StandardCharsets.UTF_8));
        }
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException("'" + program + " append' failed");
        }
        return Long.parseLong(output.strip());
    }

    // ---- values ------------------------------------------------------------------------------

    private static long number(Document document, String field) {
        return ((Number) document.get(field)).longValue();
    }

    /** Sequence numbers of live elements, from index `start` of the array, newest first. */
    private static List<Row> number(Document spill, long start, List<BsonValue> run) {
        TreeSet<Long> gone = new TreeSet<>();
        spill.getList("gone", Number.class, List.of()).forEach(seq -> gone.add(seq.longValue()));
        List<Row> rows = new ArrayList<>();
        long seq = number(spill, "first") + start;
        for (BsonValue element : run) {
            for (; !gone.isEmpty() && gone.first() <= seq; gone.pollFirst()) {
                seq++;
            }
            rows.add(new Row(seq++, element));
        }
        Collections.reverse(rows);
        return rows;
    }

    /** The size of an array entry: its value, and an index of up to seven digits. */
    private static int bytes(BsonValue element) {
        BsonDocument alone = new BsonDocument("", element);
        return new RawBsonDocument(alone, new BsonDocumentCodec()).getByteBuffer().remaining() + 8;
    }

    /** Canonical or relaxed Extended JSON, of any value. */
    private static String json(Object value, JsonMode mode) {
        String inside = doc("v", value)
                .toJson(JsonWriterSettings.builder().outputMode(mode).build());
        return inside.substring(inside.indexOf(':') + 1, inside.lastIndexOf('}')).strip();
    }

    private static BsonValue value(String json) {
        return BsonDocument.parse("{\"v\": " + json + "}").get("v");
    }

    private static Object owner(String text) {
        try {
            return value(text);
        } catch (JsonParseException notJson) {
            return text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> all = List.of(arguments);
        if (all.size() < 3) {
            throw new IllegalArgumentException("usage: NAME read|count|append OWNER ...");
        }
        ConnectionString uri = new ConnectionString(System.getenv("SPILLWAY_URI"));
        // Appends last, and reads see what lasts, as long as a majority of the servers does.
        try (MongoClient client = MongoClients.create(uri)) {
            MongoDatabase database = client.getDatabase(uri.getDatabase())
                    .withWriteConcern(WriteConcern.MAJORITY)
                    .withReadConcern(ReadConcern.MAJORITY);
            Feed feed = new Feed(database, all.get(0));
            Object owner = owner(all.get(2));
            List<String> rest = all.subList(3, all.size());
            switch (all.get(1)) {
                case "read" -> {
                    int limit = rest.isEmpty() ? 20 : Integer.parseInt(rest.get(0));
                    long before = rest.size() < 2 ? NO_NUMBER : Long.parseLong(rest.get(1));
                    for (Row row : feed.read(owner, limit, before)) {
                        System.out.println("{\"seq\": " + row.seq() + ", \"element\": "
                                + json(row.element(), JsonMode.RELAXED) + "}");
                    }
                }
                case "count" -> System.out.println(feed.count(owner));
                case "append" -> {
                    for (String element : rest) {
                        System.out.println(
                                feed.append(owner, value(element), feed.operation(owner)));
                    }
                }
                default -> throw new IllegalArgumentException("read, count or append");
            }
        }
    }
}
