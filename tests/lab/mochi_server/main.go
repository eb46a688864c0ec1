// mochi_server runs the Mochi MQTT broker for the lab and logs every packet that it reads and sends.
//
// In: flags. Out: a log of JSON lines, one per packet or end of a connection; "running" on standard output when clients
// may come. SIGTERM ends it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

var kinds = map[byte]string{
	packets.Connect: "CONNECT", packets.Connack: "CONNACK", packets.Publish: "PUBLISH", packets.Puback: "PUBACK",
	packets.Pubrec: "PUBREC", packets.Pubrel: "PUBREL", packets.Pubcomp: "PUBCOMP", packets.Subscribe: "SUBSCRIBE",
	packets.Suback: "SUBACK", packets.Unsubscribe: "UNSUBSCRIBE", packets.Unsuback: "UNSUBACK",
	packets.Pingreq: "PINGREQ", packets.Pingresp: "PINGRESP", packets.Disconnect: "DISCONNECT", packets.Auth: "AUTH",
}

type fields = map[string]any

// record is what the lab's LogEntry holds.
type record struct {
	LoggedS   int64  `json:"logged_s"`
	Direction string `json:"direction"`
	Kind      string `json:"kind"`
	ClientID  string `json:"client_id"`
	Client    string `json:"client"`
	Fields    fields `json:"fields"`
}

type packetLog struct {
	mqtt.HookBase
	writing sync.Mutex
	out     *json.Encoder
}

func (l *packetLog) ID() string { return "packet-log" }

func (l *packetLog) Provides(b byte) bool {
	return b == mqtt.OnPacketRead || b == mqtt.OnPacketSent || b == mqtt.OnDisconnect
}

func (l *packetLog) write(clientID string, cl *mqtt.Client, direction, kind string, told fields) {
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.out.Encode(record{time.Now().Unix(), direction, kind, clientID, cl.Net.Remote, told})
}

func (l *packetLog) OnPacketRead(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	clientID := cl.ID
	if pk.FixedHeader.Type == packets.Connect {
		clientID = pk.Connect.ClientIdentifier // the broker notes it a little later
	}
	l.write(clientID, cl, "received", kinds[pk.FixedHeader.Type], describe(pk))
	return pk, nil
}

func (l *packetLog) OnPacketSent(cl *mqtt.Client, pk packets.Packet, _ []byte) {
	l.write(cl.ID, cl, "sent", kinds[pk.FixedHeader.Type], describe(pk))
}

func (l *packetLog) OnDisconnect(cl *mqtt.Client, err error, _ bool) {
	kind, told := "disconnected", fields{}
	if err != nil {
		told["reason"] = err.Error()
	}
	if errors.Is(err, packets.ErrSessionTakenOver) {
		kind = "taken over"
	}
	l.write(cl.ID, cl, "event", kind, told)
}

// challenger authenticates who names a method in CONNECT (MQTT 5, 4.12): it sends a challenge by AUTH and takes the
// client's AUTH with the challenge backwards. Others come in as they are.
type challenger struct {
	mqtt.HookBase
}

func (c *challenger) ID() string { return "challenger" }

func (c *challenger) Provides(b byte) bool {
	return b == mqtt.OnConnectAuthenticate || b == mqtt.OnACLCheck
}

func (c *challenger) OnACLCheck(*mqtt.Client, string, bool) bool { return true }

func (c *challenger) OnConnectAuthenticate(cl *mqtt.Client, pk packets.Packet) bool {
	method := pk.Properties.AuthenticationMethod
	if method == "" {
		return true
	}
	challenge := []byte(cl.ID + "-challenge")
	if cl.WritePacket(authPacket(method, challenge)) != nil {
		return false
	}
	head := new(packets.FixedHeader)
	if cl.ReadFixedHeader(head) != nil {
		return false
	}
	answer, err := cl.ReadPacket(head)
	slices.Reverse(challenge)
	return err == nil && head.Type == packets.Auth && bytes.Equal(answer.Properties.AuthenticationData, challenge)
}

func authPacket(method string, data []byte) packets.Packet {
	return packets.Packet{
		ProtocolVersion: 5,
		FixedHeader:     packets.FixedHeader{Type: packets.Auth},
		ReasonCode:      packets.CodeContinueAuthentication.Code,
		Properties:      packets.Properties{AuthenticationMethod: method, AuthenticationData: data},
	}
}

// describe returns what a packet says, by type.
func describe(pk packets.Packet) fields {
	switch pk.FixedHeader.Type {
	case packets.Connect:
		return fields{"level": pk.ProtocolVersion, "clean": pk.Connect.Clean, "keep_alive_s": pk.Connect.Keepalive}
	case packets.Connack:
		return fields{"code": pk.ReasonCode, "session_present": pk.SessionPresent}
	case packets.Publish:
		told := fields{
			"mid": pk.PacketID, "qos": pk.FixedHeader.Qos, "dup": pk.FixedHeader.Dup, "retain": pk.FixedHeader.Retain,
			"topic": pk.TopicName, "alias": nil, "size": len(pk.Payload),
		}
		if pk.Properties.TopicAliasFlag {
			told["alias"] = pk.Properties.TopicAlias
		}
		return told
	case packets.Puback, packets.Pubrec, packets.Pubrel, packets.Pubcomp:
		return fields{"mid": pk.PacketID, "code": pk.ReasonCode}
	case packets.Subscribe, packets.Unsubscribe:
		names := []string{}
		for _, one := range pk.Filters {
			names = append(names, one.Filter)
		}
		return fields{"mid": pk.PacketID, "filters": names}
	case packets.Suback, packets.Unsuback:
		codes := []int{}
		for _, one := range pk.ReasonCodes {
			codes = append(codes, int(one))
		}
		return fields{"mid": pk.PacketID, "codes": codes}
	case packets.Disconnect, packets.Auth:
		return fields{"code": pk.ReasonCode}
	}
	return fields{}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	listen := flag.String("listen", ":1883", "address")
	path := flag.String("log", "", "file")
	inFlight := flag.Uint("receive-maximum", 8, "messages that a client may have in flight")
	aliases := flag.Uint("topic-alias-maximum", 5, "aliases that a client may use")
	challenge := flag.Bool("challenge", false, "authenticate by AUTH who names a method")
	flag.Parse()
	file, err := os.Create(*path)
	check(err)
	capabilities := mqtt.NewDefaultServerCapabilities()
	capabilities.ReceiveMaximum, capabilities.TopicAliasMaximum = uint16(*inFlight), uint16(*aliases)
	server := mqtt.New(&mqtt.Options{Capabilities: capabilities, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if *challenge {
		check(server.AddHook(new(challenger), nil))
	} else {
		check(server.AddHook(new(auth.AllowHook), nil))
	}
	check(server.AddHook(&packetLog{out: json.NewEncoder(file)}, nil))
	check(server.AddListener(listeners.NewTCP(listeners.Config{ID: "lab", Address: *listen})))
	check(server.Serve())
	fmt.Println(`{"event":"running"}`)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	check(server.Close())
}
