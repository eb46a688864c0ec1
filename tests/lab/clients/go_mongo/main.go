// go_mongo does an application's work with MongoDB's Go driver: `go_mongo WORK URI APPLICATION OPTIONS`, options as JSON.
//
// Out: JSON lines `ready`, `resting` and `done`. Works and options are those of clients/mongo_workers.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const rowCount = 60

// plan holds the options of a work; times are in s.
type plan struct {
	Place     string          `json:"place"`
	Fill      bool            `json:"fill"`
	Count     int             `json:"count"`
	Seconds   float64         `json:"seconds"`
	PauseS    float64         `json:"pause_s"`
	RestS     float64         `json:"rest_s"`
	Threads   int             `json:"threads"`
	How       string          `json:"how"`
	Rounds    int             `json:"rounds"`
	FailPoint json.RawMessage `json:"fail_point"`
}

// application is one program: its client, its rows and the ids in them.
type application struct {
	plan
	uri, name string
	client    *mongo.Client
	rows      *mongo.Collection
	ids       []bson.ObjectID
}

func say(event string) {
	fmt.Printf("{\"event\": %q}\n", event)
}

// must ends the program on what no work expects.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}

func between(least, most float64) {
	time.Sleep(seconds(least + rand.Float64()*(most-least)))
}

// pause rests as somebody does who comes when he likes.
func (a *application) pause() {
	time.Sleep(seconds(rand.ExpFloat64() * a.PauseS))
}

func (a *application) connected() *mongo.Client {
	client, err := mongo.Connect(options.Client().ApplyURI(a.uri).SetAppName(a.name))
	must(err)
	return client
}

func (a *application) collection(client *mongo.Client, more ...options.Lister[options.CollectionOptions]) *mongo.Collection {
	database, name, _ := strings.Cut(a.Place, ".")
	return client.Database(database).Collection(name, more...)
}

func (a *application) anyID() bson.ObjectID {
	return a.ids[rand.IntN(len(a.ids))]
}

func (a *application) sample(count int) []bson.ObjectID {
	found := make([]bson.ObjectID, 0, count)
	for _, n := range rand.Perm(len(a.ids))[:count] {
		found = append(found, a.ids[n])
	}
	return found
}

func (a *application) fill(ctx context.Context) {
	rows := make([]any, 0, rowCount)
	for n := range rowCount {
		a.ids = append(a.ids, bson.NewObjectID())
		rows = append(rows, bson.D{{Key: "_id", Value: a.ids[n]}, {Key: "shelf", Value: n % 7}, {Key: "text", Value: fmt.Sprint("row ", n)}})
	}
	_, err := a.rows.InsertMany(ctx, rows)
	must(err)
}

func (a *application) untilOver(work func()) {
	until := time.Now().Add(seconds(a.Seconds))
	for time.Now().Before(until) {
		work()
	}
}

func (a *application) inThreads(work func()) {
	var all sync.WaitGroup
	for range a.Threads {
		all.Go(func() { a.untilOver(work) })
	}
	all.Wait()
}

func (a *application) orderFailures(ctx context.Context) {
	var command bson.D
	must(bson.UnmarshalExtJSON(a.FailPoint, false, &command))
	must(a.client.Database("admin").RunCommand(ctx, command).Err())
}

func main() {
	a := &application{uri: os.Args[2], name: os.Args[3]}
	must(json.Unmarshal([]byte(os.Args[4]), &a.plan))
	work, known := works[os.Args[1]]
	if !known {
		must(fmt.Errorf("unknown work %s", os.Args[1]))
	}
	ctx := context.Background()
	a.client = a.connected()
	a.rows = a.collection(a.client)
	if a.FailPoint != nil {
		a.orderFailures(ctx)
	}
	if a.Fill {
		a.fill(ctx)
	}
	say("ready")
	work(ctx, a)
	must(a.client.Disconnect(ctx))
	say("done")
}
