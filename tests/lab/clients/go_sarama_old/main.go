// billing is a consumer of the sarama version whose commits can overtake each other (IBM/sarama#2940).
//
// In: flags. Out: JSON lines on standard output; the commits go to the broker.
// Each claim has its own goroutine, which marks a message and commits the session: ordinary use of manual commits.
// A commit is built from all dirty partitions and waits for the connection; in this version nothing keeps the built
// requests in order while they wait, so an older one can be sent after a newer one and the stored offset goes back.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/IBM/sarama"
)

type handler struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (h *handler) event(fields map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.out.Encode(fields); err != nil {
		log.Fatal(err)
	}
}

func (h *handler) Setup(s sarama.ConsumerGroupSession) error {
	h.event(map[string]any{"event": "session", "member_id": s.MemberID(), "generation": s.GenerationID(), "claims": s.Claims()})
	return nil
}

func (h *handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *handler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	next := int64(-1)
	for message := range claim.Messages() {
		s.MarkMessage(message, "")
		next = message.Offset + 1
		s.Commit()
	}
	h.event(map[string]any{"event": "marked", "topic": claim.Topic(), "partition": claim.Partition(), "next_offset": next})
	return nil
}

func main() {
	broker := flag.String("broker", "", "host:port")
	clientID := flag.String("client-id", "", "client id")
	group := flag.String("group", "", "consumer group")
	topics := flag.String("topics", "", "topics, comma separated")
	flag.Parse()

	config := sarama.NewConfig()
	config.ClientID = *clientID
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	consumer, err := sarama.NewConsumerGroup([]string{*broker}, *group, config)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	h := &handler{out: json.NewEncoder(os.Stdout)}
	for ctx.Err() == nil {
		err := consumer.Consume(ctx, strings.Split(*topics, ","), h)
		if err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "consume:", err)
		}
	}
	if err := consumer.Close(); err != nil {
		log.Fatal(err)
	}
	h.event(map[string]any{"event": "closed"})
}
