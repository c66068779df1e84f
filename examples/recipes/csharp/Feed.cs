// Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with only the driver
// for C# (MongoDB.Driver 3). The project's tests neither compile nor run this recipe.
//
//     dotnet run -- NAME read OWNER [LIMIT [BEFORE]]   newest first; BEFORE is a printed number
//     dotnet run -- NAME count OWNER
//     dotnet run -- NAME append OWNER ELEMENT...       one operation per element
//
// NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word). The
// environment variable SPILLWAY_URI has the store's URI, with a database.
// docs/reference/mongodb.md explains the fields under `spill`; docs/how-to/recipes.md explains which calls
// are safe and why.

using System.Diagnostics;
using System.Text;
using MongoDB.Bson;
using MongoDB.Bson.IO;
using MongoDB.Driver;

/// <summary>The identity of one append. Base is a value of the owner's `n` from before the first try.</summary>
public sealed record Operation(string Id, long Base);

/// <summary>An element and its sequence number.</summary>
public sealed record Row(long Seq, BsonValue Element);

/// <summary>Where an array and its bookkeeping are in the documents of a collection.</summary>
public sealed record Place(IMongoCollection<BsonDocument> Collection, string Array, string Spill, string Count);

/// <summary>The bookkeeping of a head or a page, and the elements that were asked for.</summary>
public sealed record State(BsonDocument Spill, List<long> Gone, long End, List<Row> Rows)
{
    public long this[string name] => Spill.GetValue(name, 0).ToInt64();
}

/// <summary>One array definition of a store.</summary>
public sealed class Feed
{
    private const long NoNumber = long.MaxValue; // above every sequence number
    private const int OpBytes = 112;             // the maximum size of a stored operation id
    private const int MarginBytes = 512;         // fields of `spill` that may be added, and longer numbers

    // The values and the fields of definitions that this recipe knows. Another field may be a rule that an append
    // of the recipe would break, so CheckKnown refuses the definition.
    private static readonly Dictionary<string, string[]> KnownValues =
        new() { { "layout", ["outlier"] }, { "keep", ["newest", "oldest"] } };
    private static readonly string[] KnownFields = (
        "name collection array countField overflowField pagesField pageCollection pageOwner pageNumber " +
        "pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest bounds " +
        "bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax").Split(' ');

    private readonly string _name;
    private readonly BsonDocument _definition;
    private readonly Place _heads, _pages;
    private readonly bool _keepsNewest;

    public Feed(IMongoDatabase database, string name)
    {
        var found = database.GetCollection<BsonDocument>("spillway.definitions")
            .Find(new BsonDocument("_id", name)).FirstOrDefault()
            ?? throw new InvalidOperationException($"there is no definition '{name}'");
        _name = name;
        _definition = found["entry"].AsBsonDocument; // bounds may change: read it again sometimes
        CheckKnown(name, _definition);
        _keepsNewest = _definition["keep"] == "newest";
        // A head may have several arrays. An array may be a path, such as stats.events.
        var array = _definition["array"].AsString;
        _heads = new Place(database.GetCollection<BsonDocument>(_definition["collection"].AsString), array,
            "spill." + array.Replace('.', '$'), _definition.GetValue("countField", "").AsString);
        _pages = new Place(database.GetCollection<BsonDocument>(_definition["pageCollection"].AsString),
            _definition["pageArray"].AsString, "spill", _definition.GetValue("pageCount", "").AsString);
    }

    /// <summary>Refuse a definition that has a field, or a value, that this recipe does not know.</summary>
    private static void CheckKnown(string name, BsonDocument definition)
    {
        var values = KnownValues.Where(known => !known.Value.Contains(definition.GetValue(known.Key, "").ToString()))
            .Select(known => $"{known.Key} '{definition.GetValue(known.Key, "")}'");
        var bounds = definition["bounds"].AsBsonDocument.Names.Select(field => "bounds." + field);
        var fields = definition.Names.Concat(bounds).Except(KnownFields).Select(field => $"field '{field}'");
        if (values.Concat(fields).FirstOrDefault() is { } unknown)
            throw new InvalidOperationException(
                $"definition '{name}': this recipe does not know its {unknown}; use the library or the program");
    }

    // ---- reading ---------------------------------------------------------------------------------

    private static BsonDocument Call(string name, params BsonValue[] arguments) =>
        new(name, new BsonArray(arguments));

    private static BsonDocument Size(BsonValue list) => new("$size", list);

    private static BsonDocument Equal(BsonValue value) => new("$eq", value);

    /// <summary>An expression: the array, and each document around it, is missing or has its type.</summary>
    private static BsonDocument HasTypes(string array)
    {
        var parts = array.Split('.');
        var all = parts.Select((_, last) => Call("$in",
            new BsonDocument("$type", "$" + string.Join('.', parts.Take(last + 1))),
            new BsonArray { "missing", last == parts.Length - 1 ? "array" : "object" }));
        return new BsonDocument("$and", new BsonArray(all));
    }

    /// <summary>The state of the document that `match` finds, and its newest elements below `before`.</summary>
    private static State? ReadDocument(Place place, IEnumerable<BsonDocument> match, long before, long limit)
    {
        BsonValue array = "$" + place.Array, spill = "$" + place.Spill;
        var live = Call("$cond", HasTypes(place.Array), Size(Call("$ifNull", array, new BsonArray())), -1);
        var gone = Call("$ifNull", spill.AsString + ".gone", new BsonArray());
        var below = Size(new BsonDocument("$filter",
            new BsonDocument { { "input", gone }, { "cond", Call("$lt", "$$this", before) } }));
        var end = Call("$subtract", Call("$subtract", before, spill.AsString + ".first"), below);
        end = Call("$max", 0, Call("$min", live, end)); // elements below `before`
        var start = Call("$max", 0, Call("$subtract", end, limit));
        var count = Call("$min", limit, end);
        var run = Call("$cond", Call("$gt", count, 0),
            Call("$slice", array, start, Call("$max", 1, count)), new BsonArray());
        var project = new BsonDocument("$project",
            new BsonDocument { { "spill", spill }, { "live", live }, { "start", start }, { "run", run } });
        var stages = match.Append(project).ToArray();
        var found = place.Collection.Aggregate(
            PipelineDefinition<BsonDocument, BsonDocument>.Create(stages)).FirstOrDefault();
        if (found is null)
            return null;
        var length = found["live"].ToInt64();
        var what = $"{place.Collection.CollectionNamespace.CollectionName}: '{place.Array}'";
        if (length < 0)
            throw new InvalidOperationException($"{what} is not an array, or a field around it is not a document");
        var managed = found.TryGetValue("spill", out var value) && value.IsBsonDocument
            && value.AsBsonDocument.Contains("epoch");
        if (!managed && length > 0)
            throw new InvalidOperationException($"{what} is unmanaged; adopt it with `spillway migrate`");
        if (!managed)
            return null;
        var state = value.AsBsonDocument;
        var deleted = state.GetValue("gone", new BsonArray()).AsBsonArray.Select(one => one.ToInt64()).Order().ToList();
        var first = state["first"].ToInt64();
        var rows = Number(first + found["start"].ToInt64(), deleted, found["run"].AsBsonArray);
        return new State(state, deleted, first + length + deleted.Count, rows);
    }

    /// <summary>The elements with their numbers, newest first. `seq` is the lowest that the first may have.</summary>
    private static List<Row> Number(long seq, List<long> gone, BsonArray run)
    {
        var rows = new List<Row>();
        var passed = 0;
        foreach (var element in run)
        {
            while (passed < gone.Count && gone[passed] <= seq)
            {
                passed++;
                seq++;
            }
            rows.Add(new Row(seq++, element));
        }
        rows.Reverse();
        return rows;
    }

    private State? Head(BsonValue owner, long before = NoNumber, long limit = 0) =>
        ReadDocument(_heads, [new BsonDocument("$match", new BsonDocument("_id", Equal(owner)))], before, limit);

    /// <summary>
    /// The owner's last page that begins below `before`: found by index, never by count. Only pages that the
    /// head counts, and of its own incarnation (epoch), belong to the array.
    /// </summary>
    private State? Page(BsonValue owner, State head, long before = NoNumber, long limit = 0) =>
        ReadDocument(_pages,
        [
            new BsonDocument("$match", new BsonDocument
            {
                { _definition["pageOwner"].AsString, Equal(owner) },
                { "spill.epoch", head.Spill["epoch"] },
                { "_id.page", new BsonDocument("$lt", head["pages"]) },
                { "spill.first", new BsonDocument("$lt", before) },
            }),
            new BsonDocument("$sort", new BsonDocument { { "spill.first", -1 }, { "_id", -1 } }),
            new BsonDocument("$limit", 1),
        ], before, limit);

    /// <summary>
    /// Up to `limit` elements numbered below `before`, newest first. The last number is the cursor for the next
    /// page. Appends do not invalidate it.
    /// </summary>
    public List<Row> Read(BsonValue owner, int limit = 20, long before = NoNumber)
    {
        var head = Head(owner, before, limit);
        var rows = new List<Row>();
        while (head is not null && before > head["low"] && rows.Count < limit)
        {
            State? part = null;
            if (!_keepsNewest || before <= head["first"])
                part = Page(owner, head, before, limit - rows.Count);
            // Keep oldest: elements below all pages; keep newest: above them.
            part ??= head["first"] < before ? head : null;
            if (part is null)
                break;
            rows.AddRange(part.Rows.Where(row => row.Seq >= head["low"]));
            before = part["first"];
        }
        return rows.Take(limit).ToList();
    }

    /// <summary>The exact number of live elements. The head's count field may be out of date.</summary>
    public long Count(BsonValue owner)
    {
        while (true)
        {
            var head = Head(owner);
            if (head is null)
                return 0;
            var dead = head["low"] + head["removed"];
            if (_keepsNewest) // `removed` counts deleted numbers below `first`, `gone` has the rest
                return head.End - head.Gone.Count - dead;
            if (head["pages"] == 0)
                return head.End - dead;
            var last = Page(owner, head);
            var again = Head(owner);
            // A removal or a trim in between raises `rev`, a new page raises `pages`: then try again.
            if (again is not null && again["rev"] == head["rev"] && again["pages"] == head["pages"])
                return (last ?? head).End - dead; // the first page may not exist yet
        }
    }

    // ---- appending -------------------------------------------------------------------------------

    /// <summary>Make it before the first try, and keep it until there is an answer.</summary>
    public Operation NewOperation(BsonValue owner)
    {
        var head = Head(owner);
        var last = head is not null && !_keepsNewest && head["pages"] > 0 ? Page(owner, head) : null;
        last ??= head;
        return new Operation(Guid.NewGuid().ToString("N"), last is null ? 0 : last["n"]);
    }

    /// <summary>Returns the element's sequence number. After a time-out, repeat it with the same operation.</summary>
    public long Append(BsonValue owner, BsonValue element, Operation operation) =>
        // No head, no room, a sealed page, or appended before: leave it to the program.
        Push(owner, element, operation) ?? AppendByProgram(owner, element, operation);

    /// <summary>One findAndModify with a guard as its filter. Null: refused, and nothing has changed.</summary>
    private long? Push(BsonValue owner, BsonValue element, Operation operation)
    {
        var bounds = _definition["bounds"].AsBsonDocument;
        var window = _definition["opWindow"].ToInt64();
        var (place, guard) = (_heads, new BsonDocument("_id", Equal(owner)));
        BsonValue epoch = new BsonDocument("$exists", true);
        var (slots, most) = (bounds["threshold"].ToInt64(), bounds["headBytesMax"].ToInt64());
        var capacity = bounds["pageCapacity"].ToInt64();
        if (_keepsNewest) // the head grows by a page, and a little, before it spills
            slots += capacity + capacity / 8 + 1;
        else if (Head(owner) is { } head && head["pages"] > 0) // append to the last page
        {
            (place, slots, most) = (_pages, capacity, bounds["pageBytesMax"].ToInt64());
            var id = new BsonDocument { { "owner", owner }, { "page", head["pages"] - 1 } };
            guard = new BsonDocument { { "_id", Equal(id) }, { _definition["pageOwner"].AsString, Equal(owner) } };
            epoch = head.Spill["epoch"];
        }
        var identity = new BsonBinaryData(Encoding.ASCII.GetBytes(operation.Id));
        var live = Size(Call("$ifNull", "$" + place.Array, new BsonArray()));
        var gone = Size(Call("$ifNull", "$" + place.Spill + ".gone", new BsonArray()));
        // An array entry is its value, a type, and an index of up to seven digits.
        var grows = new BsonDocument("v", element).ToBson().Length + 7 + OpBytes * (window + 1) + MarginBytes;
        guard.AddRange(new BsonDocument
        {
            { place.Spill + ".epoch", epoch },
            { place.Spill + ".sealed", new BsonDocument("$ne", true) },
            // Not appended before; or the window may have dropped the id.
            { place.Spill + ".ops.id", new BsonDocument("$ne", identity) },
            { place.Spill + ".n", new BsonDocument("$lt", operation.Base + window) },
            { "$expr", Call("$and", Call("$lte", Call("$add", live, gone, 1), slots),
                Call("$lte", Call("$add", new BsonDocument("$bsonSize", "$$ROOT"), grows), most),
                // Another program may have replaced the array: then deleted numbers lie behind its end.
                Call("$lt", new BsonDocument("$max", "$" + place.Spill + ".gone"),
                    Call("$add", "$" + place.Spill + ".first", live, gone))) },
        });
        var note = new BsonDocument { { "id", identity }, { "count", 1L }, { "after", 0L } };
        var added = new BsonDocument(place.Spill + ".n", 1L);
        if (place.Count != "")
            added.Add(place.Count, 1);
        var update = new BsonDocument
        {
            { "$push", new BsonDocument
                {
                    { place.Array, new BsonDocument("$each", new BsonArray { element }) },
                    { place.Spill + ".ops", new BsonDocument
                        { { "$each", new BsonArray { note } }, { "$position", 0 }, { "$slice", window } } },
                } },
            { "$inc", added },
        };
        var wanted = new BsonDocument
            { { "_id", 0 }, { "first", "$" + place.Spill + ".first" }, { "live", live }, { "gone", gone } };
        var after = place.Collection.FindOneAndUpdate<BsonDocument>(guard, update,
            new FindOneAndUpdateOptions<BsonDocument, BsonDocument>
                { ReturnDocument = ReturnDocument.After, Projection = wanted });
        return after is null ? null : after["first"].ToInt64() + after["live"].ToInt64() + after["gone"].ToInt64() - 1;
    }

    /// <summary>`spillway append` creates heads and pages, spills, and recognizes repeated operations.</summary>
    private long AppendByProgram(BsonValue owner, BsonValue element, Operation operation)
    {
        var program = Environment.GetEnvironmentVariable("SPILLWAY") ?? "spillway";
        var start = new ProcessStartInfo(program) { RedirectStandardInput = true, RedirectStandardOutput = true };
        foreach (var argument in new[] { "append", "env:", _name, Json.Extended(owner), "-", "--quiet",
                     "--op", $"{operation.Id}@{operation.Base}" })
            start.ArgumentList.Add(argument);
        using var process = Process.Start(start)
            ?? throw new InvalidOperationException($"{program} cannot be started");
        process.StandardInput.WriteLine(Json.Extended(element));
        process.StandardInput.Close();
        var printed = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        if (process.ExitCode != 0)
            throw new InvalidOperationException($"{program} append ended with {process.ExitCode}");
        return long.Parse(printed);
    }
}

/// <summary>Values as Extended JSON.</summary>
public static class Json
{
    public static string Extended(BsonValue value)
    {
        const string before = "{ \"v\" : ", behind = " }";
        var settings = new JsonWriterSettings { OutputMode = JsonOutputMode.CanonicalExtendedJson };
        var text = new BsonDocument("v", value).ToJson(settings);
        return text[before.Length..^behind.Length];
    }

    public static BsonValue Parse(string text) => BsonDocument.Parse($"{{\"v\": {text}}}")["v"];

    public static BsonValue ParseOwner(string text)
    {
        try
        {
            return Parse(text);
        }
        catch (FormatException)
        {
            return text;
        }
    }
}

public static class Program
{
    public static void Main(string[] arguments)
    {
        if (arguments.Length < 3)
            throw new ArgumentException("usage: NAME read|count|append OWNER ..., with SPILLWAY_URI");
        var url = new MongoUrl(Environment.GetEnvironmentVariable("SPILLWAY_URI"));
        var settings = MongoClientSettings.FromUrl(url);
        // Appends survive, and reads see only what survives, as long as a majority of the servers does.
        settings.WriteConcern = WriteConcern.WMajority;
        settings.ReadConcern = ReadConcern.Majority;
        var feed = new Feed(new MongoClient(settings).GetDatabase(url.DatabaseName), arguments[0]);
        var owner = Json.ParseOwner(arguments[2]);
        var rest = arguments[3..];
        switch (arguments[1])
        {
            case "read":
                var limit = rest.Length > 0 ? int.Parse(rest[0]) : 20;
                var before = rest.Length > 1 ? long.Parse(rest[1]) : long.MaxValue;
                var relaxed = new JsonWriterSettings { OutputMode = JsonOutputMode.RelaxedExtendedJson };
                foreach (var (seq, element) in feed.Read(owner, limit, before))
                    Console.WriteLine(new BsonDocument { { "seq", seq }, { "element", element } }.ToJson(relaxed));
                break;
            case "count":
                Console.WriteLine(feed.Count(owner));
                break;
            case "append":
                foreach (var text in rest)
                    Console.WriteLine(feed.Append(owner, Json.Parse(text), feed.NewOperation(owner)));
                break;
            default:
                throw new ArgumentException($"there is no command '{arguments[1]}'");
        }
    }
}
