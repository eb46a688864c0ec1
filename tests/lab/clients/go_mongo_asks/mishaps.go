package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	page  = 50
	tries = 3
	// A migration has given all rows but the first of them this time.
	migratedAt, migratedFrom = 9000, 70
)

type row = bson.D

// mishaps returns works with something wrong in them, and the same as it should be.
func mishaps(ctx context.Context, rows *mongo.Collection, name string, todo plan) map[string]func(int) error {
	since := 0
	return map[string]func(int) error{
		"counts": func(n int) error {
			_, err := rows.UpdateOne(ctx, row{{Key: "_id", Value: n % 8}}, row{{Key: "$inc", Value: row{{Key: "views", Value: 1}}}})
			return err
		},
		"numbers": func(int) error { return numbers(ctx, rows, name, todo) },
		"syncs":   func(int) error { return syncs(ctx, rows, &since) },
		"stamps":  func(int) error { return stamps(ctx, rows) },
		"report":  func(n int) error { return report(ctx, rows, name, n, todo) },
	}
}

// numbers looks for the highest number and inserts a row with the next one.
func numbers(ctx context.Context, rows *mongo.Collection, name string, todo plan) error {
	var err error
	for range tries {
		var last struct {
			ID int64 `bson:"_id"`
		}
		_ = rows.FindOne(ctx, row{}, options.FindOne().SetSort(row{{Key: "_id", Value: -1}})).Decode(&last)
		time.Sleep(seconds(todo.ThinkS * (0.5 + rand.Float64())))
		if _, err = rows.InsertOne(ctx, row{{Key: "_id", Value: last.ID + 1}, {Key: "by", Value: name}}); err == nil {
			return nil
		}
	}
	return err
}

// stamps gives the rows their times: most of them have the same.
func stamps(ctx context.Context, rows *mongo.Collection) error {
	made := make([]any, 0, 300)
	for n := range 300 {
		at := n
		if n >= migratedFrom {
			at = migratedAt
		}
		made = append(made, row{{Key: "_id", Value: n}, {Key: "updated", Value: at}, {Key: "text", Value: "an article of the shop"}})
	}
	_, err := rows.InsertMany(ctx, made)
	return err
}

// syncs reads the next page of what has changed, from the last time that it has seen on, that time included.
func syncs(ctx context.Context, rows *mongo.Collection, since *int) error {
	from := row{{Key: "updated", Value: row{{Key: "$gte", Value: *since}}}}
	found, err := rows.Find(ctx, from, options.Find().SetSort(row{{Key: "updated", Value: 1}}).SetLimit(page))
	if err != nil {
		return err
	}
	var all []struct{ Updated int }
	if err := found.All(ctx, &all); err != nil {
		return err
	}
	if len(all) > 0 {
		*since = all[len(all)-1].Updated
	}
	return nil
}

// report waits for the next whole ten seconds of the clock, as agents do that measure at fixed times, and stores them.
func report(ctx context.Context, rows *mongo.Collection, name string, n int, todo plan) error {
	every := seconds(todo.EveryS)
	time.Sleep(time.Until(time.Now().Truncate(every).Add(every)))
	made := make([]any, 0, 4)
	for _, what := range []string{"cpu", "memory", "disk", "net"} {
		made = append(made, row{{Key: "_id", Value: fmt.Sprint(name, "-", what, "-", n)}, {Key: "value", Value: rand.IntN(100)}})
	}
	_, err := rows.InsertMany(ctx, made)
	return err
}
