package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Input is the load of a deployment and the choices of its owner.
type Input struct {
	Changes       float64 `json:"changes"`       // a second, on average
	Peak          float64 `json:"peak"`          // the busiest hour divided by the average
	Events        float64 `json:"events"`        // a change
	EventBytes    int     `json:"eventBytes"`    // of a stored event
	StateBytes    int     `json:"stateBytes"`    // of a stored aggregate
	Aggregates    int     `json:"aggregates"`    // 0: unknown
	Subscriptions int     `json:"subscriptions"` // of the topic
	Regions       int     `json:"regions"`       // of the database

	Versions        bool     `json:"versions"`        // the relay reads the feed of all versions
	TTL             Duration `json:"ttl"`             // of events
	DuplicateWindow Duration `json:"duplicateWindow"` // of the topic
	Takeover        Duration `json:"takeover"`        // the expiry of leases
	Outage          Duration `json:"outage"`          // the longest time without a relay or a broker
	PollBusy        Duration `json:"pollBusy"`        // the shortest pause between two reads of a range

	Headroom    float64 `json:"headroom"`    // factor on the request units
	ChangeUnits float64 `json:"changeUnits"` // measured request units of a change; 0: by the table
	RelayRate   float64 `json:"relayRate"`   // events a second of one relay
	TopicGB     int     `json:"topicGB"`     // size of a topic
	UnitPrice   float64 `json:"unitPrice"`   // of a messaging unit for an hour
}

// Defaults returns the inputs without the changes a second, which have no default. TTL, window and
// topic are those of bicep/, the takeover time that of the relay.
func Defaults() Input {
	return Input{
		Peak: 1, Events: 1, EventBytes: 1000, StateBytes: 1000, Subscriptions: 1, Regions: 1,
		TTL: Duration(240 * time.Hour), DuplicateWindow: Duration(time.Hour), Takeover: Duration(20 * time.Second), Outage: Duration(6 * time.Hour), PollBusy: Duration(time.Millisecond),
		Headroom: 1.2, RelayRate: relayRate.Value, TopicGB: 5, UnitPrice: unitPrice.Value,
	}
}

func (in Input) validate() error {
	var faults []error
	between := func(name string, v, low, high float64) {
		if !(v >= low && v <= high) { // also false for NaN
			faults = append(faults, fmt.Errorf("--%s %s: give a number from %s to %s", name, number(v), number(low), number(high)))
		}
	}
	during := func(name string, d Duration, low, high time.Duration) {
		if time.Duration(d) < low || time.Duration(d) > high {
			faults = append(faults, fmt.Errorf("--%s %s: give a time from %s to %s", name, d, Duration(low), Duration(high)))
		}
	}
	const most = 2 << 20 // bytes of a document
	between("changes", in.Changes, 0.001, 1e9)
	between("peak", in.Peak, 1, 1000)
	between("events", in.Events, 0.001, 99)
	between("event-bytes", float64(in.EventBytes), 1, most)
	between("state-bytes", float64(in.StateBytes), 1, most)
	between("aggregates", float64(in.Aggregates), 0, 1e15)
	between("subscriptions", float64(in.Subscriptions), 1, 2000)
	between("regions", float64(in.Regions), 1, 100)
	between("headroom", in.Headroom, 1, 10)
	if in.ChangeUnits != 0 {
		between("change-units", in.ChangeUnits, 0.01, 1e6)
	}
	between("relay-rate", in.RelayRate, 1, 1e9)
	between("topic-gb", float64(in.TopicGB), 1, topicStorage.Value)
	between("unit-price", in.UnitPrice, 0, 1e6)
	shortest, outage := time.Hour, 90*24*time.Hour
	if in.Versions { // the feed has events of 7 days, and the relay raises its alarm at a quarter of that
		shortest, outage = time.Minute, 42*time.Hour
	}
	during("ttl", in.TTL, shortest, 87600*time.Hour)
	during("duplicate-window", in.DuplicateWindow, 20*time.Second, 7*24*time.Hour)
	during("takeover", in.Takeover, time.Second, time.Hour)
	during("poll-busy", in.PollBusy, time.Millisecond, time.Hour)
	during("outage", in.Outage, time.Minute, outage)
	if in.DuplicateWindow <= in.Takeover {
		faults = append(faults, fmt.Errorf("--duplicate-window %s: it must be longer than --takeover %s, otherwise events of a crashed relay arrive twice", in.DuplicateWindow, in.Takeover))
	}
	return errors.Join(faults...)
}

// Duration is a time.Duration that is text in JSON and a flag value.
type Duration time.Duration

// Set implements the flag's value. It takes days as well: 10d.
func (d *Duration) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(math.Abs(n) < 1e5) {
			return fmt.Errorf("%q is no time such as 36h or 10d", text)
		}
		*d = Duration(n * 24 * float64(time.Hour))
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is no time such as 36h or 10d", text)
	}
	*d = Duration(parsed)
	return nil
}

// String returns the time without units that are zero.
func (d Duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Type returns the name of the value in help texts.
func (Duration) Type() string { return "duration" }

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

func (d Duration) seconds() float64 { return time.Duration(d).Seconds() }

// hours rounds to whole hours.
func (d Duration) hours(round func(float64) float64) Duration {
	return Duration(round(time.Duration(d).Hours()) * float64(time.Hour))
}

// number writes n with groups of thousands, and with four digits if it is small.
func number(n float64) string {
	if math.Abs(n) < 1000 && n != math.Trunc(n) {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(n, 'g', 4, 64), 64) // always a number
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	if math.IsInf(n, 0) {
		return fmt.Sprint(n)
	}
	text := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
