package spillway.bench;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import com.mongodb.client.result.UpdateResult;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.Document;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.util.Statistics;

/**
 * Pushes with the Java driver to arrays of several lengths, in one document and in pages of 1000
 * elements. A trial is a batch of pushes that lengthen the array by at most 5 %. The array is created
 * again before each trial, outside of the measurement.
 *
 * <pre>
 *     bench/jmh/run [--trials N] [--element BYTES] [LENGTH...]
 * </pre>
 */
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@State(Scope.Benchmark)
public class OutlierPush {
    private static final int PAGE = 1000;
    private static final int GROWTH_PER_CENT = 5;
    private static final int BATCH_MAX = 50;
    private static final String OWNER = "user-1";

    @Param("100")
    public int length;

    @Param("200")
    public int elementBytes;

    private MongoClient client;
    private MongoDatabase database;
    private MongoCollection<Document> unbounded;
    private MongoCollection<Document> bounded;
    private MongoCollection<Document> overflow;
    private Document element;

    /** An element of that size in BSON: a type, a time, and words for the rest. */
    private static Document makeElement(int bytes) {
        int fixed = 4 + (1 + 5 + 4 + 5) + (1 + 3 + 8) + (1 + 5 + 4 + 1) + 1;
        String words = "the review was merged and the build passed on the release branch; ";
        String text = words.repeat(bytes / words.length() + 1).substring(0, Math.max(0, bytes - fixed));
        return new Document("type", "post").append("ts", new Date()).append("text", text);
    }

    @Setup(Level.Trial)
    public void connect() {
        String uri = System.getenv("SPILLWAY_TEST_URI");
        client = MongoClients.create(uri);
        database = client.getDatabase("spillway_jmh_" + ProcessHandle.current().pid());
        unbounded = database.getCollection("unbounded");
        bounded = database.getCollection("bounded");
        overflow = database.getCollection("overflow");
        element = makeElement(elementBytes);
    }

    @TearDown(Level.Trial)
    public void disconnect() {
        database.drop();
        client.close();
    }

    @Setup(Level.Iteration)
    public void fill() {
        List<Document> all = new ArrayList<>();
        for (int i = 0; i < length; i++) {
            all.add(element);
        }
        unbounded.drop();
        bounded.drop();
        overflow.drop();
        overflow.createIndex(Indexes.ascending("userId", "page"));
        unbounded.insertOne(new Document("_id", OWNER).append("activities", all));
        bounded.insertOne(new Document("_id", OWNER)
            .append("activities", all.subList(0, Math.min(PAGE, length)))
            .append("activityCount", length));
        for (int first = PAGE; first < length; first += PAGE) {
            List<Document> page = all.subList(first, Math.min(first + PAGE, length));
            overflow.insertOne(new Document("userId", OWNER)
                .append("page", first / PAGE)
                .append("activities", page)
                .append("count", page.size()));
        }
    }

    @Benchmark
    public UpdateResult pushToUnbounded() {
        return unbounded.updateOne(Filters.eq("_id", OWNER), Updates.push("activities", element));
    }

    /** Push to the head or to a new page, as in the published program. */
    @Benchmark
    public UpdateResult pushToBounded() {
        if (length < PAGE) {
            return bounded.updateOne(Filters.eq("_id", OWNER), Updates.push("activities", element));
        }
        return overflow.updateOne(
            Filters.and(Filters.eq("userId", OWNER), Filters.eq("page", length / PAGE)),
            Updates.combine(Updates.push("activities", element), Updates.inc("count", 1)),
            new UpdateOptions().upsert(true));
    }

    private static int batchOf(int length) {
        return Math.max(1, Math.min(BATCH_MAX, length * GROWTH_PER_CENT / 100));
    }

    public static void main(String[] arguments) throws Exception {
        int trials = 20;
        String elementBytes = "200";
        List<Integer> lengths = new ArrayList<>();
        for (int i = 0; i < arguments.length; i++) {
            if (arguments[i].equals("--trials")) {
                trials = Integer.parseInt(arguments[++i]);
            } else if (arguments[i].equals("--element")) {
                elementBytes = arguments[++i];
            } else {
                lengths.add(Integer.valueOf(arguments[i]));
            }
        }
        List<String> rows = new ArrayList<>();
        for (int length : lengths.isEmpty() ? List.of(100, 1000, 5000, 10000) : lengths) {
            int batch = batchOf(length);
            OptionsBuilder options = new OptionsBuilder();
            options.include(OutlierPush.class.getName()).param("length", String.valueOf(length))
                .param("elementBytes", elementBytes).forks(1).warmupIterations(3)
                .warmupBatchSize(batch).measurementIterations(trials).measurementBatchSize(batch);
            for (RunResult result : new Runner(options.build()).run()) {
                Statistics statistics = result.getPrimaryResult().getStatistics();
                rows.add(String.format("%-16s %8d %6d %10.1f %10.1f %10.1f",
                    result.getPrimaryResult().getLabel(), length, batch,
                    statistics.getPercentile(50) / batch, statistics.getMean() / batch,
                    statistics.getMeanErrorAt(0.95) / batch));
            }
        }
        System.out.printf("%nelements of %s bytes; %d trials of a batch of pushes each%n",
            elementBytes, trials);
        System.out.printf("%-16s %8s %6s %10s %10s %10s%n", "benchmark", "length", "batch",
            "median us", "mean us", "+- 95 %");
        rows.forEach(System.out::println);
    }
}
