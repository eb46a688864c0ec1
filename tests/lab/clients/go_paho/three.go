package main

import (
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// three is a connection of paho.mqtt.golang: MQTT 3.1 and 3.1.1, over TCP or WebSocket.
type three struct{ client mqtt.Client }

func connectThree(p plan) connection {
	scheme := map[string]string{"websockets": "ws"}[p.Transport]
	if scheme == "" {
		scheme = "tcp"
	}
	options := mqtt.NewClientOptions().AddBroker(fmt.Sprintf("%s://%s:%d/mqtt", scheme, p.Host, p.Port))
	options.SetClientID(p.ClientID).SetProtocolVersion(uint(p.Version)).SetCleanSession(p.clean())
	options.SetKeepAlive(time.Duration(p.KeepAlive) * time.Second).SetAutoReconnect(false)
	options.SetUsername(p.User).SetPassword(p.Password).SetAutoAckDisabled(p.ManualAck)
	if p.Will != nil {
		options.SetWill(p.Will.Topic, p.Will.Payload, p.Will.QoS, p.Will.Retain)
	}
	options.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		noteDelivery(m.Topic(), m.Qos(), m.Retained(), m.MessageID(), len(m.Payload()))
	})
	options.SetConnectionLostHandler(func(mqtt.Client, error) {
		emit("disconnected", map[string]any{})
		lost <- struct{}{}
	})
	client := mqtt.NewClient(options)
	token := client.Connect().(*mqtt.ConnectToken)
	token.Wait()
	emit("connected", map[string]any{"code": token.ReturnCode(), "session_present": token.SessionPresent()})
	check(token.Error())
	return three{client}
}

func (c three) subscribe(s step) []int {
	wanted := map[string]byte{}
	for _, one := range s.Filters {
		wanted[one.Name] = one.QoS
	}
	token := c.client.SubscribeMultiple(wanted, nil).(*mqtt.SubscribeToken)
	token.Wait()
	codes := []int{}
	for _, one := range s.Filters {
		codes = append(codes, int(token.Result()[one.Name]))
	}
	return codes
}

func (c three) unsubscribe(s step) []int {
	token := c.client.Unsubscribe(s.Names...)
	token.Wait()
	check(token.Error())
	return []int{}
}

func (c three) publish(s step, payload []byte) int {
	token := c.client.Publish(s.Topic, s.QoS, s.Retain, payload)
	token.Wait()
	check(token.Error())
	return -1
}

func (c three) disconnect(step) { c.client.Disconnect(250) }
