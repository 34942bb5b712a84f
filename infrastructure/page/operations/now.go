package operations

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
)

// nowView is the first screen.
type nowView struct {
	At             time.Time
	Tiles          []tile
	Behind         int64
	Oldest         time.Duration
	OldestState    string // class and words
	OldestWords    string
	TTL, Window    time.Duration
	OldestCurve    []float64
	BehindCurve    []float64
	ParkedKeys     int
	ParkedEvents   int64
	ParkedCurve    []float64
	Reasons        []operator.Reason
	Ranges, Owned  int
	Owners         int
	Conditions     []counted
	Dependencies   []dependency
	Paused         bool
	Troubles       []string
	Empty, Waiting bool
	SendTook       time.Duration
	Delivery       time.Duration
	Again          int64
	Accepted       int64
	Metrics        bool
}

type tile struct {
	Name, Unit, Note string
	Rate             float64
	Curve            []float64
}

type counted struct {
	Condition operator.Condition
	State     string
	Count     int
}

type dependency struct{ Name, State, Words string }

func (s *Operations) now(r *http.Request) (any, error) {
	p := s.reader.Look(r.Context())
	ttl := s.o.Port.EventTTL()
	v := nowView{
		At: time.Now(), Behind: p.Standing.Behind, Oldest: p.Standing.Oldest, TTL: ttl, Window: s.o.Window,
		OldestCurve: s.reader.curve(numberOldest), BehindCurve: s.reader.curve(numberBehind), ParkedCurve: s.reader.curve(numberParked),
		ParkedKeys: len(p.Gates), Reasons: p.Reasons[:min(3, len(p.Reasons))], Ranges: len(p.Standing.Ranges),
		Paused: p.Paused, SendTook: p.sendTook, Delivery: p.delivery, Again: int64(p.told.again), Accepted: int64(p.told.accepted),
		Metrics: len(s.o.Metrics) > 0, Waiting: p.RangesAt.IsZero(), Empty: !p.RangesAt.IsZero() && p.RangesErr == "" && len(p.Standing.Ranges) == 0,
	}
	if len(p.told.lag) > 0 && p.MetricsErr == "" { // fresher
		behind, oldest := lagTold(p.told)
		v.Behind, v.Oldest = int64(behind), oldest
	}
	for _, reason := range p.Reasons {
		v.ParkedEvents += reason.Events
	}
	v.Tiles = []tile{
		{Name: "Committed", Unit: "events/s", Rate: p.rates[numberIn], Curve: s.reader.curve(numberIn), Note: committedNote(p)},
		{Name: "Sent", Unit: "batches/s", Rate: p.rates[numberBatches], Curve: s.reader.curve(numberBatches), Note: "to the broker, by all relays"},
		{Name: "Accepted", Unit: "events/s", Rate: p.rates[numberAccepted], Curve: s.reader.curve(numberAccepted), Note: "by the broker"},
	}
	v.OldestState, v.OldestWords = judge(v.Oldest, ttl, s.o.Window)
	owners := map[string]bool{}
	for _, one := range p.Standing.Ranges {
		if one.Owner != "" {
			v.Owned++
			owners[one.Owner] = true
		}
	}
	v.Owners = len(owners)
	v.Conditions = conditions(p.Standing)
	v.Dependencies = dependencies(p)
	for _, trouble := range []string{p.RangesErr, p.GatesErr, p.MetricsErr} {
		if trouble != "" {
			v.Troubles = append(v.Troubles, trouble)
		}
	}
	return v, nil
}

func committedNote(p Picture) string {
	if p.told.hasAPI {
		return "changes that the API stored, with their events"
	}
	return "as accepted and waiting events tell"
}

// judge says how the oldest unsent event stands against the two limits.
func judge(oldest, ttl, window time.Duration) (state, words string) {
	switch relay.LevelOf(oldest, ttl) {
	case relay.Critical:
		return "bad", "events will be lost: more than half of their lifetime is over"
	case relay.Warning:
		return "warn", "more than a quarter of an event's lifetime is over"
	case relay.Safe:
	}
	switch {
	case oldest >= window:
		return "warn", "older than the duplicate window: what is sent again after a crash reaches consumers twice"
	case oldest >= 2*time.Minute:
		return "warn", "the relay does not keep up, or waits"
	case oldest == 0:
		return "good", "nothing waits"
	}
	return "good", "well within both limits"
}

// stateOf is the class of a condition.
func stateOf(c operator.Condition) string {
	switch c {
	case operator.Expired, operator.Stopped:
		return "bad"
	case operator.Silent, operator.Retrying, operator.Free:
		return "warn"
	case operator.Paused:
		return "busy"
	case operator.Healthy:
	}
	return "good"
}

// conditions counts the ranges, the worst first.
func conditions(s operator.Standing) []counted {
	count := map[operator.Condition]int{}
	for _, r := range s.Ranges {
		c, _ := r.Condition(s.At)
		count[c]++
	}
	var all []counted
	for _, c := range operator.Conditions() {
		if count[c] > 0 {
			all = append(all, counted{Condition: c, State: stateOf(c), Count: count[c]})
		}
	}
	return all
}

// dependencies says in words how database and broker are.
func dependencies(p Picture) []dependency {
	name := map[string]string{"cosmos": "Cosmos DB", "serviceBus": "Service Bus", "postgres": "PostgreSQL", "firestore": "Firestore"}
	all := []dependency{{Name: "The store, seen from here", State: "good", Words: "answers"}}
	switch {
	case p.RangesErr != "":
		all[0].State, all[0].Words = "bad", "does not answer"
	case p.RangesAt.IsZero():
		all[0].State, all[0].Words = "", "not asked yet"
	}
	for key, up := range p.told.up {
		d := dependency{Name: cmp.Or(name[key], key) + ", seen from the relays", State: "good", Words: "answers"}
		if !up {
			d.State, d.Words = "bad", "fails"
		}
		all = append(all, d)
	}
	slices.SortFunc(all[1:], func(a, b dependency) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
