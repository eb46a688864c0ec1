// go_mgo does an application's everyday work with mgo, a driver of the time before OP_MSG: all it sends is OP_QUERY.
//
// `go_mgo everyday URI APPLICATION OPTIONS`, options as JSON (`place`, `seconds`). Out: JSON lines `ready` and `done`.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/globalsign/mgo"
	"github.com/globalsign/mgo/bson"
)

type plan struct {
	Place   string  `json:"place"`
	Seconds float64 `json:"seconds"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// step reads or writes once.
func step(rows *mgo.Collection, ids []bson.ObjectId) error {
	any := ids[rand.IntN(len(ids))]
	switch rand.IntN(4) {
	case 0:
		var found bson.M
		return rows.FindId(any).One(&found)
	case 1:
		return rows.UpdateId(any, bson.M{"$inc": bson.M{"read": 1}})
	case 2:
		var found []bson.M
		return rows.Find(bson.M{"shelf": rand.IntN(7)}).All(&found)
	default:
		return rows.Insert(bson.M{"_id": bson.NewObjectId(), "shelf": 8})
	}
}

func main() {
	var wanted plan
	must(json.Unmarshal([]byte(os.Args[4]), &wanted))
	info, err := mgo.ParseURL(os.Args[2])
	must(err)
	info.AppName, info.Timeout = os.Args[3], 10*time.Second
	session, err := mgo.DialWithInfo(info)
	must(err)
	database, name, _ := strings.Cut(wanted.Place, ".")
	rows := session.DB(database).C(name)
	var ids []bson.ObjectId
	for n := range 60 {
		ids = append(ids, bson.NewObjectId())
		must(rows.Insert(bson.M{"_id": ids[n], "shelf": n % 7, "text": fmt.Sprint("row ", n)}))
	}
	fmt.Println(`{"event": "ready"}`)
	until := time.Now().Add(time.Duration(wanted.Seconds * float64(time.Second)))
	for time.Now().Before(until) {
		must(step(rows, ids))
		time.Sleep(time.Duration((0.05 + rand.Float64()*0.35) * float64(time.Second)))
	}
	session.Close()
	fmt.Println(`{"event": "done"}`)
}
