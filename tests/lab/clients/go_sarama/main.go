// The lab's clients on a current sarama: topics, produce, consume, ledger, work.
//
// In: a command name and its flags. Out: JSON lines on standard output, one per fact that a scenario needs.
// SIGTERM ends a command in order (a consumer leaves its group).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/IBM/sarama"
)

var commands = map[string]func(context.Context, []string) error{
	"topics":  createTopics,
	"produce": produce,
	"consume": consume,
	"ledger":  runLedger,
	"work":    work,
}

type events struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newEvents() *events { return &events{out: json.NewEncoder(os.Stdout)} }

func (e *events) emit(fields map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.out.Encode(fields); err != nil {
		log.Fatal(err)
	}
}

// protocol is the Kafka version to speak, as 0.10.2.0.
func newConfig(clientID, protocol string) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.ClientID = clientID
	version, err := sarama.ParseKafkaVersion(protocol)
	config.Version = version
	return config, err
}

const newest = "3.6.0"

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go_sarama topics|produce|consume|ledger|work FLAGS")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		log.Fatal(os.Args[1], ": ", err)
	}
}
