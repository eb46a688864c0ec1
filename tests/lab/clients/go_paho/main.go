// go_paho drives one Eclipse Paho connection step by step: paho.mqtt.golang for MQTT 3.1 and 3.1.1, paho.golang for 5.
//
// In: a plan (JSON, made by clients/mqtt.py) as the only word. Out: JSON lines on standard output. SIGTERM ends a stay.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const limit = 30 * time.Second

type will struct {
	Topic   string `json:"topic"`
	Payload string `json:"payload"`
	QoS     byte   `json:"qos"`
	Retain  bool   `json:"retain"`
}

type filter struct {
	Name string `json:"name"`
	QoS  byte   `json:"qos"`
}

type step struct {
	Do         string          `json:"do"`
	Topic      string          `json:"topic"`
	Payload    string          `json:"payload"`
	Size       int             `json:"size"`
	QoS        byte            `json:"qos"`
	Retain     bool            `json:"retain"`
	Count      int             `json:"count"`
	PauseS     float64         `json:"pause_s"`
	Seconds    float64         `json:"s"`
	Filters    []filter        `json:"filters"`
	Names      []string        `json:"names"`
	Code       byte            `json:"code"`
	Properties json.RawMessage `json:"properties"`
}

type plan struct {
	ClientID       string          `json:"client_id"`
	Host           string          `json:"host"`
	Port           int             `json:"port"`
	Transport      string          `json:"transport"`
	Version        int             `json:"version"`
	KeepAlive      uint16          `json:"keep_alive"`
	Clean          *bool           `json:"clean"`
	User           string          `json:"user"`
	Password       string          `json:"password"`
	ManualAck      bool            `json:"manual_ack"`
	Will           *will           `json:"will"`
	Properties     json.RawMessage `json:"properties"`
	WillProperties json.RawMessage `json:"will_properties"`
	Steps          []step          `json:"steps"`
}

// connection is what both libraries do.
type connection interface {
	subscribe(s step) []int
	unsubscribe(s step) []int
	publish(s step, payload []byte) int
	disconnect(s step)
}

var (
	received atomic.Int64
	printing sync.Mutex
	lost     = make(chan struct{}, 1)
)

func emit(event string, fields map[string]any) {
	fields["event"], fields["at"] = event, float64(time.Now().UnixMicro())/1e6
	printing.Lock()
	defer printing.Unlock()
	line, _ := json.Marshal(fields)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (p plan) clean() bool { return p.Clean == nil || *p.Clean }

func (s step) content() []byte {
	if s.Size > 0 {
		return make([]byte, s.Size)
	}
	return []byte(s.Payload)
}

func noteDelivery(topic string, qos byte, retain bool, mid uint16, size int) {
	received.Add(1)
	emit("received", map[string]any{"topic": topic, "qos": qos, "retain": retain, "mid": mid, "size": size})
}

func names(filters []filter) []string {
	found := []string{}
	for _, one := range filters {
		found = append(found, one.Name)
	}
	return found
}

func pause(seconds float64) { time.Sleep(time.Duration(seconds * float64(time.Second))) }

func publishAll(c connection, s step) {
	content := s.content()
	for range max(s.Count, 1) {
		code := c.publish(s, content)
		told := map[string]any{"topic": s.Topic, "qos": s.QoS, "retain": s.Retain, "size": len(content), "whole": true}
		if code >= 0 {
			told["code"] = code
		}
		emit("published", told)
		pause(s.PauseS)
	}
}

func await(count int) {
	for until := time.Now().Add(limit); received.Load() < int64(count); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			check(fmt.Errorf("%d of %d deliveries", received.Load(), count))
		}
	}
}

func take(c connection, s step, stop chan os.Signal) {
	switch s.Do {
	case "subscribe":
		emit("subscribed", map[string]any{"filters": names(s.Filters), "codes": c.subscribe(s)})
	case "unsubscribe":
		codes := c.unsubscribe(s)
		emit("unsubscribed", map[string]any{"filters": s.Names, "codes": codes})
	case "publish":
		publishAll(c, s)
	case "receive":
		await(s.Count)
	case "idle":
		pause(s.Seconds)
	case "stay":
		select {
		case <-stop:
		case <-lost:
		}
	case "disconnect":
		c.disconnect(s)
	default:
		check(fmt.Errorf("unknown step %q", s.Do))
	}
}

func main() {
	var p plan
	check(json.Unmarshal([]byte(os.Args[1]), &p))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var c connection
	if p.Version == 5 {
		c = connectFive(p)
	} else {
		c = connectThree(p)
	}
	emit("did", map[string]any{"step": "connect"})
	for _, s := range p.Steps {
		take(c, s, stop)
		emit("did", map[string]any{"step": s.Do})
	}
}
