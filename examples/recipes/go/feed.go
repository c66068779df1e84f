// Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with only the Go
// driver.
//
//	go run . NAME read OWNER [LIMIT [BEFORE]]   newest first; BEFORE is a printed number
//	go run . NAME count OWNER
//	go run . NAME append OWNER ELEMENT...       one operation per element
//
// NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word). The
// environment variable SPILLWAY_URI has the store's URI, with a database.
// docs/reference/mongodb.md explains the fields under `spill`; docs/how-to/recipes.md explains which calls
// are safe and why.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

const (
	noNumber    = int64(math.MaxInt64) // above every sequence number
	opBytes     = 112                  // the maximum size of a stored operation id
	marginBytes = 512                  // fields of `spill` that may be added, and longer numbers
)

// knownFields has the fields of definitions that this recipe knows. Another field may be a rule that an
// append of the recipe would break, so checkKnown refuses the definition.
var knownFields = strings.Fields(`
	name collection array countField overflowField pagesField pageCollection pageOwner pageNumber
	pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest bounds
	bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax`)

// definition is the entry of an array in spillway.definitions.
type definition struct {
	Layout, Keep      string
	Collection, Array string
	CountField        string `bson:"countField"`
	PageCollection    string `bson:"pageCollection"`
	PageArray         string `bson:"pageArray"`
	PageOwner         string `bson:"pageOwner"`
	PageCount         string `bson:"pageCount"`
	OpWindow          int64  `bson:"opWindow"`
	Bounds            struct {
		Threshold    int64
		PageCapacity int64 `bson:"pageCapacity"`
		HeadBytesMax int64 `bson:"headBytesMax"`
		PageBytesMax int64 `bson:"pageBytesMax"`
	}
}

// place says where an array and its bookkeeping are in the documents of a collection.
type place struct {
	collection          *mongo.Collection
	array, spill, count string
}

// Feed is one array definition of a store.
type Feed struct {
	name         string
	definition   definition
	heads, pages place
	keepsNewest  bool
}

// Row is an element and its sequence number.
type Row struct {
	Seq     int64         `bson:"seq"`
	Element bson.RawValue `bson:"element"`
}

// Operation is the identity of one append. Make it before the first try, and keep it until there is an
// answer. Base is a value of the owner's `n` from before the first try.
type Operation struct {
	ID   string
	Base int64
}

// state is the bookkeeping of a head or a page, and the elements that were asked for.
type state struct {
	Epoch                              bson.RawValue
	First, Low, Pages, Removed, Rev, N int64
	Gone                               []int64
	end                                int64 // the number behind the last element
	rows                               []Row
}

// OpenFeed reads the definition. Its bounds may change: an application should open it again sometimes.
func OpenFeed(ctx context.Context, database *mongo.Database, name string) (*Feed, error) {
	var found struct{ Entry bson.Raw }
	err := database.Collection("spillway.definitions").FindOne(ctx, bson.M{"_id": name}).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, fmt.Errorf("there is no definition '%s'", name)
	}
	if err != nil {
		return nil, err
	}
	var entry definition
	if err := bson.Unmarshal(found.Entry, &entry); err != nil {
		return nil, err
	}
	if err := checkKnown(name, found.Entry, entry); err != nil {
		return nil, err
	}
	// A head may have several arrays. An array may be a path, such as stats.events.
	spill := "spill." + strings.ReplaceAll(entry.Array, ".", "$")
	return &Feed{
		name: name, definition: entry, keepsNewest: entry.Keep == "newest",
		heads: place{database.Collection(entry.Collection), entry.Array, spill, entry.CountField},
		pages: place{database.Collection(entry.PageCollection), entry.PageArray, "spill", entry.PageCount},
	}, nil
}

// checkKnown refuses a definition that has a field, or a value, that this recipe does not know.
func checkKnown(name string, raw bson.Raw, entry definition) error {
	unknown := []string{}
	if entry.Layout != "outlier" {
		unknown = append(unknown, "layout '"+entry.Layout+"'")
	}
	if entry.Keep != "newest" && entry.Keep != "oldest" {
		unknown = append(unknown, "keep '"+entry.Keep+"'")
	}
	bounds, _ := raw.Lookup("bounds").DocumentOK()
	for _, part := range []struct {
		prefix string
		fields bson.Raw
	}{{"", raw}, {"bounds.", bounds}} {
		elements, err := part.fields.Elements()
		if err != nil {
			return err
		}
		for _, element := range elements {
			if field := part.prefix + element.Key(); !slices.Contains(knownFields, field) {
				unknown = append(unknown, "field '"+field+"'")
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("definition '%s': this recipe does not know its %s; use the library or the program",
		name, unknown[0])
}

// ---- reading -------------------------------------------------------------------------------------

func call(operator string, arguments ...any) bson.D {
	return bson.D{{Key: operator, Value: bson.A(arguments)}}
}

func size(list any) bson.D { return bson.D{{Key: "$size", Value: list}} }

func equal(value any) bson.D { return bson.D{{Key: "$eq", Value: value}} }

// hasTypes is an expression: the array, and each document around it, is missing or has its type.
func hasTypes(array string) bson.D {
	parts, all := strings.Split(array, "."), []any{}
	for i := range parts {
		wanted := "object"
		if i == len(parts)-1 {
			wanted = "array"
		}
		found := bson.D{{Key: "$type", Value: "$" + strings.Join(parts[:i+1], ".")}}
		all = append(all, call("$in", found, bson.A{"missing", wanted}))
	}
	return call("$and", all...)
}

// readDocument returns the state of the document that `match` finds, with its newest elements below
// `before`; nil if there is none.
func readDocument(ctx context.Context, at place, match mongo.Pipeline, before, limit int64) (*state, error) {
	array, spill := "$"+at.array, "$"+at.spill
	live := call("$cond", hasTypes(at.array), size(call("$ifNull", array, bson.A{})), -1)
	gone := call("$ifNull", spill+".gone", bson.A{})
	goneBelow := size(bson.D{{Key: "$filter", Value: bson.D{
		{Key: "input", Value: gone}, {Key: "cond", Value: call("$lt", "$$this", before)}}}})
	end := call("$subtract", call("$subtract", before, spill+".first"), goneBelow)
	end = call("$max", 0, call("$min", live, end)) // elements below `before`
	start := call("$max", 0, call("$subtract", end, limit))
	count := call("$min", limit, end)
	run := call("$cond", call("$gt", count, 0), call("$slice", array, start, call("$max", 1, count)), bson.A{})
	cursor, err := at.collection.Aggregate(ctx, append(match, bson.D{{Key: "$project", Value: bson.D{
		{Key: "spill", Value: spill}, {Key: "live", Value: live}, {Key: "start", Value: start},
		{Key: "run", Value: run}}}}))
	if err != nil {
		return nil, err
	}
	var found []struct {
		Spill       state
		Live, Start int64
		Run         []bson.RawValue
	}
	if err := cursor.All(ctx, &found); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	if found[0].Live < 0 {
		return nil, fmt.Errorf("%s: '%s' is not an array, or a field around it is not a document",
			at.collection.Name(), at.array)
	}
	if found[0].Spill.Epoch.IsZero() && found[0].Live > 0 {
		return nil, fmt.Errorf("%s: '%s' is unmanaged; adopt it with `spillway migrate`",
			at.collection.Name(), at.array)
	}
	if found[0].Spill.Epoch.IsZero() {
		return nil, nil
	}
	document := &found[0].Spill
	slices.Sort(document.Gone)
	document.end = document.First + found[0].Live + int64(len(document.Gone))
	document.rows = number(document, found[0].Start, found[0].Run)
	return document, nil
}

// number returns the elements from index `start` of the array with their numbers, newest first.
func number(document *state, start int64, run []bson.RawValue) []Row {
	gone, rows := document.Gone, make([]Row, 0, len(run))
	seq := document.First + start
	for _, element := range run {
		for len(gone) > 0 && gone[0] <= seq {
			gone = gone[1:]
			seq++
		}
		rows = append(rows, Row{seq, element})
		seq++
	}
	slices.Reverse(rows)
	return rows
}

func (feed *Feed) head(ctx context.Context, owner any, before, limit int64) (*state, error) {
	match := mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "_id", Value: equal(owner)}}}}}
	return readDocument(ctx, feed.heads, match, before, limit)
}

// page returns the owner's last page that begins below `before`. It is found by index, never by count.
// Only pages that the head counts, and of its own incarnation (epoch), belong to the array.
func (feed *Feed) page(ctx context.Context, owner any, head *state, before, limit int64) (*state, error) {
	match := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{
			{Key: feed.definition.PageOwner, Value: equal(owner)},
			{Key: "spill.epoch", Value: head.Epoch},
			{Key: "_id.page", Value: bson.D{{Key: "$lt", Value: head.Pages}}},
			{Key: "spill.first", Value: bson.D{{Key: "$lt", Value: before}}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "spill.first", Value: -1}, {Key: "_id", Value: -1}}}},
		{{Key: "$limit", Value: 1}},
	}
	return readDocument(ctx, feed.pages, match, before, limit)
}

// Read returns up to `limit` elements numbered below `before`, newest first. The last number is the cursor
// for the next page. Appends do not invalidate it.
func (feed *Feed) Read(ctx context.Context, owner any, limit, before int64) ([]Row, error) {
	rows := []Row{}
	head, err := feed.head(ctx, owner, before, limit)
	for err == nil && head != nil && before > head.Low && int64(len(rows)) < limit {
		var part *state
		if !feed.keepsNewest || before <= head.First {
			part, err = feed.page(ctx, owner, head, before, limit-int64(len(rows)))
		}
		if part == nil && head.First < before {
			part = head // keep oldest: elements below all pages; keep newest: above them
		}
		if err != nil || part == nil {
			break
		}
		for _, row := range part.rows {
			if row.Seq >= head.Low && int64(len(rows)) < limit {
				rows = append(rows, row)
			}
		}
		before = part.First
	}
	return rows, err
}

// Count returns the exact number of live elements. The head's count field may be out of date.
func (feed *Feed) Count(ctx context.Context, owner any) (int64, error) {
	for {
		head, err := feed.head(ctx, owner, noNumber, 0)
		if err != nil || head == nil {
			return 0, err
		}
		dead := head.Low + head.Removed
		if feed.keepsNewest { // Removed counts deleted numbers below First, Gone has the rest
			return head.end - int64(len(head.Gone)) - dead, nil
		}
		if head.Pages == 0 {
			return head.end - dead, nil
		}
		last, err := feed.page(ctx, owner, head, noNumber, 0)
		if err != nil {
			return 0, err
		}
		again, err := feed.head(ctx, owner, noNumber, 0)
		if err != nil {
			return 0, err
		}
		// A removal or a trim in between raises Rev, a new page raises Pages: then try again.
		if again == nil || again.Rev != head.Rev || again.Pages != head.Pages {
			continue
		}
		if last == nil { // the first page may not exist yet
			last = head
		}
		return last.end - dead, nil
	}
}

// ---- appending -----------------------------------------------------------------------------------

// NewOperation returns the identity of the next append.
func (feed *Feed) NewOperation(ctx context.Context, owner any) (Operation, error) {
	identity := make([]byte, 16)
	rand.Read(identity) // it never fails
	operation := Operation{ID: hex.EncodeToString(identity)}
	last, err := feed.head(ctx, owner, noNumber, 0)
	if err == nil && last != nil && !feed.keepsNewest && last.Pages > 0 {
		head := last
		if last, err = feed.page(ctx, owner, head, noNumber, 0); last == nil {
			last = head
		}
	}
	if last != nil {
		operation.Base = last.N
	}
	return operation, err
}

// Append returns the element's sequence number. After a time-out, repeat it with the same operation.
func (feed *Feed) Append(ctx context.Context, owner any, element bson.RawValue, operation Operation) (int64, error) {
	seq, err := feed.push(ctx, owner, element, operation)
	if errors.Is(err, mongo.ErrNoDocuments) {
		// No head, no room, a sealed page, or appended before: leave it to the program.
		return feed.appendByProgram(owner, element, operation)
	}
	return seq, err
}

// push is one findAndModify with a guard as its filter. ErrNoDocuments: refused, and nothing has changed.
func (feed *Feed) push(ctx context.Context, owner any, element bson.RawValue, operation Operation) (int64, error) {
	bounds, window := feed.definition.Bounds, feed.definition.OpWindow
	at, slots, most := feed.heads, bounds.Threshold, bounds.HeadBytesMax
	guard := bson.D{{Key: "_id", Value: equal(owner)}}
	var epoch any = bson.D{{Key: "$exists", Value: true}}
	if feed.keepsNewest { // the head grows by a page, and a little, before it spills
		slots += bounds.PageCapacity + bounds.PageCapacity/8 + 1
	} else { // append to the last page, if the owner has pages
		head, err := feed.head(ctx, owner, noNumber, 0)
		if err != nil {
			return 0, err
		}
		if head != nil && head.Pages > 0 {
			at, slots, most = feed.pages, bounds.PageCapacity, bounds.PageBytesMax
			id := bson.D{{Key: "owner", Value: owner}, {Key: "page", Value: head.Pages - 1}}
			guard = bson.D{{Key: "_id", Value: equal(id)}, {Key: feed.definition.PageOwner, Value: equal(owner)}}
			epoch = head.Epoch
		}
	}
	identity := bson.Binary{Data: []byte(operation.ID)}
	live := size(call("$ifNull", "$"+at.array, bson.A{}))
	gone := size(call("$ifNull", "$"+at.spill+".gone", bson.A{}))
	// An array entry is its value, a type, and an index of up to seven digits.
	grows := int64(len(element.Value)) + 15 + opBytes*(window+1) + marginBytes
	guard = append(guard,
		bson.E{Key: at.spill + ".epoch", Value: epoch},
		bson.E{Key: at.spill + ".sealed", Value: bson.D{{Key: "$ne", Value: true}}},
		// Not appended before; or the window may have dropped the id.
		bson.E{Key: at.spill + ".ops.id", Value: bson.D{{Key: "$ne", Value: identity}}},
		bson.E{Key: at.spill + ".n", Value: bson.D{{Key: "$lt", Value: operation.Base + window}}},
		bson.E{Key: "$expr", Value: call("$and",
			call("$lte", call("$add", live, gone, 1), slots),
			call("$lte", call("$add", bson.D{{Key: "$bsonSize", Value: "$$ROOT"}}, grows), most),
			// Another program may have replaced the array: then deleted numbers lie behind its end.
			call("$lt", bson.D{{Key: "$max", Value: "$" + at.spill + ".gone"}},
				call("$add", "$"+at.spill+".first", live, gone)))})
	note := bson.D{{Key: "id", Value: identity}, {Key: "count", Value: int64(1)}, {Key: "after", Value: int64(0)}}
	added := bson.D{{Key: at.spill + ".n", Value: int64(1)}}
	if at.count != "" {
		added = append(added, bson.E{Key: at.count, Value: 1})
	}
	update := bson.D{
		{Key: "$push", Value: bson.D{
			{Key: at.array, Value: bson.D{{Key: "$each", Value: bson.A{element}}}},
			{Key: at.spill + ".ops", Value: bson.D{{Key: "$each", Value: bson.A{note}},
				{Key: "$position", Value: 0}, {Key: "$slice", Value: window}}}}},
		{Key: "$inc", Value: added},
	}
	wanted := bson.D{{Key: "_id", Value: 0}, {Key: "first", Value: "$" + at.spill + ".first"},
		{Key: "live", Value: live}, {Key: "gone", Value: gone}}
	var after struct{ First, Live, Gone int64 }
	err := at.collection.FindOneAndUpdate(ctx, guard, update, options.FindOneAndUpdate().
		SetReturnDocument(options.After).SetProjection(wanted)).Decode(&after)
	return after.First + after.Live + after.Gone - 1, err
}

// appendByProgram leaves it to `spillway append`, which creates heads and pages, spills, and recognizes
// repeated operations.
func (feed *Feed) appendByProgram(owner any, element bson.RawValue, operation Operation) (int64, error) {
	program := os.Getenv("SPILLWAY")
	if program == "" {
		program = "spillway"
	}
	ownerText, err := extended(owner)
	if err != nil {
		return 0, err
	}
	elementText, err := extended(element)
	if err != nil {
		return 0, err
	}
	run := exec.Command(program, "append", "env:", feed.name, ownerText, "-", "--quiet",
		"--op", fmt.Sprintf("%s@%d", operation.ID, operation.Base))
	run.Stdin, run.Stderr = strings.NewReader(elementText+"\n"), os.Stderr
	printed, err := run.Output()
	if err != nil {
		return 0, fmt.Errorf("%s append: %w", program, err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(printed)), 10, 64)
}

// ---- the program ---------------------------------------------------------------------------------

// extended returns the value as canonical Extended JSON.
func extended(value any) (string, error) {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: value}}, true, false)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}"), nil
}

func parse(text string) (bson.RawValue, error) {
	var document bson.Raw
	err := bson.UnmarshalExtJSON([]byte(`{"v": `+text+`}`), false, &document)
	if err != nil {
		return bson.RawValue{}, err
	}
	return document.LookupErr("v")
}

func parseOwner(text string) any {
	if value, err := parse(text); err == nil {
		return value
	}
	return text
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) < 3 {
		return errors.New("usage: feed NAME read|count|append OWNER ...")
	}
	uri := os.Getenv("SPILLWAY_URI")
	parsed, err := connstring.ParseAndValidate(uri)
	if err != nil {
		return err
	}
	// Appends survive, and reads see only what survives, as long as a majority of the servers does.
	client, err := mongo.Connect(options.Client().ApplyURI(uri).
		SetWriteConcern(writeconcern.Majority()).SetReadConcern(readconcern.Majority()))
	if err != nil {
		return err
	}
	defer client.Disconnect(ctx)
	feed, err := OpenFeed(ctx, client.Database(parsed.Database), arguments[0])
	if err != nil {
		return err
	}
	owner, rest := parseOwner(arguments[2]), arguments[3:]
	switch arguments[1] {
	case "read":
		return feed.printRows(ctx, owner, rest)
	case "count":
		count, err := feed.Count(ctx, owner)
		if err == nil {
			fmt.Println(count)
		}
		return err
	case "append":
		return feed.appendAll(ctx, owner, rest)
	}
	return fmt.Errorf("there is no command '%s'", arguments[1])
}

func (feed *Feed) printRows(ctx context.Context, owner any, rest []string) error {
	numbers := []int64{20, noNumber} // limit, before
	for i := range min(len(rest), len(numbers)) {
		number, err := strconv.ParseInt(rest[i], 10, 64)
		if err != nil {
			return err
		}
		numbers[i] = number
	}
	rows, err := feed.Read(ctx, owner, numbers[0], numbers[1])
	for _, row := range rows {
		line, err := bson.MarshalExtJSON(row, false, false)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return err
}

func (feed *Feed) appendAll(ctx context.Context, owner any, elements []string) error {
	for _, text := range elements {
		element, err := parse(text)
		if err != nil {
			return err
		}
		operation, err := feed.NewOperation(ctx, owner)
		if err != nil {
			return err
		}
		seq, err := feed.Append(ctx, owner, element, operation)
		if err != nil {
			return err
		}
		fmt.Println(seq)
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
