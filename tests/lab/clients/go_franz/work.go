package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// names gives partitions as topic-number.
func names(partitions map[string][]int32) []string {
	found := []string{}
	for topic, numbers := range partitions {
		for _, number := range numbers {
			found = append(found, fmt.Sprint(topic, "-", number))
		}
	}
	return found
}

// work is a group member of the incidents: it handles records one by one and commits as -commit says.
func work(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("work", flag.ExitOnError)
	broker := flags.String("broker", "", "host:port")
	clientID := flags.String("client-id", "", "client id")
	group := flags.String("group", "", "consumer group")
	topics := flags.String("topics", "", "topics, comma separated")
	commit := flags.String("commit", "auto", "auto, sync, record, last or never")
	reset := flags.String("reset", "earliest", "earliest or latest")
	assignor := flags.String("assignor", "cooperative-sticky", "range, roundrobin, sticky or cooperative-sticky")
	instance := flags.String("instance", "", "group.instance.id")
	session := flags.Duration("session", 10*time.Second, "session timeout")
	handle := flags.Duration("handle", 0, "time that each record takes")
	poison := flags.Duration("poison", 0, "time that a record takes that begins with poison")
	fetchBytes := flags.Int("fetch-bytes", 1<<20, "bytes of a partition in an answer")
	_ = flags.Parse(args)

	start := kgo.NewOffset().AtStart()
	if *reset == "latest" {
		start = kgo.NewOffset().AtEnd()
	}
	last := map[string]int64{}
	gone := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			emit(map[string]any{"event": event, "partitions": names(partitions)})
		}
	}
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(*broker, ",")...), kgo.ClientID(*clientID), kgo.ConsumerGroup(*group),
		kgo.ConsumeTopics(strings.Split(*topics, ",")...), kgo.ConsumeResetOffset(start), kgo.HeartbeatInterval(time.Second),
		kgo.SessionTimeout(*session), kgo.Balancers(balancers[*assignor]), kgo.AutoCommitInterval(time.Second),
		kgo.FetchMaxPartitionBytes(int32(*fetchBytes)), kgo.OnPartitionsRevoked(gone("revoked")), kgo.OnPartitionsLost(gone("lost")),
		kgo.OnPartitionsAssigned(func(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
			member, generation := client.GroupMetadata()
			emit(map[string]any{"event": "session", "member": member, "generation": generation, "partitions": names(partitions)})
		})}
	if *instance != "" {
		options = append(options, kgo.InstanceID(*instance))
	}
	if *commit != "auto" {
		options = append(options, kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 50)
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil {
				emit(map[string]any{"event": "error", "error": err.Error(), "partition": fmt.Sprint(topic, "-", partition)})
			}
		})
		records := fetches.Records()
		for _, record := range records {
			name := fmt.Sprint(record.Topic, "-", record.Partition)
			if _, known := last[name]; !known {
				emit(map[string]any{"event": "reading", "partition": name, "offset": record.Offset})
			}
			if *poison > 0 && strings.HasPrefix(string(record.Value), "poison") {
				emit(map[string]any{"event": "poison", "partition": name, "offset": record.Offset})
				time.Sleep(*poison)
			}
			time.Sleep(*handle)
			last[name] = record.Offset
			if *commit == "record" {
				committed(client.CommitRecords(ctx, record))
			}
		}
		if *commit == "sync" && len(records) > 0 {
			committed(client.CommitRecords(ctx, records...))
		}
		if *commit == "last" && len(records) > 0 {
			offsets := map[string]map[int32]kgo.EpochOffset{}
			for _, record := range records {
				if offsets[record.Topic] == nil {
					offsets[record.Topic] = map[int32]kgo.EpochOffset{}
				}
				offsets[record.Topic][record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset}
			}
			client.CommitOffsetsSync(ctx, offsets, nil)
		}
	}
	closing, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	if *commit == "auto" {
		committed(client.CommitUncommittedOffsets(closing))
	}
	client.CloseAllowingRebalance()
	emit(map[string]any{"event": "closed", "last": last})
	return nil
}

func committed(err error) {
	if err != nil {
		emit(map[string]any{"event": "error", "error": "commit: " + err.Error()})
	}
}
