package operations

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
)

type nowView struct {
	Tiles         []tile
	Behind        int64
	Oldest        time.Duration
	OldestState   string // CSS class
	OldestWords   string
	TTL, Window   time.Duration
	OldestCurve   []float64
	BehindCurve   []float64
	ParkedKeys    int
	ParkedEvents  int64
	ParkedCurve   []float64
	Reasons       []operator.Reason
	Ranges, Owned int
	Owners        int
	Conditions    []conditionCount
	Dependencies  []dependency
	Paused        bool
	Troubles      []string
	Empty         bool
	SendTook      time.Duration
	Delivery      time.Duration
	Again         int64
	Accepted      int64
	Metrics       bool
}

type tile struct {
	Name, Unit, Note string
	Rate             float64
	Curve            []float64
}

type conditionCount struct {
	Condition operator.Condition
	State     string
	Count     int
}

type dependency struct{ Name, State, Words string }

func (s *Operations) now(r *http.Request) (any, error) {
	p := s.reader.Latest(r.Context())
	ttl := s.o.Port.EventTTL()
	v := nowView{
		Behind: p.Snapshot.Behind, Oldest: p.Snapshot.Oldest, TTL: ttl, Window: s.o.Window,
		OldestCurve: s.reader.curve(seriesOldest), BehindCurve: s.reader.curve(seriesBehind), ParkedCurve: s.reader.curve(seriesParked),
		ParkedKeys: len(p.Gates), Reasons: p.Reasons[:min(3, len(p.Reasons))], Ranges: len(p.Snapshot.Ranges),
		Paused: p.Paused, SendTook: p.sendTook, Delivery: p.delivery, Again: int64(p.metrics.again), Accepted: int64(p.metrics.accepted),
		Metrics: len(s.o.Metrics) > 0, Empty: !p.RangesAt.IsZero() && p.RangesErr == "" && len(p.Snapshot.Ranges) == 0,
	}
	if len(p.metrics.lag) > 0 && p.MetricsErr == "" { // fresher than the lag in Snapshot
		behind, oldest := p.metrics.totalLag()
		v.Behind, v.Oldest = int64(behind), oldest
	}
	for _, reason := range p.Reasons {
		v.ParkedEvents += reason.Events
	}
	v.Tiles = []tile{
		{Name: "Committed", Unit: "events/s", Rate: p.rates[seriesCommitted], Curve: s.reader.curve(seriesCommitted), Note: committedNote(p)},
		{Name: "Sent", Unit: "batches/s", Rate: p.rates[seriesBatches], Curve: s.reader.curve(seriesBatches), Note: "to the broker, by all relays"},
		{Name: "Accepted", Unit: "events/s", Rate: p.rates[seriesAccepted], Curve: s.reader.curve(seriesAccepted), Note: "by the broker"},
	}
	v.OldestState, v.OldestWords = ageState(v.Oldest, ttl, s.o.Window)
	owners := map[string]bool{}
	for _, one := range p.Snapshot.Ranges {
		if one.Owner != "" {
			v.Owned++
			owners[one.Owner] = true
		}
	}
	v.Owners = len(owners)
	v.Conditions = conditions(p.Snapshot)
	v.Dependencies = dependencies(p)
	for _, trouble := range []string{p.RangesErr, p.GatesErr, p.MetricsErr} {
		if trouble != "" {
			v.Troubles = append(v.Troubles, trouble)
		}
	}
	return v, nil
}

func committedNote(p Overview) string {
	if p.metrics.hasAPI {
		return "changes stored by the API, with their events"
	}
	return "derived from accepted and waiting events"
}

// ageState compares the age of the oldest unsent event with the two limits.
func ageState(oldest, ttl, window time.Duration) (state, words string) {
	switch relay.LevelOf(oldest, ttl) {
	case relay.Critical:
		return "bad", "events will be lost: more than half of their lifetime has passed"
	case relay.Warning:
		return "warn", "more than a quarter of the event lifetime has passed"
	case relay.Safe:
	}
	switch {
	case oldest >= window:
		return "warn", "older than the duplicate window: events sent again after a crash reach consumers twice"
	case oldest >= 2*time.Minute:
		return "warn", "the relay is too slow, or blocked"
	case oldest == 0:
		return "good", "no backlog"
	}
	return "good", "well within both limits"
}

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
func conditions(s operator.Snapshot) []conditionCount {
	count := map[operator.Condition]int{}
	for _, r := range s.Ranges {
		c, _ := r.Condition(s.At)
		count[c]++
	}
	var all []conditionCount
	for _, c := range operator.Conditions() {
		if count[c] > 0 {
			all = append(all, conditionCount{Condition: c, State: stateOf(c), Count: count[c]})
		}
	}
	return all
}

func dependencies(p Overview) []dependency {
	name := map[string]string{"cosmos": "Cosmos DB", "serviceBus": "Service Bus", "postgres": "PostgreSQL", "firestore": "Firestore"}
	all := []dependency{{Name: "Store, seen from this page", State: "good", Words: "up"}}
	switch {
	case p.RangesErr != "":
		all[0].State, all[0].Words = "bad", "down"
	case p.RangesAt.IsZero():
		all[0].State, all[0].Words = "", "not read yet"
	}
	for key, up := range p.metrics.up {
		d := dependency{Name: cmp.Or(name[key], key) + ", seen from the relays", State: "good", Words: "up"}
		if !up {
			d.State, d.Words = "bad", "down"
		}
		all = append(all, d)
	}
	slices.SortFunc(all[1:], func(a, b dependency) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
