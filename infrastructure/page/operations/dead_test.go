package operations_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/page/operations"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// letterQueue is a dead-letter queue in memory. It records what was done, and refuses letter 9.
type letterQueue struct {
	operator.BrokerDoctor
	letters []relayport.DeadLetter
	next    []relayport.DeadLetter // of the reads after the first one; nil: the same
	done    []string
}

func (*letterQueue) Window(context.Context, string) operator.Window { return operator.Window{} }

func (*letterQueue) Reach(string) string { return "topic contacts" }

func (q *letterQueue) Read(_ context.Context, _ string, limit int) ([]relayport.DeadLetter, bool, error) {
	letters := q.letters
	if q.next != nil {
		q.letters, q.next = q.next, nil
	}
	return letters[:min(limit, len(letters))], len(letters) > limit, nil
}

func (q *letterQueue) Claim(context.Context, string, []string) (relayport.LetterClaim, error) {
	return q, nil
}

func (q *letterQueue) Resubmit(_ context.Context, id string, r relayport.Resubmission) error {
	if id == "9" {
		return errors.New("no room")
	}
	q.done = append(q.done, "sent "+id+string(r.Body))
	return nil
}

func (q *letterQueue) Remove(_ context.Context, id string) error {
	q.done = append(q.done, "removed "+id)
	q.letters = slices.DeleteFunc(slices.Clone(q.letters), func(l relayport.DeadLetter) bool { return l.ID == id })
	return nil
}

func (*letterQueue) Release(context.Context) {}

// deadPort has the use cases of dead letters of a real operator.
type deadPort struct {
	*fake
	operations.Letters
}

func newDeadPort() (deadPort, *letterQueue) {
	q := &letterQueue{}
	for _, l := range []struct{ id, key, reason string }{{"1", "a", "unknown_schema"}, {"2", "a", "unknown_schema"}, {"3", "b", "other"}, {"9", "c", "unknown_schema"}, {"10", "c", "unknown_schema"}, {"11", "d", "unknown_schema"}} {
		q.letters = append(q.letters, relayport.DeadLetter{
			ID: l.id, Event: "event-" + l.id, Key: l.key, Reason: l.reason, Description: "no decoder", Body: []byte(`{"a":"<script>"}`), Headers: map[string]string{"sequence": "7"},
		})
	}
	o := operator.New(&config.Relay{Broker: config.Broker{Consumers: []string{"billing", "audit"}}}, operator.Store{}, &operator.Broker{DeadLetters: q, Doctor: q})
	return deadPort{crowd(1, 0), o}, q
}

func TestDeadLettersAreShownWithTheirReason(t *testing.T) {
	port, _ := newDeadPort()
	get := serve(t, port)
	for path, wants := range map[string][]string{
		"/dead":                                      {"unknown_schema", "no decoder", "event-3", "audit", "1 to 6 of 6", "Discard …"},
		"/dead?consumer=billing&reason=other":        {"1 to 1 of 1", "event-3"},
		"/dead/letters/2?consumer=billing":           {"event-2", "&lt;script&gt;", "sequence", "Correct it …"},
		"/dead/resubmit?consumer=billing&key=a":      {"2 dead letters of 1 keys go to billing again", "topic contacts", "the inbox of the consumer drops it", "Type <b>2</b>"},
		"/dead/resubmit?consumer=billing&letter=2":   {"No letter can be sent again", "Left out"},
		"/dead/discard?consumer=billing&reason=none": {"No dead letter matches"},
		"/dead/discard?consumer=billing&reason=":     {"No dead letter matches"},
		"/dead/resubmit?consumer=billing&key=":       {"No letter can be sent again"},
	} {
		body := get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
}

// A key stops at its first failure, and the next key continues.
func TestActsOnDeadLettersKeepTheOrderOfKeys(t *testing.T) {
	for _, c := range []struct {
		path, sees string
		done       []string
	}{
		{"/dead/resubmit?consumer=billing&key=a", "Sent again: 2 of 2", []string{"sent 1", "removed 1", "sent 2", "removed 2"}},
		{"/dead/resubmit?consumer=billing&reason=unknown_schema", "Key c stopped at letter 9, 2 letters remain: no room", []string{"sent 1", "removed 1", "sent 2", "removed 2", "sent 11", "removed 11"}},
		{"/dead/edit?consumer=billing&letter=3&body=%7B%22b%22:1%7D", "Sent again: 1 of 1", []string{`sent 3{"b":1}`, "removed 3"}},
		{"/dead/discard?consumer=billing&letter=3", "Discarded: 1 of 1", []string{"removed 3"}},
	} {
		port, q := newDeadPort()
		if body := act(t, port, c.path, 0, c.sees); !strings.Contains(body, c.sees) || !slices.Equal(q.done, c.done) {
			t.Errorf("%s: %q, want %q; the page:\n%s", c.path, q.done, c.done, body)
		}
	}
}

// A letter may arrive or leave between a preview and its act, even if the preview is confirmed at once.
func TestActOnDeadLettersStopsIfOthersMatchThanInItsPreview(t *testing.T) {
	for _, path := range []string{"/dead/discard?consumer=billing&key=a", "/dead/resubmit?consumer=billing&key=a", "/dead/edit?consumer=billing&letter=1&body=%7B%7D"} {
		for what, from := range map[string]int{"arrives": 0, "leaves": 1} {
			port, q := newDeadPort()
			q.next = slices.Insert(slices.Clone(q.letters), 0, relayport.DeadLetter{ID: "0", Key: "a", Reason: "other"})
			if from > 0 {
				q.next = q.letters[from:]
			}
			const want = "dead letters have changed"
			if body := act(t, port, path, 0, want); !strings.Contains(body, want) || len(q.done) > 0 {
				t.Errorf("%s, a letter %s: %q; the page:\n%s", path, what, q.done, body)
			}
		}
	}
}

func TestAnotherOrderOfDeadLettersDoesNotStopAnAct(t *testing.T) {
	for _, path := range []string{"/dead/discard?consumer=billing&key=a", "/dead/resubmit?consumer=billing&reason=unknown_schema"} {
		port, q := newDeadPort()
		q.next = slices.Clone(q.letters)
		slices.Reverse(q.next)
		if body := act(t, port, path, 0, "dead letters"); len(q.done) == 0 {
			t.Errorf("%s: nothing was done; the page:\n%s", path, body)
		}
	}
}

func TestReadersSeeDeadLettersWithoutActs(t *testing.T) {
	port, _ := newDeadPort()
	p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: port}).Sections()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for path, want := range map[string]int{"/dead": http.StatusOK, "/dead/letters/1": http.StatusOK, "/dead/discard?letter=1": http.StatusForbidden} {
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if body := reply.Body.String(); reply.Code != want || strings.Contains(body, "Discard") || strings.Contains(body, "again …") {
			t.Errorf("%s: %d %s", path, reply.Code, body)
		}
	}
}
