// go_mongo_old reads lists with MongoDB's Go driver of version 1 and gives up in the middle of each: `go_mongo_old URI
// APPLICATION LISTS REST_S`. The context of a list is cancelled before Cursor.All has read all of it, as when the caller
// of a service hangs up.
//
// Out: JSON lines `left` for each list with what All said, `resting`, and `done` at the end.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
)

const rows = 20

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	uri, name := os.Args[1], os.Args[2]
	lists, err := strconv.Atoi(os.Args[3])
	must(err)
	rest, err := strconv.ParseFloat(os.Args[4], 64)
	must(err)
	ctx := context.Background()
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(uri).SetAppName(name))
	must(err)
	orders := client.Database("shop").Collection(name)
	for n := range rows {
		_, err := orders.InsertOne(ctx, bson.D{{Key: "number", Value: n}})
		must(err)
	}
	for range lists {
		leave(ctx, orders)
		time.Sleep(300 * time.Millisecond)
	}
	fmt.Println(`{"event": "resting"}`)
	time.Sleep(time.Duration(rest * float64(time.Second)))
	must(client.Disconnect(ctx))
	fmt.Println(`{"event": "done"}`)
}

func leave(ctx context.Context, orders *mongo.Collection) {
	caller, hangUp := context.WithCancel(ctx)
	cursor, err := orders.Find(caller, bson.D{}, options.Find().SetBatchSize(5))
	must(err)
	hangUp()
	var found []bson.D
	err = cursor.All(caller, &found)
	fmt.Printf("{\"event\": \"left\", \"error\": %q}\n", fmt.Sprint(err))
}
