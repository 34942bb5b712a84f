package operations

import (
	"cmp"
	"html/template"
	"math"
	"net/http"
	"slices"
	"time"

	"feedbox/infrastructure/operator"
)

type nowView struct {
	Verdict       verdict
	Read, Keys    Source
	ConsumersRead Source // of ByConsumers
	Paused        bool   // all relays are
	Tiles         []tile
	Known         bool // the lag of all ranges
	Unknown       int  // ranges whose lag is not known
	Behind        int64
	Oldest        time.Duration
	OldestState   string // CSS class
	OldestWords   string
	TTL, Window   time.Duration
	OldestCurve   []float64
	BehindCurve   []float64
	ParkedKeys    int
	ByConsumers   int // keys that consumers have parked
	ParkedEvents  int64
	ParkedCurve   []float64
	Reasons       []operator.Reason
	Ranges, Owned int
	Owners        int
	Conditions    []conditionCount
	Dependencies  []dependency
	Troubles      []string
	SendTook      time.Duration
	Delivery      time.Duration
	Again         int64
	Accepted      int64
	Metrics       bool
	Hint          template.HTML
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
	if time.Since(p.MetricsRead.Tried) > currentFor {
		p.rates, p.sendTook, p.delivery, p.consumed = unknownRates(), 0, 0, consumed{}
	}
	ttl := s.o.Port.EventTTL()
	v := nowView{
		Verdict: judge(p, ttl, s.o.Window), Read: p.Ranges, Keys: p.Keys, Paused: p.Paused, Known: p.Ranges.Current() && p.Snapshot.Unknown == 0, Unknown: p.Snapshot.Unknown,
		Behind: p.Snapshot.Behind, Oldest: p.Snapshot.Oldest, TTL: ttl, Window: s.o.Window,
		OldestCurve: s.reader.curve(seriesOldest), BehindCurve: s.reader.curve(seriesBehind), ParkedCurve: s.reader.curve(seriesParked),
		ParkedKeys: len(p.Gates), ByConsumers: p.keysOfConsumers(), ConsumersRead: p.ConsumersRead, Reasons: p.Reasons[:min(3, len(p.Reasons))], Ranges: len(p.Snapshot.Ranges),
		SendTook: p.sendTook, Delivery: p.delivery, Again: int64(p.metrics.again), Accepted: int64(p.metrics.accepted),
		Hint: s.o.Hint, Metrics: len(s.o.Metrics) > 0 && p.metrics.answered > 0,
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
	v.Conditions = conditions(p)
	v.Dependencies = dependencies(p)
	for _, trouble := range []string{p.Ranges.Err, p.Keys.Err, p.MetricsRead.Err} {
		if trouble != "" && !slices.Contains(v.Troubles, trouble) && trouble != v.Verdict.Cause {
			v.Troubles = append(v.Troubles, trouble)
		}
	}
	return v, nil
}

func unknownRates() (all [seriesCount]float64) {
	for i := range all {
		all[i] = math.NaN()
	}
	return all
}

func committedNote(p Overview) string {
	if p.metrics.hasAPI {
		return "changes stored by the API, with their events"
	}
	return "derived from accepted and waiting events"
}

func stateOf(c operator.Condition) string {
	switch c {
	case operator.Expired, operator.Stopped:
		return "bad"
	case operator.Silent, operator.Retrying, operator.Free, operator.Unread, operator.Held:
		return "warn"
	case operator.Paused:
		return "busy"
	case operator.Healthy:
	}
	return "good"
}

// conditions counts the ranges, the worst first.
func conditions(p Overview) []conditionCount {
	count := map[operator.Condition]int{}
	for _, r := range p.Snapshot.Ranges {
		c, _ := r.Condition(p.Snapshot.At)
		count[c]++
	}
	var all []conditionCount
	for _, c := range operator.Conditions() {
		if count[c] > 0 {
			all = append(all, conditionCount{Condition: c, State: p.Ranges.State(stateOf(c)), Count: count[c]})
		}
	}
	return all
}

func dependencies(p Overview) []dependency {
	all := []dependency{{Name: "Store, seen from this page", State: p.Ranges.State("good"), Words: "up"}}
	switch {
	case p.Ranges.Err != "":
		all[0].State, all[0].Words = "bad", "down"
	case !p.Ranges.Known():
		all[0].Words = "not read yet"
	case !p.Ranges.Current():
		all[0].Words = "not read now"
	}
	for key, up := range p.metrics.up {
		d := dependency{Name: cmp.Or(names[key], key) + ", seen from the relays", State: p.MetricsRead.State("good"), Words: "up"}
		if !up {
			d.State, d.Words = "bad", "down"
		}
		all = append(all, d)
	}
	slices.SortFunc(all[1:], func(a, b dependency) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
