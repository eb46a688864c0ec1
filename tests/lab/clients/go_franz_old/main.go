// go_franz_old asks a broker with versions of requests that Apache Kafka 4 removed and that applications rarely send.
//
// In: -broker, -controller, -topic. Out: a JSON line for each answer. Each request is built with franz-go's own
// messages and sent in the version named; refusals of the broker are answers too.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func topics(name string) []kmsg.Request {
	created := kmsg.NewCreateTopicsRequestTopic()
	created.Topic, created.NumPartitions, created.ReplicationFactor = name, 1, 1
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = append(create.Topics, created)
	config := kmsg.NewDescribeConfigsRequestResource()
	config.ResourceType, config.ResourceName = kmsg.ConfigResourceTypeTopic, name
	configs := kmsg.NewPtrDescribeConfigsRequest()
	configs.Resources = append(configs.Resources, config)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TopicNames = []string{name}
	return []kmsg.Request{create, configs, remove}
}

func replicas(topic string) []kmsg.Request {
	epochPartition := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	epochTopic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	epochTopic.Topic, epochTopic.Partitions = topic, append(epochTopic.Partitions, epochPartition)
	epoch := kmsg.NewPtrOffsetForLeaderEpochRequest()
	epoch.Topics = append(epoch.Topics, epochTopic)
	listed := kmsg.NewListOffsetsRequestTopicPartition()
	listed.Timestamp, listed.MaxNumOffsets = -1, 3
	listedTopic := kmsg.NewListOffsetsRequestTopic()
	listedTopic.Topic, listedTopic.Partitions = topic, append(listedTopic.Partitions, listed)
	list := kmsg.NewPtrListOffsetsRequest()
	list.Topics = append(list.Topics, listedTopic)
	markerTopic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	markerTopic.Topic, markerTopic.Partitions = topic, []int32{0}
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID, marker.Topics = 4000, append(marker.Topics, markerTopic)
	markers := kmsg.NewPtrWriteTxnMarkersRequest()
	markers.Markers = append(markers.Markers, marker)
	moved := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
	moved.Topic, moved.Partitions = topic, []int32{0}
	dir := kmsg.NewAlterReplicaLogDirsRequestDir()
	dir.Dir, dir.Topics = "/nowhere", append(dir.Topics, moved)
	move := kmsg.NewPtrAlterReplicaLogDirsRequest()
	move.Dirs = append(move.Dirs, dir)
	return []kmsg.Request{epoch, list, markers, move, kmsg.NewPtrDescribeLogDirsRequest()}
}

func offsets(topic string) []kmsg.Request {
	partition := kmsg.NewOffsetCommitRequestTopicPartition()
	partition.Offset = 3
	committed := kmsg.NewOffsetCommitRequestTopic()
	committed.Topic, committed.Partitions = topic, append(committed.Partitions, partition)
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Topics = "offsets-of-old", append(commit.Topics, committed)
	fetched := kmsg.NewOffsetFetchRequestTopic()
	fetched.Topic, fetched.Partitions = topic, []int32{0}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Group, fetch.Topics = "offsets-of-old", append(fetch.Topics, fetched)
	return []kmsg.Request{commit, fetch}
}

func rights() []kmsg.Request {
	name := "orders"
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.Principal = kmsg.ACLResourceTypeTopic, name, "User:billing"
	creation.Host, creation.Operation, creation.PermissionType = "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
	create := kmsg.NewPtrCreateACLsRequest()
	create.Creations = append(create.Creations, creation)
	describe := kmsg.NewPtrDescribeACLsRequest()
	describe.ResourceType, describe.Operation, describe.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	filter := kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName = kmsg.ACLResourceTypeTopic, &name
	filter.Operation, filter.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	remove := kmsg.NewPtrDeleteACLsRequest()
	remove.Filters = append(remove.Filters, filter)
	token := kmsg.NewPtrCreateDelegationTokenRequest()
	token.MaxLifetimeMillis = 60000
	renew := kmsg.NewPtrRenewDelegationTokenRequest()
	renew.HMAC = []byte("no token")
	expire := kmsg.NewPtrExpireDelegationTokenRequest()
	expire.HMAC = []byte("no token")
	return []kmsg.Request{create, describe, remove, token, renew, expire, kmsg.NewPtrDescribeDelegationTokenRequest()}
}

func isr() []kmsg.Request {
	partition := kmsg.NewAlterPartitionRequestTopicPartition()
	partition.NewISR = []int32{1}
	topic := kmsg.NewAlterPartitionRequestTopic()
	topic.Topic, topic.Partitions = "orders", append(topic.Partitions, partition)
	alter := kmsg.NewPtrAlterPartitionRequest()
	alter.BrokerID, alter.Topics = 1, append(alter.Topics, topic)
	return []kmsg.Request{alter}
}

// The newest version of each key that Apache Kafka 4 does not know any more.
var removed = map[int16]int16{2: 0, 8: 1, 9: 0, 19: 1, 20: 0, 23: 1, 27: 0, 29: 0, 30: 0, 31: 0, 32: 0, 34: 0, 35: 0, 38: 0, 39: 0, 40: 0, 41: 0, 56: 1}

// ask sends all requests that were removed up to a version, in that version, over one connection.
func ask(server string, version int16, requests []kmsg.Request) error {
	versions := kversion.Stable()
	for key := range removed {
		versions.SetMaxKeyVersion(key, version)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(server), kgo.ClientID("old-requests"), kgo.MaxVersions(versions))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, done := context.WithTimeout(context.Background(), 20*time.Second)
	defer done()
	out := json.NewEncoder(os.Stdout)
	for _, request := range requests {
		if version > removed[request.Key()] {
			continue
		}
		answer, err := client.SeedBrokers()[0].Request(ctx, request)
		if err != nil {
			return err
		}
		fields := map[string]any{"event": "answer", "key": request.Key(), "name": kmsg.NameForKey(request.Key()), "version": answer.GetVersion()}
		if err := out.Encode(fields); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	broker := flag.String("broker", "", "host:port")
	controller := flag.String("controller", "", "host:port")
	topic := flag.String("topic", "", "a topic that is there")
	flag.Parse()
	for version, name := range []string{"made-first", "made-second"} {
		requests := append(append(append(topics(name), replicas(*topic)...), offsets(*topic)...), rights()...)
		if err := ask(*broker, int16(version), requests); err != nil {
			log.Fatal(err)
		}
		if err := ask(*controller, int16(version), isr()); err != nil {
			log.Fatal(err)
		}
	}
}
