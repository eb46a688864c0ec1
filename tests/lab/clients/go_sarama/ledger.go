package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// position is what the ledger has booked of one partition, and the session that handed out the message.
type position struct {
	next       int64
	memberID   string
	generation int32
}

// ledger books payments and keeps its own offset store, which it writes to the group coordinator on a timer.
//
// The fault: a payment under review is booked by a worker that takes longer than a claim may last. When the claim is
// gone its entry is removed from the store, then the worker ends and puts the entry back. From now on every commit
// carries an old offset of a partition that another member owns.
type ledger struct {
	committing sync.Mutex // held while a commit is on its way, so that none crosses into the next generation
	mu         sync.Mutex
	store      map[int32]position
	session    sarama.ConsumerGroupSession
	workers    sync.WaitGroup

	client     sarama.Client
	group      string
	topic      string
	ownSession bool // commit with the session of the message, not with the current one
	review     time.Duration
	events     *events
}

func (l *ledger) Setup(s sarama.ConsumerGroupSession) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	l.events.emit(map[string]any{"event": "session", "member_id": s.MemberID(), "generation": s.GenerationID(), "claims": s.Claims()})
	return nil
}

func (l *ledger) Cleanup(s sarama.ConsumerGroupSession) error {
	l.committing.Lock()
	defer l.committing.Unlock()
	l.commitAll() // what is booked so far, while this generation still counts
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = nil
	for _, partition := range s.Claims()[l.topic] {
		delete(l.store, partition)
	}
	return nil
}

func (l *ledger) book(s sarama.ConsumerGroupSession, m *sarama.ConsumerMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store[m.Partition] = position{m.Offset + 1, s.MemberID(), s.GenerationID()}
}

func (l *ledger) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		if strings.HasPrefix(string(message.Value), "review") {
			l.workers.Add(1)
			go func() {
				defer l.workers.Done()
				time.Sleep(l.review)
				l.book(s, message)
				l.events.emit(map[string]any{"event": "late", "partition": message.Partition, "next_offset": message.Offset + 1,
					"claim_generation": s.GenerationID()})
			}()
			continue
		}
		l.book(s, message)
	}
	return nil
}

// requests gives one commit for each session that the store's entries are to be committed with.
func (l *ledger) requests() []*sarama.OffsetCommitRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil || len(l.store) == 0 {
		return nil
	}
	bySession := map[string]*sarama.OffsetCommitRequest{}
	var requests []*sarama.OffsetCommitRequest
	for partition, p := range l.store {
		if !l.ownSession {
			p.memberID, p.generation = l.session.MemberID(), l.session.GenerationID()
		}
		key := fmt.Sprint(p.memberID, "/", p.generation)
		request := bySession[key]
		if request == nil {
			request = &sarama.OffsetCommitRequest{Version: 7, ConsumerGroup: l.group, ConsumerID: p.memberID, ConsumerGroupGeneration: p.generation}
			bySession[key] = request
			requests = append(requests, request)
		}
		request.AddBlockWithLeaderEpoch(l.topic, partition, p.next, 0, 0, "")
	}
	return requests
}

func (l *ledger) commitAll() {
	for _, request := range l.requests() {
		coordinator, err := l.client.Coordinator(l.group)
		if err != nil {
			fmt.Fprintln(os.Stderr, "coordinator:", err)
			return
		}
		response, err := coordinator.CommitOffset(request)
		if err != nil {
			fmt.Fprintln(os.Stderr, "commit:", err)
			return
		}
		for partition, code := range response.Errors[l.topic] {
			if code != sarama.ErrNoError {
				l.events.emit(map[string]any{"event": "refused", "partition": partition, "error_code": int16(code), "generation": request.ConsumerGroupGeneration})
			}
		}
	}
}

func (l *ledger) commitEvery(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(every):
			l.committing.Lock()
			l.commitAll()
			l.committing.Unlock()
		}
	}
}

// runLedger is a group member with its own offset store; -own-session commits each entry with the session it came
// from, which the broker refuses once that generation is over.
func runLedger(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ledger", flag.ExitOnError)
	broker := flags.String("broker", "", "host:port")
	clientID := flags.String("client-id", "", "client id")
	group := flags.String("group", "", "consumer group")
	topic := flags.String("topic", "", "topic")
	every := flags.Duration("commit-every", 400*time.Millisecond, "time between commits")
	review := flags.Duration("review", 4*time.Second, "time that a payment under review takes")
	ownSession := flags.Bool("own-session", false, "commit with the session that handed out the message")
	_ = flags.Parse(args)

	config, err := newConfig(*clientID, newest)
	if err != nil {
		return err
	}
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	client, err := sarama.NewClient([]string{*broker}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	member, err := sarama.NewConsumerGroupFromClient(*group, client)
	if err != nil {
		return err
	}
	l := &ledger{store: map[int32]position{}, client: client, group: *group, topic: *topic, ownSession: *ownSession, review: *review, events: newEvents()}
	go l.commitEvery(ctx, *every)
	for ctx.Err() == nil {
		if err := member.Consume(ctx, []string{*topic}, l); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return member.Close()
}
