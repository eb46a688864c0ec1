package main

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

const poolSize = 10

var works = map[string]func(context.Context, *application){
	"everyday": everyday, "one_by_one": oneByOne, "populate": populate, "users": users,
	"client_per_request": clientPerRequest, "reports": reports, "distinct": distinct, "cursors": cursors,
	"export": export, "duplicates": duplicates, "read_own_writes": readOwnWrites, "writes": writes, "logins": logins,
	"pause": rest, "transactions": transactions, "transaction_left": transactionLeft,
}

func field(name string, value any) bson.D {
	return bson.D{{Key: name, Value: value}}
}

func (a *application) one(ctx context.Context, id bson.ObjectID) {
	must(a.rows.FindOne(ctx, field("_id", id)).Err())
}

func (a *application) all(ctx context.Context, filter bson.D, more ...options.Lister[options.FindOptions]) {
	cursor, err := a.rows.Find(ctx, filter, more...)
	must(err)
	var found []bson.D
	must(cursor.All(ctx, &found))
}

// everyday reads and writes, a few a second.
func everyday(ctx context.Context, a *application) {
	a.untilOver(func() {
		var err error
		switch rand.IntN(4) {
		case 0:
			a.one(ctx, a.anyID())
		case 1:
			_, err = a.rows.UpdateOne(ctx, field("_id", a.anyID()), field("$inc", field("read", 1)))
		case 2:
			a.all(ctx, field("shelf", rand.IntN(7)))
		default:
			_, err = a.rows.InsertOne(ctx, field("shelf", 8))
		}
		must(err)
		between(0.05, 0.4)
	})
}

// oneByOne reads a list, then each of its rows alone: in turn, as a burst over the pool, or with $in of one value.
func oneByOne(ctx context.Context, a *application) {
	look := func(id bson.ObjectID) {
		if a.How == "in" {
			a.all(ctx, field("_id", field("$in", bson.A{id})))
		} else {
			a.one(ctx, id)
		}
	}
	for range a.Rounds {
		a.all(ctx, bson.D{}, options.Find().SetLimit(rowCount))
		if a.How == "burst" {
			burst(a.ids, look)
		} else {
			for _, id := range a.ids {
				look(id)
			}
		}
		time.Sleep(time.Second)
	}
}

func burst(ids []bson.ObjectID, look func(bson.ObjectID)) {
	var all sync.WaitGroup
	waiting := make(chan bson.ObjectID)
	for range poolSize {
		all.Go(func() {
			for id := range waiting {
				look(id)
			}
		})
	}
	for _, id := range ids {
		waiting <- id
	}
	close(waiting)
	all.Wait()
}

func populate(ctx context.Context, a *application) {
	a.untilOver(func() {
		a.all(ctx, field("shelf", rand.IntN(7)))
		a.all(ctx, field("_id", field("$in", a.sample(30))))
		between(0.01, 0.1)
	})
}

func users(ctx context.Context, a *application) {
	a.inThreads(func() {
		a.one(ctx, a.anyID())
		a.pause()
	})
}

func clientPerRequest(ctx context.Context, a *application) {
	for range a.Count {
		client := a.connected()
		if err := a.collection(client).FindOne(ctx, bson.D{}).Err(); err != mongo.ErrNoDocuments {
			must(err)
		}
		must(client.Disconnect(ctx))
		between(0.05, 0.25)
	}
}

func reports(ctx context.Context, a *application) {
	a.inThreads(func() {
		totals := bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: field("$sum", 1)}}
		cursor, err := a.rows.Aggregate(ctx, mongo.Pipeline{
			field("$match", field("shelf", rand.IntN(7))), field("$group", totals),
		})
		must(err)
		var found []bson.D
		must(cursor.All(ctx, &found))
		a.pause()
	})
}

func distinct(ctx context.Context, a *application) {
	for range a.Count {
		_ = a.rows.Distinct(ctx, "shelf", bson.D{}).Err() // whatever comes of it
		between(0.3, 0.8)
	}
}

// cursors are opened one after the other, none is read to its end, and the program ends without closing anything.
func cursors(ctx context.Context, a *application) {
	var held []*mongo.Cursor
	for range a.Count {
		cursor, err := a.rows.Find(ctx, field("shelf", field("$gte", 0)), options.Find().SetBatchSize(5))
		must(err)
		cursor.Next(ctx)
		held = append(held, cursor)
		time.Sleep(700 * time.Millisecond)
	}
	time.Sleep(seconds(a.RestS))
	runtime.KeepAlive(held)
	os.Exit(0)
}

func export(ctx context.Context, a *application) {
	a.untilOver(func() { a.all(ctx, bson.D{}, options.Find().SetBatchSize(20)) })
}

func duplicates(ctx context.Context, a *application) {
	for range a.Count {
		_, _ = a.rows.InsertOne(ctx, field("_id", a.ids[0]))
		between(0.1, 0.6)
	}
}

func readOwnWrites(ctx context.Context, a *application) {
	late := a.collection(a.client, options.Collection().SetReadPreference(readpref.Secondary()))
	for range a.Count {
		made, err := a.rows.InsertOne(ctx, field("shelf", 3))
		must(err)
		time.Sleep(seconds(a.PauseS))
		if err := late.FindOne(ctx, field("_id", made.InsertedID)).Err(); err != mongo.ErrNoDocuments {
			must(err)
		}
		between(0.2, 0.5)
	}
}

func writes(ctx context.Context, a *application) {
	for range a.Count {
		_, _ = a.rows.InsertOne(ctx, field("shelf", 1))
		between(0.3, 0.9)
	}
}

func logins(ctx context.Context, a *application) {
	for range a.Count {
		client := a.connected()
		_ = client.Ping(ctx, nil)
		must(client.Disconnect(ctx))
		between(0.02, 0.1)
	}
}

// rest after the first request, and ask again on the same connection.
func rest(ctx context.Context, a *application) {
	say("resting")
	time.Sleep(seconds(a.RestS))
	limited, end := context.WithTimeout(ctx, 15*time.Second)
	defer end()
	_ = a.rows.FindOne(limited, bson.D{}).Err()
}

func (a *application) add(ctx context.Context, id bson.ObjectID, number int) {
	_, err := a.rows.UpdateOne(ctx, field("_id", id), field("$inc", field("read", number)))
	must(err)
}

// transactions move something from one row to another, all or nothing; a few are taken back.
func transactions(ctx context.Context, a *application) {
	for number := range a.Count {
		pair := a.sample(2)
		session, err := a.client.StartSession()
		must(err)
		must(session.StartTransaction())
		within := mongo.NewSessionContext(ctx, session)
		a.add(within, pair[0], -1)
		a.add(within, pair[1], 1)
		if number%5 == 4 {
			must(session.AbortTransaction(ctx))
		} else {
			must(session.CommitTransaction(ctx))
		}
		session.EndSession(ctx)
		between(0.1, 0.5)
	}
}

// transactionLeft begins a transaction and never ends it: crash, stay, or stay and do other work.
func transactionLeft(ctx context.Context, a *application) {
	session, err := a.client.StartSession()
	must(err)
	must(session.StartTransaction())
	within := mongo.NewSessionContext(ctx, session)
	a.add(within, a.ids[0], 1)
	_, err = a.rows.InsertOne(within, field("shelf", 2))
	must(err)
	if a.How == "crash" {
		os.Exit(0)
	}
	say("resting")
	a.Seconds = a.RestS
	a.untilOver(func() {
		if a.How == "work" {
			a.all(ctx, field("shelf", 3))
		}
		time.Sleep(time.Second)
	})
}
