package operations

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

// The sentence names the worst trouble, and is green only if all is known, current and well.
func TestVerdictNamesTheWorstTrouble(t *testing.T) {
	type change func(p *Overview)
	each := func(do func(r *operator.Range)) change {
		return func(p *Overview) {
			for i := range p.Snapshot.Ranges {
				do(&p.Snapshot.Ranges[i])
			}
		}
	}
	first := func(do func(r *operator.Range)) change {
		return func(p *Overview) { do(&p.Snapshot.Ranges[0]) }
	}
	paused := func(p *Overview) { p.Paused, p.Snapshot.Behind = true, 1336 }
	parked := func(p *Overview) { p.Gates = make([]relay.Gate, 3) }
	byConsumers := func(p *Overview) {
		p.Consumers = []operator.ConsumerKeys{{Consumer: "billing", Gates: make([]relay.Gate, 2)}, {Consumer: "shipping", Gates: make([]relay.Gate, 1)}}
	}
	unknownLag := func(p *Overview) { p.Snapshot.Unknown = 2 }
	unmeasured := func(p *Overview) { p.rates[seriesAccepted] = 0 }
	brokerDown := func(p *Overview) { p.metrics.up["serviceBus"] = false }
	retrying := first(func(r *operator.Range) {
		r.Health, r.Error, r.Failing = changefeed.Retrying, "topic nosuch does not exist", time.Date(2026, 1, 2, 16, 58, 0, 0, time.UTC)
	})
	failing := func(s *Source) { s.Err, s.Since = "no reply", time.Date(2026, 1, 2, 16, 58, 0, 0, time.UTC) }
	for _, tc := range []struct {
		name, state, words string
		changes            []change
	}{
		{"well", "good", "Everything flows: 41 events/s, 16 ms from creation to broker.", nil},
		{"idle", "good", "Everything flows: nothing waits.", []change{func(p *Overview) { p.rates[seriesAccepted] = 0 }}},
		{"no metrics", "good", "Everything flows: 7 changes are on their way.", []change{func(p *Overview) { p.rates, p.metrics, p.Snapshot.Behind = unknownRates(), metricsSum{}, 7 }}},
		{"never read", "", "Not known yet", []change{func(p *Overview) { p.Ranges = Source{} }}},
		{"store away from the start", "bad", "Not known: Cosmos DB does not answer since 16:58 UTC. no reply", []change{func(p *Overview) { p.Ranges = Source{}; failing(&p.Ranges) }}},
		{"store away later", "bad", "Not known: Cosmos DB does not answer since", []change{func(p *Overview) { failing(&p.Ranges) }, paused, parked, brokerDown}},
		{"read long ago", "", "Not known: the last read was 40 s ago.", []change{func(p *Overview) { p.Ranges.At = time.Now().Add(-40 * time.Second) }}},
		{"fresh start", "busy", "No relay has started yet.", []change{func(p *Overview) { p.Snapshot.Ranges = nil }}},
		{"nothing committed yet", "good", "no change has been committed yet", []change{func(p *Overview) { p.Snapshot.Ranges[0].Handled = 0 }}},
		{"all relays dead", "bad", "No relay runs", []change{each(func(r *operator.Range) { r.Silent = time.Hour })}},
		{"a relay dead", "warn", "1 of 2 ranges have no live owner", []change{first(func(r *operator.Range) { r.Silent = time.Hour })}},
		{"relays without the store", "bad", "The relays do not reach Cosmos DB", []change{func(p *Overview) { p.metrics.up["cosmos"] = false }}},
		{"topic missing", "bad", "Service Bus refuses since 16:58 UTC: topic nosuch does not exist.", []change{brokerDown, retrying, paused}},
		{"stopped", "bad", "1 of 2 ranges are stopped", []change{first(func(r *operator.Range) { r.Health = changefeed.Stopped }), paused}},
		{"paused", "busy", "Paused by an operator: 1,336 changes wait.", []change{paused, parked}},
		{"paused with unknown lag", "busy", "how many changes wait is not known", []change{paused, unknownLag}},
		{"a paused range", "busy", "1 of 2 ranges are paused", []change{first(func(r *operator.Range) { r.Request.Paused = true })}},
		{"a part without a lease", "bad", "No lease covers 1F-2F: its events are not sent.", []change{func(p *Overview) { p.Snapshot.Uncovered = []string{"1F-2F"} }, parked}},
		{"unread", "bad", "1 of 2 ranges are not read: silent", []change{first(func(r *operator.Range) { r.Health, r.Error = changefeed.Unread, "silent" })}},
		{"retrying", "warn", "1 of 2 ranges retry since 16:58 UTC: topic", []change{retrying}},
		{"held", "warn", "The store holds 1 of 2 ranges back for 1 min 6 s", []change{first(func(r *operator.Range) { r.Lag.Withheld, r.Lag.Age = 1, 66*time.Second })}},
		{"lag unknown", "", "Not known: the lag of 2 of 2 ranges.", []change{unknownLag}},
		{"old", "warn", "The oldest change has waited for 3 min", []change{func(p *Overview) { p.Snapshot.Oldest = 3 * time.Minute }}},
		{"nearly lost", "bad", "events will be lost", []change{func(p *Overview) { p.Snapshot.Oldest = 40 * time.Minute }, retrying}},
		{"parked", "warn", "3 keys are parked", []change{parked}},
		{"one parked", "warn", "1 key is parked;", []change{func(p *Overview) { p.Gates = make([]relay.Gate, 1) }}},
		{"parked not known", "", "Not known whether keys are parked", []change{func(p *Overview) { failing(&p.Keys) }, parked}},
		{"parked by consumers", "warn", "3 keys are parked by consumers; all others flow.", []change{byConsumers}},
		{"one parked by a consumer", "warn", "1 key is parked by a consumer;", []change{func(p *Overview) {
			p.Consumers = []operator.ConsumerKeys{{Consumer: "billing", Gates: make([]relay.Gate, 1)}}
		}}},
		{"parked by consumers not known", "", "Not known whether consumers have parked keys. no reply", []change{func(p *Overview) { failing(&p.ConsumersRead) }, byConsumers}},
		{"consumers fail", "bad", "All calls of the consumers' handlers fail", []change{func(p *Overview) { p.consumed = consumed{known: true, failed: 2} }, parked, unknownLag}},
		{"some calls of consumers fail", "good", "Everything flows", []change{func(p *Overview) { p.consumed = consumed{known: true, handled: 40, failed: 2} }}},
		{"metrics away", "", "No change is known to wait, but not all processes report metrics. no reply", []change{func(p *Overview) { failing(&p.MetricsRead) }}},
		{"metrics away with a backlog", "", "3 changes wait, but not all processes report metrics.", []change{func(p *Overview) { failing(&p.MetricsRead); p.Snapshot.Behind = 3 }}},
		{"in flight", "good", "Everything flows: the newest changes are on their way.", []change{unmeasured, first(func(r *operator.Range) { r.Lag.Oldest = time.Now() })}},
		{"one on its way", "good", "Everything flows: 1 change is on its way.", []change{unmeasured, func(p *Overview) { p.Snapshot.Behind = 1 }}},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := Source{At: time.Now(), Tried: time.Now()}
			p := Overview{Ranges: now, Keys: now, ConsumersRead: now, MetricsRead: now, rates: unknownRates(), delivery: 16 * time.Millisecond}
			p.Snapshot = operator.Snapshot{At: time.Now(), Ranges: []operator.Range{
				{Lease: changefeed.Lease{Owner: "a", Expiry: time.Minute, Handled: 5}}, {Lease: changefeed.Lease{Owner: "b", Expiry: time.Minute}},
			}}
			p.metrics.up = map[string]bool{"cosmos": true, "serviceBus": true}
			p.rates[seriesAccepted] = 41
			for _, do := range tc.changes {
				do(&p)
			}
			v := judge(p, time.Hour, 10*time.Minute)
			if v.State != tc.state || !strings.Contains(v.Words+" "+v.Cause, tc.words) || len(v.Path) != 5 {
				t.Errorf("%s: %q %s; want %q %s", tc.name, v.State, v.Words, tc.state, tc.words)
			}
			if healthy := strings.Count(stateNames(v.Path), "bad") == 0; v.State == "good" && !healthy {
				t.Errorf("%s: the path has a broken part: %+v", tc.name, v.Path)
			}
		})
	}
	sdk := "read container: GET http://host/dbs/x\n-----\nRESPONSE 503: 503 Service Unavailable\nERROR CODE: x\n-----\n{\n \"code\": 1 }"
	if got := brief(sdk); got != "read container: GET http://host/dbs/x RESPONSE 503: 503 Service Unavailable ERROR CODE: x" {
		t.Errorf("%q", got)
	}
	if d := (&doctor{ended: time.Now().Add(-2 * findingsMaxAge)}); d.state(operator.FindingOK) == "good" {
		t.Error("an old finding is good")
	}
	r := newReader(nil, nil, nil)
	past := time.Now().Add(-time.Second)
	r.overview.Ranges, r.overview.Keys = Source{At: past, Err: "no reply"}, Source{At: past, Err: "no reply"}
	r.readMetrics(t.Context())
	for _, n := range []series{seriesBehind, seriesOldest, seriesParked} {
		if !math.IsNaN(r.overview.rates[n]) {
			t.Errorf("curve %d has a point during an outage: %v", n, r.overview.rates[n])
		}
	}
	if !math.IsNaN(newReader(nil, nil, nil).overview.rates[seriesAccepted]) {
		t.Error("a rate is known before the first read")
	}
}

// An age at a limit is beyond it.
func TestAgeOfTheOldestEventIsComparedWithItsLimits(t *testing.T) {
	const lost, quarter, twice, slow, none, well = "bad events will be lost", "warn more than a quarter", "warn older than the duplicate window", "warn the relay is too slow", "good no backlog", "good well within both limits"
	for _, c := range []struct {
		oldest, ttl, window time.Duration
		want                string
	}{
		{0, time.Hour, 10 * time.Minute, none},
		{time.Nanosecond, time.Hour, 10 * time.Minute, well},
		{2*time.Minute - 1, time.Hour, 10 * time.Minute, well},
		{2 * time.Minute, time.Hour, 10 * time.Minute, slow},
		{10*time.Minute - 1, time.Hour, 10 * time.Minute, slow},
		{10 * time.Minute, time.Hour, 10 * time.Minute, twice},
		{16 * time.Minute, time.Hour, 10 * time.Minute, quarter},
		{31 * time.Minute, time.Hour, 10 * time.Minute, lost},
		{time.Minute, time.Hour, time.Minute, twice},
	} {
		if state, words := ageState(c.oldest, c.ttl, c.window); !strings.HasPrefix(state+" "+words, c.want) {
			t.Errorf("%s of %s, with a window of %s: %s %s, want %s", c.oldest, c.ttl, c.window, state, words, c.want)
		}
	}
}

// A rate needs two readings. Until then consumers are not known to be idle.
func TestConsumersAreNotKnownBeforeTheSecondReading(t *testing.T) {
	p := Overview{MetricsRead: Source{At: time.Now(), Tried: time.Now()}, rates: unknownRates()}
	for want, c := range map[string]consumed{
		"not observed here": {}, "not known": {true, math.NaN(), math.NaN()}, "wait for events": {true, 0, 0}, "handle events": {true, 3, 0},
	} {
		p.consumed = c
		if got := way(p)[4]; got.Words != want {
			t.Errorf("%+v: %+v, want %q", c, got, want)
		}
	}
}

// The owner of a lease may have died. It must not count as running.
func TestSilentRelaysAreNotRunning(t *testing.T) {
	now := Source{At: time.Now(), Tried: time.Now()}
	p := Overview{Ranges: now, rates: unknownRates(), Snapshot: operator.Snapshot{At: time.Now(), Ranges: []operator.Range{
		{Lease: changefeed.Lease{Owner: "dead", Expiry: time.Minute}, Silent: time.Hour}, {Lease: changefeed.Lease{Owner: "alive", Expiry: time.Minute}},
	}}}
	if got := way(p)[2]; got.Figure != "1 running" {
		t.Errorf("%+v, want 1 running", got)
	}
}

func stateNames(path []station) (all string) {
	for _, s := range path {
		all += s.State + " "
	}
	return all
}
