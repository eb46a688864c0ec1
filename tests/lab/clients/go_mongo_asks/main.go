// go_mongo_asks does simple rounds with MongoDB's Go driver: `go_mongo_asks WORK URI APPLICATION OPTIONS`, options as JSON.
//
// Out: JSON lines `ready` and `done`. Works: asks, adds, bulk (the command bulkWrite), counted, those of mishaps.go; `place` is DATABASE.COLLECTION.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type plan struct {
	Place   string  `json:"place"`
	Fill    int     `json:"fill"`
	Seconds float64 `json:"seconds"`
	PauseS  float64 `json:"pause_s"`
	ThinkS  float64 `json:"think_s"`
	EveryS  float64 `json:"every_s"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}

func main() {
	var todo plan
	must(json.Unmarshal([]byte(os.Args[4]), &todo))
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI(os.Args[2]).SetAppName(os.Args[3]))
	must(err)
	database, name, _ := strings.Cut(todo.Place, ".")
	rows := client.Database(database).Collection(name)
	for n := range todo.Fill {
		_, err := rows.InsertOne(ctx, bson.D{{Key: "_id", Value: n}, {Key: "key", Value: n % 50}})
		must(err)
	}
	works := map[string]func(int) error{
		"asks": func(n int) error { return rows.FindOne(ctx, bson.D{{Key: "_id", Value: n % 40}}).Err() },
		"adds": func(n int) error {
			_, err := rows.InsertOne(ctx, bson.D{{Key: "key", Value: n}, {Key: "state", Value: "new"}})
			return err
		},
		"counted": func(n int) error { return counted(ctx, rows) },
		"bulk":    func(n int) error { return bulk(ctx, client, database, name, n) },
	}
	maps.Copy(works, mishaps(ctx, rows, os.Args[3], todo))
	fmt.Println(`{"event": "ready"}`)
	until := time.Now().Add(seconds(todo.Seconds))
	for n := 0; time.Now().Before(until); n++ {
		if err := works[os.Args[1]](n); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		time.Sleep(seconds(todo.PauseS))
	}
	must(client.Disconnect(ctx))
	fmt.Println(`{"event": "done"}`)
}

// counted shows a page, and how many rows there are in all.
func counted(ctx context.Context, rows *mongo.Collection) error {
	all := bson.D{{Key: "state", Value: "done"}}
	if _, err := rows.CountDocuments(ctx, all); err != nil {
		return err
	}
	found, err := rows.Find(ctx, all, options.Find().SetLimit(10))
	if err != nil {
		return err
	}
	var page []bson.D
	return found.All(ctx, &page)
}

// bulk writes to two collections with one command.
func bulk(ctx context.Context, client *mongo.Client, database, name string, n int) error {
	row := func(where string, id any) mongo.ClientBulkWrite {
		one := mongo.NewClientInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: id}, {Key: "run", Value: n}})
		return mongo.ClientBulkWrite{Database: database, Collection: where, Model: one}
	}
	models := []mongo.ClientBulkWrite{row(name, fmt.Sprint("first-", n)), row(name, 7)}
	for more := range 25 {
		models = append(models, row(name+"_log", fmt.Sprint(n, "-", more)))
	}
	_, err := client.BulkWrite(ctx, models, options.ClientBulkWrite().SetOrdered(true))
	return err
}
