package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// createTopics makes the topics NAME:PARTITIONS named on the command line.
func createTopics(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("topics", flag.ExitOnError)
	broker := flags.String("broker", "", "host:port")
	clientID := flags.String("client-id", "topic-admin", "client id")
	_ = flags.Parse(args)
	config, err := newConfig(*clientID, newest)
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdmin([]string{*broker}, config)
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, wanted := range flags.Args() {
		name, count, ok := strings.Cut(wanted, ":")
		partitions, err := strconv.Atoi(count)
		if !ok || err != nil {
			return fmt.Errorf("not NAME:PARTITIONS: %q", wanted)
		}
		detail := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}
		if err := admin.CreateTopic(name, detail, false); err != nil {
			return err
		}
	}
	return nil
}

// partitionList reads "0-3,7" as 0 1 2 3 7.
func partitionList(text string) ([]int32, error) {
	var partitions []int32
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			return nil, err
		}
		for p := from; p <= to; p++ {
			partitions = append(partitions, int32(p))
		}
	}
	return partitions, nil
}

// produce sends rounds of messages, a pause between rounds, until told to stop or until -rounds are sent (0: no limit).
// A round is -burst messages to each of the next -width partitions of the list (0: to all of them).
func produce(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("produce", flag.ExitOnError)
	broker := flags.String("broker", "", "host:port")
	clientID := flags.String("client-id", "orders-api", "client id")
	topic := flags.String("topic", "", "topic")
	list := flags.String("partitions", "0", "partitions, as 0-3,7")
	rounds := flags.Int("rounds", 0, "number of rounds, 0 for no limit")
	width := flags.Int("width", 0, "partitions per round, 0 for all")
	burst := flags.Int("burst", 1, "messages per partition and round")
	pause := flags.Duration("pause", 100*time.Millisecond, "pause between rounds")
	protocol := flags.String("protocol", newest, "Kafka version to speak")
	codec := flags.String("codec", "none", "compression codec")
	value := flags.String("value", "paid", "record value; the record number is added")
	_ = flags.Parse(args)
	partitions, err := partitionList(*list)
	if err != nil {
		return err
	}

	if *width == 0 {
		*width = len(partitions)
	}

	config, err := newConfig(*clientID, *protocol)
	if err != nil {
		return err
	}
	if err := config.Producer.Compression.UnmarshalText([]byte(*codec)); err != nil {
		return err
	}
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer([]string{*broker}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	sent := 0
	for round := 0; (*rounds == 0 || round < *rounds) && ctx.Err() == nil; round++ {
		var messages []*sarama.ProducerMessage
		for i := 0; i < *width**burst; i++ {
			partition := partitions[(round**width+i%*width)%len(partitions)]
			text := fmt.Sprintf("%s %d", *value, round)
			messages = append(messages, &sarama.ProducerMessage{Topic: *topic, Partition: partition, Value: sarama.StringEncoder(text)})
		}
		if err := producer.SendMessages(messages); err != nil {
			return err
		}
		sent += len(messages)
		select {
		case <-ctx.Done():
		case <-time.After(*pause):
		}
	}
	newEvents().emit(map[string]any{"event": "produced", "topic": *topic, "records": sent})
	return nil
}
