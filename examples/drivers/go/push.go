// Push an array past 16 MB with the Go driver. Usage: go run . URI [--pause]
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

const (
	elements = 44
	payload  = 1_000_000
)

type event struct {
	N       int32  `bson:"n"`
	Payload string `bson:"payload"`
}

type feed struct {
	ID     string  `bson:"_id"`
	Title  string  `bson:"title,omitempty"`
	Events []event `bson:"events"`
	Spill  bson.D  `bson:"spill,omitempty"`
}

func element(number int) event {
	return event{int32(number), strings.Repeat(string(rune('a'+number%26)), payload)}
}

func digest(events []event) string {
	sha := sha256.New()
	for _, event := range events {
		fmt.Fprintf(sha, "%d:%s", event.N, event.Payload)
	}
	return fmt.Sprintf("%x", sha.Sum(nil))
}

func id(value string) bson.D { return bson.D{{Key: "_id", Value: value}} }

func push(ctx context.Context, feeds *mongo.Collection, first, end int) error {
	for number := first; number < end; number++ {
		update := bson.M{"$push": bson.M{"events": element(number)}}
		_, err := feeds.UpdateOne(ctx, id("long"), update, options.UpdateOne().SetUpsert(true))
		if err != nil {
			return fmt.Errorf("push %d: %w", number, err)
		}
	}
	return nil
}

func read(ctx context.Context, feeds *mongo.Collection, name string) (feed, error) {
	var found feed
	err := feeds.FindOne(ctx, id(name)).Decode(&found)
	return found, err
}

func bulk(ctx context.Context, feeds *mongo.Collection, small []event) error {
	if _, err := feeds.InsertOne(ctx, id("gone")); err != nil {
		return err
	}
	result, err := feeds.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(feed{ID: "short", Events: []event{}}),
		mongo.NewUpdateOneModel().SetFilter(id("short")).
			SetUpdate(bson.M{"$push": bson.M{"events": bson.M{"$each": small}}}),
		mongo.NewUpdateOneModel().SetFilter(id("long")).SetUpdate(bson.M{
			"$push": bson.M{"events": element(elements)},
			"$set":  bson.M{"title": "long"},
		}),
		mongo.NewDeleteOneModel().SetFilter(id("gone")),
	})
	if err != nil {
		return err
	}
	if result.InsertedCount != 1 || result.ModifiedCount != 2 || result.DeletedCount != 1 {
		return fmt.Errorf("the bulk write answers %+v", result)
	}
	return nil
}

func run(ctx context.Context, feeds *mongo.Collection, pause bool) error {
	if err := push(ctx, feeds, 0, elements/2); err != nil {
		return err
	}
	if pause {
		fmt.Println("paused")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		_, _ = read(ctx, feeds, "none") // the driver repeats a read on a new connection
	}
	if err := push(ctx, feeds, elements/2, elements); err != nil {
		return err
	}
	var pushed []event
	for number := range elements {
		pushed = append(pushed, element(number))
	}
	long, err := read(ctx, feeds, "long")
	if err != nil {
		return err
	}
	if digest(long.Events) != digest(pushed) {
		return fmt.Errorf("read %d elements that differ", len(long.Events))
	}

	small := []event{{N: 0}, {N: 1}, {N: 2}}
	if err := bulk(ctx, feeds, small); err != nil {
		return err
	}
	short, err := read(ctx, feeds, "short")
	if err != nil || !slices.Equal(short.Events, small) {
		return fmt.Errorf("the short array differs: %v", err)
	}
	if _, err := read(ctx, feeds, "gone"); err != mongo.ErrNoDocuments {
		return fmt.Errorf("a deleted document is there: %v", err)
	}

	long, err = read(ctx, feeds, "long")
	if err != nil || long.Title != "long" || !reflect.ValueOf(long.Spill).IsZero() {
		return fmt.Errorf("the title was not set, or bookkeeping is visible: %v", err)
	}
	fmt.Println("elements", len(long.Events), "sha256", digest(long.Events))
	return nil
}

func main() {
	uri, err := connstring.ParseAndValidate(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	feeds := client.Database(uri.Database).Collection("feeds")
	if err := run(ctx, feeds, slices.Contains(os.Args, "--pause")); err != nil {
		log.Fatal(err)
	}
	if err := client.Disconnect(ctx); err != nil {
		log.Fatal(err)
	}
}
