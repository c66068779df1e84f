// Push an array past 16 MB with the driver for C#. Usage: dotnet run -- URI. Tests neither compile nor run it.

using System.Security.Cryptography;
using System.Text;
using MongoDB.Bson;
using MongoDB.Driver;

const int elements = 44;
const int payload = 1_000_000;

BsonDocument Element(int number) => new()
    { { "n", number }, { "payload", new string((char)('a' + number % 26), payload) } };

string Digest(IEnumerable<BsonValue> items)
{
    using var sha = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
    foreach (var item in items)
        sha.AppendData(Encoding.ASCII.GetBytes($"{item["n"]}:{item["payload"].AsString}"));
    return Convert.ToHexString(sha.GetHashAndReset()).ToLowerInvariant();
}

void Check(bool right, string what)
{
    if (!right)
        throw new InvalidOperationException(what);
}

BsonDocument Id(string value) => new("_id", value);
BsonDocument Pushed(BsonValue events) => new("$push", new BsonDocument("events", events));

var url = new MongoUrl(args[0]);
var feeds = new MongoClient(url).GetDatabase(url.DatabaseName).GetCollection<BsonDocument>("feeds");
for (var number = 0; number < elements; number++)
    feeds.UpdateOne(Id("long"), Pushed(Element(number)), new UpdateOptions { IsUpsert = true });
var events = feeds.Find(Id("long")).Single()["events"].AsBsonArray;
Check(Digest(events) == Digest(Enumerable.Range(0, elements).Select(Element)), $"read {events.Count} that differ");

var small = new BsonArray(Enumerable.Range(0, 3).Select(number => new BsonDocument { { "n", number }, { "payload", "" } }));
feeds.InsertOne(Id("gone"));
var last = Pushed(Element(elements)).Add("$set", new BsonDocument("title", "long"));
feeds.BulkWrite([
    new InsertOneModel<BsonDocument>(Id("short").Add("events", new BsonArray())),
    new UpdateOneModel<BsonDocument>(Id("short"), Pushed(new BsonDocument("$each", small))),
    new UpdateOneModel<BsonDocument>(Id("long"), last),
    new DeleteOneModel<BsonDocument>(Id("gone")),
]);
Check(feeds.Find(Id("short")).Single()["events"].AsBsonArray.Equals(small), "short differs");
Check(feeds.Find(Id("gone")).FirstOrDefault() is null, "gone still exists");

var document = feeds.Find(Id("long")).Single();
Check(document["title"] == "long", "the title is missing");
Check(!document.Contains("spill"), "bookkeeping is visible");
Console.WriteLine($"elements {document["events"].AsBsonArray.Count} sha256 {Digest(document["events"].AsBsonArray)}");
