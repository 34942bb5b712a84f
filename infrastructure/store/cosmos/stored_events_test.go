package cosmos

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

func storedEventText(id string, sequence, changed int) string {
	return fmt.Sprintf(`{"id":%q,"partitionKey":"k","type":"domainEvent","data":{"action":"A","sequence":%d},"_ts":%d}`, id, sequence, changed)
}

func TestStoredEventsAreOrderedBySequence(t *testing.T) {
	t.Parallel()
	container, _ := play(t,
		respond(http.StatusOK, fmt.Sprintf(`{"Documents":[%s,{"id":"x","type":"other","sequence":1},%s],"_count":3}`, storedEventText("b", 2, 20), storedEventText("c", 3, 30)), "x-ms-continuation", "more"),
		respond(http.StatusOK, fmt.Sprintf(`{"Documents":[%s],"_count":1}`, storedEventText("a", 1, 10))))
	events, err := EventStore{container: container}.OfKey(t.Context(), "k")
	if err != nil || len(events) != 3 {
		t.Fatalf("%+v, %v", events, err)
	}
	for i, want := range []struct {
		id       string
		index    int
		storedAt int64
	}{{"a", 2, 10}, {"b", 0, 20}, {"c", 1, 30}} {
		if e := events[i]; e.ID != want.id || e.Index != want.index || e.StoredAt.Unix() != want.storedAt || e.Key != "k" {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}

func TestStoredEventsFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer answer
		kind   fault.Kind
	}{
		"an event without an action": {respond(http.StatusOK, `{"Documents":[{"id":"a","partitionKey":"k","type":"domainEvent","data":{}}],"_count":1}`), fault.Invalid},
		"a time that is none":        {respond(http.StatusOK, `{"Documents":[{"id":"a","partitionKey":"k","type":"domainEvent","data":{"action":"A"},"_ts":"x"}],"_count":1}`), fault.Internal},
		"a store that refuses":       {status(http.StatusForbidden), fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			container, _ := play(t, test.answer)
			if _, err := (EventStore{container: container}).OfKey(t.Context(), "k"); err == nil || fault.KindOf(err) != test.kind {
				t.Errorf("%v; want %s", err, test.kind)
			}
		})
	}
}

func TestListOfEventsNamesTheMissingRole(t *testing.T) {
	t.Parallel()
	container, _ := play(t, status(http.StatusForbidden))
	_, err := EventStore{container: container}.Recent(t.Context(), relay.RecentQuery{Limit: 1})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "Data Reader") {
		t.Error(err)
	}
}
