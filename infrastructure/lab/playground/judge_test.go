package playground

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/workload"
)

// memory implements store.
type memory struct {
	aggregates []verify.Aggregate
	events     []verify.Event
	lot        map[string]bool
}

func (m *memory) keys(_ context.Context, keys []string) (aggregates []verify.Aggregate, events []verify.Event, strange []string, err error) {
	for _, a := range m.aggregates {
		if slices.Contains(keys, a.ID) {
			aggregates = append(aggregates, a)
		}
	}
	for _, e := range m.events {
		if slices.Contains(keys, e.Key) {
			events = append(events, e)
		}
	}
	return aggregates, events, nil, nil
}

func (m *memory) parked(context.Context) (map[string]bool, error) { return m.lot, nil }

// trial is a round of two contacts with four changes each.
type trial struct {
	*judge
	store    *memory
	round    *round
	messages []verify.Message
	start    time.Time
}

func newTrial() *trial {
	s := &memory{lot: map[string]bool{}}
	t := &trial{judge: newJudge(s, 30*time.Second), store: s, start: time.Now()}
	t.round = t.begin()
	for n := int64(1); n <= 4; n++ {
		for _, contact := range []string{"a", "b"} {
			t.record(t.round, workload.Outcome{Contact: contact, Outcome: workload.Acked}, t.start)
			m := verify.Message{ID: fmt.Sprint(contact, n), Session: contact, Subject: "Changed", Version: n, Sequence: n}
			t.messages = append(t.messages, m)
			s.events = append(s.events, verify.Event{ID: m.ID, Key: contact, Action: m.Subject, Version: n, Sequence: n})
		}
	}
	s.aggregates = []verify.Aggregate{{ID: "a", Version: 4, Sequence: 4}, {ID: "b", Version: 4, Sequence: 4}}
	return t
}

func (t *trial) arrive(messages ...verify.Message) {
	for _, m := range messages {
		t.saw(&recorder.Arrival{Message: m})
	}
}

// wait ends the load and runs the judge at a later time.
func (t *trial) wait(test *testing.T, later time.Duration) Verdict {
	test.Helper()
	t.end(t.round, t.start)
	if err := t.evaluate(test.Context(), t.start.Add(later)); err != nil {
		test.Fatal(err)
	}
	return t.state()
}

func TestGoodRoundIsJudgedAndDropped(t *testing.T) {
	r := newTrial()
	r.arrive(r.messages[:4]...)
	if v := r.wait(t, time.Second); v.Open != 1 || !v.Kept() {
		t.Fatalf("%+v before all has arrived", v)
	}
	if n, since := r.inFlight(); n != 4 || !since.Equal(r.start) {
		t.Errorf("%d in flight since %s, want 4", n, since)
	}
	r.arrive(r.messages[4:]...)
	v := r.wait(t, 2*time.Second)
	if !v.Kept() || v.Open != 0 || v.Rounds != 1 || v.Contacts != 2 || v.Events != 8 || v.Messages != 8 {
		t.Errorf("%+v", v)
	}
	if len(r.owner) != 0 || len(r.open) != 0 {
		t.Errorf("%d contacts and %d rounds are still kept", len(r.owner), len(r.open))
	}
}

// Each breach that a broken build could cause breaks the verdict, most of them at once.
func TestEachBreachBreaksTheVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		later time.Duration // after the load; 0: during the load
		do    func(*trial)
	}{
		"an event is dropped": {"I2", time.Minute, func(r *trial) { r.arrive(r.messages[:7]...) }},
		"an event is doubled": {"I4", 0, func(r *trial) { r.arrive(append(r.messages, r.messages[7])...) }},
		"two events are swapped": {"I3", 0, func(r *trial) {
			r.messages[5], r.messages[7] = r.messages[7], r.messages[5]
			r.arrive(r.messages...)
		}},
		"an event is made up": {"I5", time.Second, func(r *trial) {
			r.arrive(append(r.messages, verify.Message{ID: "x", Session: "a", Subject: "Changed", Version: 5, Sequence: 5})...)
		}},
		"a contact is made up": {"I5", time.Second, func(r *trial) {
			r.arrive(append(r.messages, verify.Message{ID: "x", Session: "x", Subject: "Changed", Version: 1, Sequence: 1})...)
		}},
		"an acknowledged change is not stored": {"I2", time.Minute, func(r *trial) {
			r.record(r.round, workload.Outcome{Contact: "a", Outcome: workload.Acked}, r.start)
			r.arrive(r.messages...)
		}},
		"a change is stored without its event": {"I1", time.Second, func(r *trial) {
			r.store.aggregates[0].Version++
			r.record(r.round, workload.Outcome{Contact: "a", Outcome: workload.Acked}, r.start)
			r.arrive(r.messages...)
		}},
		"an event arrives again after its round was judged": {"I4", time.Second, func(r *trial) {
			r.arrive(r.messages...)
			r.end(r.round, r.start)
			_ = r.evaluate(context.Background(), r.start.Add(time.Second))
			r.begin()
			r.arrive(r.messages[0])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrial()
			c.do(r)
			var v Verdict
			if c.later > 0 {
				v = r.wait(t, c.later)
			} else if err := r.evaluate(t.Context(), r.start); err != nil {
				t.Fatal(err)
			} else {
				v = r.state()
			}
			if v.Broken[c.want] == 0 || v.Kept() || !strings.HasPrefix(v.Breaches[0], "I") {
				t.Errorf("%+v, want a breach of %s", v, c.want)
			}
		})
	}
}

// Many breaches of one promise do not hide the text of another breach.
func TestManyBreachesDoNotHideOthers(t *testing.T) {
	v := Verdict{Broken: map[string]int{}}
	v.add("I4 twice")
	for n := range 10 * maxBreaches {
		v.add(fmt.Sprint("I2 lost ", n))
	}
	if len(v.Breaches) != maxBreaches || v.Breaches[0] != "I4 twice" || v.Breaches[maxBreaches-1] != fmt.Sprint("I2 lost ", 10*maxBreaches-1) {
		t.Errorf("%q", v.Breaches)
	}
	if v.Broken["I2"] != 10*maxBreaches || v.Broken["I4"] != 1 {
		t.Errorf("%v", v.Broken)
	}
}

// A round waits a bounded time for its parked events. If they arrive later, they are in order.
func TestRoundWaitsForParkedEvents(t *testing.T) {
	r := newTrial()
	r.store.lot["b4"] = true
	r.arrive(r.messages[:7]...)
	if v := r.wait(t, time.Minute); v.Open != 1 || !v.Kept() {
		t.Fatalf("%+v", v)
	}
	if v := r.wait(t, time.Hour); v.Open != 0 || !v.Kept() {
		t.Fatalf("%+v: want a bounded wait", v)
	}
	r.arrive(r.messages[7])
	if v := r.state(); !v.Kept() {
		t.Errorf("%+v: a parked event may arrive late", v)
	}
	r.arrive(r.messages[7])
	if v := r.state(); v.Broken["I4"] != 1 {
		t.Errorf("%+v: want a breach, because it arrived twice", v)
	}
}

// If no message arrives under load, the topic is stalled, and missing events are not lost.
func TestStalledTopicIsNoLoss(t *testing.T) {
	r := newTrial()
	r.arrive(r.messages[:7]...)
	r.begin() // the next round has load
	if v := r.wait(t, time.Minute); !v.Kept() || v.Open != 2 {
		t.Fatalf("%+v", v)
	}
	if v := r.wait(t, time.Hour); v.Broken["I2"] != 1 {
		t.Errorf("%+v: want a bounded wait", v)
	}
}

// A message may arrive before its client has the reply.
func TestMessageMayArriveBeforeTheReply(t *testing.T) {
	r := newTrial()
	r.arrive(r.messages...)
	next := r.begin()
	m := verify.Message{ID: "c1", Session: "c", Subject: "Changed", Version: 1, Sequence: 1}
	r.arrive(m)
	r.record(r.round, workload.Outcome{Contact: "c", Outcome: workload.Acked}, r.start)
	r.store.aggregates = append(r.store.aggregates, verify.Aggregate{ID: "c", Version: 1, Sequence: 1})
	r.store.events = append(r.store.events, verify.Event{ID: "c1", Key: "c", Action: "Changed", Version: 1, Sequence: 1})
	v := r.wait(t, time.Second)
	if !v.Kept() || v.Contacts != 3 || len(next.messages) != 0 {
		t.Errorf("%+v, and %d messages in the next round", v, len(next.messages))
	}
}

// The number of judged contacts kept is bounded, however long the load runs.
func TestKeptContactsAreBounded(t *testing.T) {
	var r recent
	for n := range int64(3 * remembered) {
		r.put(fmt.Sprint(n), finished{sequence: n})
	}
	if kept := len(r.now) + len(r.before); kept > 2*remembered {
		t.Errorf("%d contacts are kept", kept)
	}
	if f, known := r.find(fmt.Sprint(3*remembered - 1)); !known || f.sequence != 3*remembered-1 {
		t.Error("the last one is not known")
	}
	if _, known := r.find("0"); known {
		t.Error("the first one is known")
	}
}
