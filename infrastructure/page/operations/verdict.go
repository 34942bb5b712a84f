package operations

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// verdict answers "is all well?" in one sentence.
type verdict struct {
	State string // CSS class; "" if the answer is not known
	Words string
	Cause string // error of a read, "" = none
	Next  string // section that helps, "" = none
	Start bool   // there is nothing to see yet
	Path  []station
}

// station is a part of the way of an event. Figure is what passes it, "" if that is not measured.
type station struct{ Name, State, Words, Figure string }

// names are the dependencies in the metrics of relays and APIs.
var names = map[string]string{"cosmos": "Cosmos DB", "postgres": "PostgreSQL", "firestore": "Firestore", "serviceBus": "Service Bus", "rabbitMQ": "RabbitMQ", "sqs": "SQS", "sns": "SNS"}

// dependencyOf returns the name of the store or of the broker, and whether relays reach it; known
// is false if no current metric reports it.
func dependencyOf(p Overview, store bool) (name string, up, known bool) {
	for key, isUp := range p.metrics.up {
		if is := slices.Contains([]string{"cosmos", "postgres", "firestore"}, key); is == store {
			return cmp.Or(names[key], key), isUp, p.MetricsRead.Tried.Add(currentFor).After(time.Now())
		}
	}
	if store {
		return "the store", false, false
	}
	return "the broker", false, false
}

// judge returns the verdict, the worst trouble first. Only what is known and current is well.
func judge(p Overview, ttl, window time.Duration) verdict {
	v := trouble(p, ttl, window)
	if v.Words == "" {
		v = flows(p)
	}
	v.Path = way(p)
	return v
}

func trouble(p Overview, ttl, window time.Duration) verdict {
	store, storeUp, storeKnown := dependencyOf(p, true)
	broker, brokerUp, brokerKnown := dependencyOf(p, false)
	s, count := p.Snapshot, map[operator.Condition]int{}
	worst := map[operator.Condition]operator.Range{}
	for _, r := range s.Ranges {
		c, _ := r.Condition(s.At)
		if count[c]++; count[c] == 1 {
			worst[c] = r
		}
	}
	n := len(s.Ranges)
	some := func(c operator.Condition) string { return fmt.Sprintf("%d of %d ranges", count[c], n) }
	cause := func(c operator.Condition) string {
		r := worst[c]
		text := cmp.Or(r.Error, r.Lag.Error)
		if text != "" {
			text = ": " + brief(text)
		}
		return clock(r.Failing) + text
	}
	waiting := "how many changes wait is not known"
	if s.Unknown == 0 {
		waiting = changes(s.Behind, "waits", "wait")
	}
	state, words := ageState(s.Oldest, ttl, window)
	switch {
	case p.Ranges.Err != "":
		return verdict{State: "bad", Words: fmt.Sprintf("Not known: %s does not answer%s.", store, clock(p.Ranges.Since)), Cause: p.Ranges.Err, Next: "doctor"}
	case !p.Ranges.Known():
		return verdict{Words: "Not known yet: the first read has not ended."}
	case !p.Ranges.Current():
		return verdict{Words: fmt.Sprintf("Not known: the last read was %s ago.", page.Span(time.Since(p.Ranges.At).Truncate(time.Second)))}
	case n == 0:
		return verdict{State: "busy", Words: "No relay has started yet.", Start: true}
	case count[operator.Expired]+count[operator.Free] == n:
		return verdict{State: "bad", Words: "No relay runs: all ranges are without a live owner, " + waiting + ".", Next: "members"}
	case len(s.Uncovered) > 0:
		return verdict{State: "bad", Words: fmt.Sprintf("No lease covers %s: its events are not sent.", strings.Join(s.Uncovered, ", ")), Next: "doctor"}
	case storeKnown && !storeUp:
		return verdict{State: "bad", Words: "The relays do not reach " + store + cause(operator.Unread) + ".", Next: "doctor"}
	case brokerKnown && !brokerUp:
		return verdict{State: "bad", Words: broker + " refuses" + cause(operator.Retrying) + ".", Next: "doctor"}
	case count[operator.Stopped] > 0:
		return verdict{State: "bad", Words: some(operator.Stopped) + " are stopped" + cause(operator.Stopped) + ".", Next: "ranges"}
	case p.Paused:
		return verdict{State: "busy", Words: "Paused by an operator: " + waiting + ".", Next: "ranges"}
	case count[operator.Expired]+count[operator.Free]+count[operator.Silent] > 0:
		return verdict{State: "warn", Words: fmt.Sprintf("%d of %d ranges have no live owner; another relay takes them when their leases expire.", count[operator.Expired]+count[operator.Free]+count[operator.Silent], n), Next: "members"}
	case count[operator.Unread] > 0:
		return verdict{State: "bad", Words: some(operator.Unread) + " are not read" + cause(operator.Unread) + ".", Next: "doctor"}
	case state == "bad":
		return verdict{State: state, Words: fmt.Sprintf("The oldest change has waited for %s; %s.", page.Span(s.Oldest), words), Next: "ranges"}
	case p.consumed.stuck():
		return verdict{State: "bad", Words: "All calls of the consumers' handlers fail; events wait in the broker. Their logs have the cause."}
	case count[operator.Retrying] > 0:
		return verdict{State: "warn", Words: some(operator.Retrying) + " retry" + cause(operator.Retrying) + ".", Next: "ranges"}
	case count[operator.Held] > 0:
		return verdict{State: "warn", Words: fmt.Sprintf("The store holds %s back for %s: a transaction is open.", some(operator.Held), page.Span(worst[operator.Held].Lag.Age)), Next: "ranges"}
	case count[operator.Paused] > 0:
		return verdict{State: "busy", Words: some(operator.Paused) + " are paused by an operator: " + waiting + ".", Next: "ranges"}
	case s.Unknown > 0:
		return verdict{Words: fmt.Sprintf("Not known: the lag of %d of %d ranges.", s.Unknown, n), Next: "ranges"}
	case state == "warn":
		return verdict{State: state, Words: fmt.Sprintf("The oldest change has waited for %s; %s.", page.Span(s.Oldest), words), Next: "ranges"}
	case !p.Keys.Current():
		return verdict{Words: "Not known whether keys are parked.", Cause: p.Keys.Err, Next: "parked"}
	case len(p.Gates) == 1:
		return verdict{State: "warn", Words: "1 key is parked; all others flow.", Next: "parked"}
	case len(p.Gates) > 0:
		return verdict{State: "warn", Words: fmt.Sprintf("%s keys are parked; all others flow.", page.Number(int64(len(p.Gates)))), Next: "parked"}
	case !p.ConsumersRead.Current():
		return verdict{Words: "Not known whether consumers have parked keys.", Cause: p.ConsumersRead.Err, Next: "parked"}
	case p.keysOfConsumers() == 1:
		return verdict{State: "warn", Words: "1 key is parked by a consumer; all others flow.", Next: "parked"}
	case p.keysOfConsumers() > 0:
		return verdict{State: "warn", Words: fmt.Sprintf("%s keys are parked by consumers; all others flow.", page.Number(int64(p.keysOfConsumers()))), Next: "parked"}
	case p.MetricsRead.Err != "":
		if s.Behind == 0 { // not "nothing waits": the process may be dead, and the lag not measured since
			waiting = "No change is known to wait"
		}
		return verdict{Words: waiting + ", but not all processes report metrics.", Cause: p.MetricsRead.Err}
	}
	return verdict{}
}

// flows is the verdict without any trouble.
func flows(p Overview) verdict {
	handled := p.Snapshot.Behind + int64(p.metrics.accepted)
	for _, r := range p.Snapshot.Ranges {
		handled += r.Handled
	}
	if handled == 0 {
		return verdict{State: "good", Words: "All is ready, and no change has been committed yet.", Start: true}
	}
	words := "Everything flows: nothing waits"
	inFlight := slices.ContainsFunc(p.Snapshot.Ranges, func(r operator.Range) bool { return !r.Lag.Oldest.IsZero() })
	switch {
	case p.Snapshot.Behind > 0:
		words = "Everything flows: " + changes(p.Snapshot.Behind, "is on its way", "are on their way")
	case inFlight: // they are no lag, but no checkpoint proves that they were sent
		words = "Everything flows: the newest changes are on their way"
	}
	if accepted := p.rates[seriesAccepted]; accepted > 0 {
		words = "Everything flows: " + page.Rate(accepted) + " events/s"
		if p.delivery > 0 {
			words += ", " + page.Span(p.delivery) + " from creation to broker"
		}
	}
	return verdict{State: "good", Words: words + "."}
}

// changes returns a number of changes with its verb.
func changes(n int64, one, many string) string {
	if n == 1 {
		return "1 change " + one
	}
	return page.Number(n) + " changes " + many
}

// way returns the path of an event, each part with its state.
func way(p Overview) []station {
	storeName, storeUp, storeKnown := dependencyOf(p, true)
	brokerName, brokerUp, brokerKnown := dependencyOf(p, false)
	all := []station{
		{Name: "API", Words: "not known", Figure: perSecond(p.rates[seriesCommitted])},
		{Name: strings.ToUpper(storeName[:1]) + storeName[1:], Words: "not known"},
		{Name: "Relays", Words: "not known"},
		{Name: strings.ToUpper(brokerName[:1]) + brokerName[1:], Words: "not known", Figure: perSecond(p.rates[seriesAccepted])},
		{Name: "Consumers", Words: "not observed here"},
	}
	if p.metrics.hasAPI && p.MetricsRead.Current() {
		all[0].State, all[0].Words = "good", "answers"
	}
	switch {
	case p.Ranges.Err != "", storeKnown && !storeUp:
		all[0].State = ""
		all[1].State, all[1].Words = "bad", "does not answer"
	case p.Ranges.Current():
		all[1].State, all[1].Words = "good", "answers"
	}
	if p.Ranges.Current() {
		owners, state, c := map[string]bool{}, "", operator.Condition("none")
		for _, r := range p.Snapshot.Ranges {
			if one, _ := r.Condition(p.Snapshot.At); c == "none" || slices.Index(operator.Conditions(), one) < slices.Index(operator.Conditions(), c) {
				c, state = one, stateOf(one)
			}
			if r.Owner != "" && r.Silent == 0 {
				owners[r.Owner] = true
			}
		}
		all[2].State, all[2].Words, all[2].Figure = state, string(c), fmt.Sprintf("%d running", len(owners))
		if p.Snapshot.Unknown == 0 {
			all[1].Figure = page.Number(p.Snapshot.Behind) + " wait"
		}
	}
	switch { // the metric is about the last use, which may be long ago
	case brokerKnown && !brokerUp:
		all[3].State, all[3].Words = "bad", "refuses"
	case brokerKnown && p.rates[seriesAccepted] > 0:
		all[3].State, all[3].Words = "good", "accepts"
	case brokerKnown:
		all[3].Words = "accepted the last event"
	}
	if c := p.consumed; c.known && p.MetricsRead.Current() {
		all[4].Figure = perSecond(c.handled)
		switch {
		case c.stuck():
			all[4].State, all[4].Words = "bad", "all calls fail"
		case c.failed > 0:
			all[4].State, all[4].Words = "warn", "some calls fail"
		case c.handled > 0:
			all[4].State, all[4].Words = "good", "handle events"
		case c.handled == 0:
			all[4].Words = "wait for events"
		default: // the first reading, or a process has restarted
			all[4].Words = "not known"
		}
	}
	return all
}

func perSecond(rate float64) string {
	if math.IsNaN(rate) {
		return ""
	}
	return page.Rate(rate) + "/s"
}

// clock returns " since 16:58", or nothing if the time is not known.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + t.UTC().Format("15:04 UTC")
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
