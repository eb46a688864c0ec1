package main

import (
	"context"
	"errors"
	"flag"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// plainHandler marks every message; sarama's own offset manager commits on its timer and at the end.
type plainHandler struct {
	events *events
	read   *atomic.Int64
	count  int64
	enough context.CancelFunc
}

func (h plainHandler) Setup(s sarama.ConsumerGroupSession) error {
	h.events.emit(map[string]any{"event": "session", "member_id": s.MemberID(), "generation": s.GenerationID(), "claims": s.Claims()})
	return nil
}

func (h plainHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h plainHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		s.MarkMessage(message, "")
		if h.read.Add(1) == h.count {
			h.enough()
		}
	}
	return nil
}

// consume is a member without faults: automatic commits every -commit-every.
func consume(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("consume", flag.ExitOnError)
	broker := flags.String("broker", "", "host:port")
	clientID := flags.String("client-id", "", "client id")
	group := flags.String("group", "", "consumer group")
	topic := flags.String("topic", "", "topic")
	protocol := flags.String("protocol", newest, "Kafka version to speak")
	count := flags.Int64("count", 0, "records to read before the end, 0 for no limit")
	every := flags.Duration("commit-every", 500*time.Millisecond, "time between commits")
	_ = flags.Parse(args)

	config, err := newConfig(*clientID, *protocol)
	if err != nil {
		return err
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = *every
	config.Consumer.Group.Heartbeat.Interval = time.Second
	member, err := sarama.NewConsumerGroup([]string{*broker}, *group, config)
	if err != nil {
		return err
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	h := plainHandler{newEvents(), new(atomic.Int64), *count, enough}
	for ctx.Err() == nil {
		if err := member.Consume(ctx, []string{*topic}, h); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return member.Close()
}
