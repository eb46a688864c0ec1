package main

import (
	"context"
	"encoding/json"
	"net"
	"strconv"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
)

// five is a connection of paho.golang: MQTT 5 over TCP. Properties of the plan are in the library's names.
type five struct{ client *paho.Client }

func read[T any](raw json.RawMessage) *T {
	if len(raw) == 0 {
		return nil
	}
	made := new(T)
	check(json.Unmarshal(raw, made))
	return made
}

func connectFive(p plan) connection {
	conn, err := net.Dial("tcp", net.JoinHostPort(p.Host, strconv.Itoa(p.Port)))
	check(err)
	client := paho.NewClient(paho.ClientConfig{
		Conn:                       packets.NewThreadSafeConn(conn),
		EnableManualAcknowledgment: p.ManualAck,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) {
			m := r.Packet
			noteDelivery(m.Topic, m.QoS, m.Retain, m.PacketID, len(m.Payload))
			return true, nil
		}},
		OnServerDisconnect: func(d *paho.Disconnect) {
			emit("disconnected", map[string]any{"by_server": true, "code": d.ReasonCode})
			lost <- struct{}{}
		},
	})
	asked := &paho.Connect{
		ClientID: p.ClientID, KeepAlive: p.KeepAlive, CleanStart: p.clean(), Username: p.User, Password: []byte(p.Password),
		UsernameFlag: p.User != "", PasswordFlag: p.User != "",
		Properties: read[paho.ConnectProperties](p.Properties), WillProperties: read[paho.WillProperties](p.WillProperties),
	}
	if p.Will != nil {
		asked.WillMessage = &paho.WillMessage{
			Topic: p.Will.Topic, Payload: []byte(p.Will.Payload), QoS: p.Will.QoS, Retain: p.Will.Retain,
		}
	}
	answer, err := client.Connect(context.Background(), asked)
	if answer != nil {
		emit("connected", map[string]any{"code": answer.ReasonCode, "session_present": answer.SessionPresent})
	}
	check(err)
	return five{client}
}

func codes(reasons []byte) []int {
	found := []int{}
	for _, one := range reasons {
		found = append(found, int(one))
	}
	return found
}

func (c five) subscribe(s step) []int {
	asked := &paho.Subscribe{Properties: read[paho.SubscribeProperties](s.Properties)}
	for _, one := range s.Filters {
		asked.Subscriptions = append(asked.Subscriptions, paho.SubscribeOptions{Topic: one.Name, QoS: one.QoS})
	}
	answer, err := c.client.Subscribe(context.Background(), asked)
	if answer == nil {
		check(err)
	}
	return codes(answer.Reasons)
}

func (c five) unsubscribe(s step) []int {
	answer, err := c.client.Unsubscribe(context.Background(), &paho.Unsubscribe{Topics: s.Names})
	if answer == nil {
		check(err)
	}
	return codes(answer.Reasons)
}

func (c five) publish(s step, payload []byte) int {
	answer, err := c.client.Publish(context.Background(), &paho.Publish{
		Topic: s.Topic, QoS: s.QoS, Retain: s.Retain, Payload: payload,
		Properties: read[paho.PublishProperties](s.Properties),
	})
	if answer == nil {
		check(err)
	}
	if s.QoS == 0 {
		return -1
	}
	return int(answer.ReasonCode)
}

func (c five) disconnect(s step) {
	check(c.client.Disconnect(&paho.Disconnect{ReasonCode: s.Code, Properties: read[paho.DisconnectProperties](s.Properties)}))
}
