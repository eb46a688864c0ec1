package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// worker is a group member of the incidents.
type worker struct {
	events     *events
	mu         sync.Mutex
	last       map[string]int64
	commit     string
	handleTime time.Duration
	poisonTime time.Duration
	fails      string
}

func (w *worker) Setup(s sarama.ConsumerGroupSession) error {
	w.mu.Lock()
	w.last = map[string]int64{}
	w.mu.Unlock()
	w.events.emit(map[string]any{"event": "session", "member": s.MemberID(), "generation": s.GenerationID(), "partitions": s.Claims()})
	return nil
}

func (w *worker) Cleanup(s sarama.ConsumerGroupSession) error {
	w.events.emit(map[string]any{"event": "revoked", "partitions": s.Claims()})
	return nil
}

func (w *worker) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	name := fmt.Sprint(claim.Topic(), "-", claim.Partition())
	for message := range claim.Messages() {
		w.mu.Lock()
		_, known := w.last[name]
		w.last[name] = message.Offset
		w.mu.Unlock()
		if !known {
			w.events.emit(map[string]any{"event": "reading", "partition": name, "offset": message.Offset})
		}
		if w.fails != "" && strings.HasPrefix(string(message.Value), w.fails) {
			w.events.emit(map[string]any{"event": "fails", "partition": name, "offset": message.Offset})
			return fmt.Errorf("no handler for record %d of %s", message.Offset, name)
		}
		if w.poisonTime > 0 && strings.HasPrefix(string(message.Value), "poison") {
			w.events.emit(map[string]any{"event": "poison", "partition": name, "offset": message.Offset})
			time.Sleep(w.poisonTime)
		}
		time.Sleep(w.handleTime)
		switch w.commit {
		case "never":
		case "last":
			s.MarkOffset(message.Topic, message.Partition, message.Offset, "")
		default:
			s.MarkMessage(message, "")
		}
		if w.commit == "record" {
			s.Commit()
		}
	}
	return nil
}

// work reads topics and commits on sarama's timer, after each record, the last offset instead of the next, or never.
func work(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("work", flag.ExitOnError)
	broker := flags.String("broker", "", "host:port")
	clientID := flags.String("client-id", "", "client id")
	group := flags.String("group", "", "consumer group")
	topics := flags.String("topics", "", "topics, comma separated")
	commit := flags.String("commit", "auto", "auto, record, last or never")
	reset := flags.String("reset", "earliest", "earliest or latest")
	assignor := flags.String("assignor", "range", "range, roundrobin or sticky")
	instance := flags.String("instance", "", "group.instance.id")
	session := flags.Duration("session", 10*time.Second, "session timeout")
	handle := flags.Duration("handle", 0, "time that each record takes")
	poison := flags.Duration("poison", 0, "time that a record takes that begins with poison")
	fails := flags.String("fails", "", "the handler returns an error at a record that begins so")
	fetchBytes := flags.Int("fetch-bytes", 1<<20, "bytes of a partition in an answer")
	_ = flags.Parse(args)

	config, err := newConfig(*clientID, newest)
	if err != nil {
		return err
	}
	config.Consumer.Offsets.Initial = map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}[*reset]
	config.Consumer.Offsets.AutoCommit.Interval = time.Second
	config.Consumer.Group.Heartbeat.Interval = time.Second
	config.Consumer.Group.Session.Timeout = *session
	config.Consumer.Group.InstanceId = *instance
	config.Consumer.Fetch.Default = int32(*fetchBytes)
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{map[string]sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(),
		"sticky": sarama.NewBalanceStrategySticky()}[*assignor]}
	config.Consumer.Return.Errors = true
	member, err := sarama.NewConsumerGroup(strings.Split(*broker, ","), *group, config)
	if err != nil {
		return err
	}
	w := &worker{events: newEvents(), commit: *commit, handleTime: *handle, poisonTime: *poison, fails: *fails}
	go func() {
		for err := range member.Errors() {
			w.events.emit(map[string]any{"event": "error", "error": err.Error()})
		}
	}()
	for ctx.Err() == nil {
		if err := member.Consume(ctx, strings.Split(*topics, ","), w); err != nil && !errors.Is(err, context.Canceled) {
			w.events.emit(map[string]any{"event": "error", "error": err.Error()})
			time.Sleep(time.Second)
		}
	}
	err = member.Close()
	w.events.emit(map[string]any{"event": "closed", "last": w.last})
	return err
}
