package cosmos

import (
	"context"
	"net/http"
	"testing"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Every answer to a read updates the session, and the fault is that of the answer.
func TestReadsOfDocuments(t *testing.T) {
	t.Parallel()
	const document = `{"id":"a","partitionKey":"k","type":"t","ttl":-1,"data":{},"_etag":"\"e\""}`
	replica := (*ContainerContext).read
	primary := (*ContainerContext).readPrimary
	seen := []string{store.HeaderSession, "0:-1#9"}
	for name, test := range map[string]struct {
		read   func(c *ContainerContext, ctx context.Context, partitionKey, id string) (DataObject, error)
		answer answer
		kind   fault.Kind // of the error
		found  bool
	}{
		"a document":                        {read: replica, answer: respond(http.StatusOK, document, seen...), found: true},
		"a document of the primary":         {read: primary, answer: respond(http.StatusOK, `[{"statusCode":200,"resourceBody":`+document+`}]`, seen...), found: true},
		"none":                              {read: replica, answer: status(http.StatusNotFound, seen...), kind: fault.NotFound},
		"none at the primary":               {read: primary, answer: missing(), kind: fault.NotFound},
		"moved":                             {read: replica, answer: status(http.StatusGone, seen...), kind: fault.Unavailable},
		"the primary has moved":             {read: primary, answer: status(http.StatusGone, seen...), kind: fault.Unavailable},
		"forbidden":                         {read: primary, answer: status(http.StatusForbidden, seen...), kind: fault.Internal},
		"the primary is throttled":          {read: primary, answer: refused(http.StatusTooManyRequests), kind: fault.Throttled},
		"the primary gives no result":       {read: primary, answer: respond(http.StatusOK, `[]`, seen...), kind: fault.Unavailable},
		"the primary gives two results":     {read: primary, answer: respond(http.StatusOK, `[{"statusCode":200},{"statusCode":200}]`, seen...), kind: fault.Unavailable},
		"a document that is none":           {read: replica, answer: respond(http.StatusOK, `[]`, seen...), kind: fault.Internal},
		"a document of the primary is none": {read: primary, answer: respond(http.StatusOK, `[{"statusCode":200,"resourceBody":[]}]`, seen...), kind: fault.Internal},
	} {
		container, _ := play(t, test.answer)
		token, _ := store.ParseSession("0:-1#2")
		c := newContainerContext(container, Options{}, token)
		o, err := test.read(&c, t.Context(), "k", "a")
		switch {
		case !test.found && (err == nil || fault.KindOf(err) != test.kind):
			t.Errorf("%s: %v; want %s", name, err, test.kind)
		case test.found && (err != nil || o.ID != "a" || o.Type != "t" || o.ETag != `"e"` || string(o.Data) != `{}`):
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if got := c.session.String(); got != "0:-1#9" {
			t.Errorf("%s: session %s", name, got)
		}
	}
}

func TestMalformedDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "no", `[]`, `{"id":7}`, `{"type":[]}`, `{"_etag":1}`, `{"data":}`, `{"other":}`, `{"id":"a"} more`, `{"id":"a","x":"` + "\xff" + `"}`, `{"id":"a"`} {
		if o, err := decodeObject([]byte(raw)); err == nil || o.ID != "" {
			t.Errorf("%q is %+v", raw, o)
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]int{
		-1: -1, 0: 1, 1: 1, time.Second: 1, 1500 * time.Millisecond: 2, 240 * time.Hour: 864000, maxTTL: 2147483647,
	} {
		if got := seconds(lifetime); got != want {
			t.Errorf("seconds(%s) = %d; want %d", lifetime, got, want)
		}
	}
}
