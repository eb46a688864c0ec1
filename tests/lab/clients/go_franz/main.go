// A franz-go client of the lab: produce or consume; work (work.go) is a group member of the incidents.
//
// In: flags. Out: JSON lines on standard output. SIGTERM ends it in order (a consumer leaves its group).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func emit(fields map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(fields); err != nil {
		log.Fatal(err)
	}
}

func consume(ctx context.Context, group, topic string, common ...kgo.Opt) error {
	report := func(_ context.Context, client *kgo.Client, assigned map[string][]int32) {
		member, generation := client.GroupMetadata()
		emit(map[string]any{"event": "session", "member_id": member, "generation": generation, "assigned": assigned})
	}
	client, err := kgo.NewClient(append(common, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(500*time.Millisecond),
		kgo.HeartbeatInterval(time.Second), kgo.OnPartitionsAssigned(report))...)
	if err != nil {
		return err
	}
	records := 0
	for ctx.Err() == nil {
		records += client.PollFetches(ctx).NumRecords()
	}
	closing, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	if err := client.CommitUncommittedOffsets(closing); err != nil {
		return err
	}
	client.Close()
	emit(map[string]any{"event": "closed", "records": records})
	return nil
}

func produce(ctx context.Context, topic, list, clientID string, pause time.Duration, common ...kgo.Opt) error {
	var clients []*kgo.Client
	for _, codec := range strings.Split(list, ",") {
		options := append([]kgo.Opt{}, common...)
		client, err := kgo.NewClient(append(options, kgo.ClientID(clientID+"-"+codec), kgo.ProducerBatchCompression(codecs[codec]),
			kgo.ProducerLinger(20*time.Millisecond))...)
		if err != nil {
			return err
		}
		defer client.Close()
		clients = append(clients, client)
	}
	for ctx.Err() == nil {
		for _, client := range clients {
			var records []*kgo.Record
			for i := 0; i < 12; i++ {
				value := fmt.Sprintf("login login login login %d", i)
				records = append(records, &kgo.Record{Topic: topic, Key: []byte(fmt.Sprint("user-", i)), Value: []byte(value)})
			}
			if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "work" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		if err := work(ctx, os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	broker := flag.String("broker", "", "host:port")
	clientID := flag.String("client-id", "", "client id")
	topic := flag.String("topic", "", "topic")
	group := flag.String("group", "", "consumer group; without it the client produces")
	list := flag.String("codecs", "none", "codecs to produce with, comma separated")
	pause := flag.Duration("pause", 300*time.Millisecond, "pause between rounds of records")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var err error
	if *group != "" {
		err = consume(ctx, *group, *topic, kgo.SeedBrokers(*broker), kgo.ClientID(*clientID))
	} else {
		err = produce(ctx, *topic, *list, *clientID, *pause, kgo.SeedBrokers(*broker))
	}
	if err != nil {
		log.Fatal(err)
	}
}
