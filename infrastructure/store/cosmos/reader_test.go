package cosmos

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

var thingID = uuid.MustParse("b5e2e7aa-4982-4735-9422-c39a7c4af5c2")

var thingView = View[thing]{Type: "thing", Decode: func(data []byte) (t thing, id uuid.UUID, deleted bool, err error) {
	err = json.Unmarshal(data, &t)
	return t, t.ID, true, err
}}

const thingText = `{"id":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2","type":"thing","_etag":"\"e\"","data":{"id":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2"}}`

// A read sends If-None-Match and the session token of the caller.
func TestReaderReturnsStateAndETag(t *testing.T) {
	t.Parallel()
	seen := []string{store.HeaderSession, "0:-1#9"}
	container, s := play(t, respond(http.StatusOK, thingText, seen...), respond(http.StatusNotModified, "", seen...))
	reader, err := NewReader(container, thingView)
	if err != nil {
		t.Fatal(err)
	}
	found, err := reader.Read(t.Context(), thingID, "", "0:-1#2")
	want := query.Found[thing]{State: thing{thingID}, Deleted: true, ETag: `"e"`, SessionToken: "0:-1#9"}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err = reader.Read(t.Context(), thingID, `"e"`, ""); !fault.Is(err, fault.NotModified) || err.Error() != "the thing has not changed" {
		t.Errorf("what was seen: %v", err)
	}
	for i, want := range []http.Header{
		{"If-None-Match": nil, "X-Ms-Session-Token": {"0:-1#2"}}, {"If-None-Match": {`"e"`}, "X-Ms-Session-Token": nil},
	} {
		for name, values := range want {
			if got := s.requests[i].Header.Values(name); !cmp.Equal(got, values) {
				t.Errorf("request %d has the %s %q; want %q", i, name, got, values)
			}
		}
	}
}

func TestReaderReturnsNotFound(t *testing.T) {
	t.Parallel()
	change := func(from, to string) answer {
		return respond(http.StatusOK, strings.Replace(thingText, from, to, 1))
	}
	for name, test := range map[string]struct {
		answer answer
		kind   fault.Kind
		code   string
	}{
		"none":                {status(http.StatusNotFound), fault.NotFound, "thing_not_found"},
		"another type":        {change(`"thing"`, `"other"`), fault.NotFound, "thing_not_found"},
		"forbidden":           {status(http.StatusForbidden), fault.Internal, "internal"},
		"moved":               {status(http.StatusGone), fault.Unavailable, "store_unavailable"},
		"no document":         {respond(http.StatusOK, `[]`), fault.Internal, ""},
		"data of another id":  {change(`"data":{"id":"b`, `"data":{"id":"c`), fault.Internal, ""},
		"data of other shape": {change(`"data":{`, `"data":{"id":7},"x":{`), fault.Internal, ""},
	} {
		container, _ := play(t, test.answer)
		reader, _ := NewReader(container, thingView)
		found, err := reader.Read(t.Context(), thingID, "", "")
		code := ""
		if f, ok := errors.AsType[*fault.Error](err); ok {
			code = f.Code
		}
		if err == nil || fault.KindOf(err) != test.kind || code != test.code || found != (query.Found[thing]{}) {
			t.Errorf("%s: %+v, %v; want %s", name, found, err, test.kind)
		}
	}
}

func TestIncompleteReadersAreRefused(t *testing.T) {
	t.Parallel()
	container, _ := play(t)
	item := things.Item
	for name, err := range map[string]error{
		"a reader without a container": second(NewReader(nil, thingView)),
		"a reader without a type":      second(NewReader(container, View[thing]{Decode: thingView.Decode})),
		"a reader without Decode":      second(NewReader(container, View[thing]{Type: "thing"})),
		"a pager without a container":  second(NewPager(nil, things)),
		"a pager without a query":      second(NewPager(container, Listing[thing, thing]{Type: "thing", Item: item})),
		"a pager without a type":       second(NewPager(container, Listing[thing, thing]{Query: "q", Item: item})),
		"a pager without Item":         second(NewPager(container, Listing[thing, thing]{Query: "q", Type: "thing"})),
		"a JSON reader without a type": second(NewJSONReader[thing](container, "")),
		"audit without a container":    second(NewAuditReader(nil)),
	} {
		if err == nil {
			t.Errorf("%s is made", name)
		}
	}
	named, err := NewReader(container, View[thing]{Type: "thing", Noun: "matter", Decode: thingView.Decode})
	if err != nil || named.view.Noun != "matter" {
		t.Errorf("%+v, %v", named, err)
	}
	if _, err := named.Read(t.Context(), thingID, "", "?"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a session that is none: %v", err)
	}
	pager, _ := NewPager(container, things)
	if _, err := pager.Page(t.Context(), 10, "", "?"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a page with a malformed session: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestAuditTrailReturnsFaultsOfTheStore(t *testing.T) {
	t.Parallel()
	container, s := play(t, rows(0, "", new([]string)), status(http.StatusForbidden))
	audit, _ := NewAuditReader(container)
	page, err := audit.Audit(t.Context(), thingID, 10, "", "0:-1#2")
	if err != nil || page.SessionToken != "0:-1#5" || s.requests[0].Header.Get(store.HeaderSession) != "0:-1#2" {
		t.Errorf("%+v, %v with the session %s", page, err, s.requests[0].Header.Get(store.HeaderSession))
	}
	_, err = audit.Audit(t.Context(), thingID, 10, "", "")
	if err == nil || fault.KindOf(err) != fault.Internal || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "read the audit trail of "+thingID.String()) {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := audit.Audit(t.Context(), thingID, 10, "", "?"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a session that is none: %v", err)
	}
}

// A document of another form is an error, not an aggregate without a state.
func TestJSONReaderRefusesAnotherForm(t *testing.T) {
	t.Parallel()
	container, _ := play(t,
		respond(http.StatusOK, strings.Replace(thingText, `"data":{`, `"data":7,"x":{`, 1)),
		respond(http.StatusOK, `{"Documents":[{"data":7,"_etag":"e"}]}`))
	reader, err := NewJSONReader[thing](container, "thing")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := reader.Read(t.Context(), thingID, "", ""); !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Errorf("read %+v, %v", found, err)
	}
	if page, err := reader.Page(t.Context(), 10, "", ""); !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Errorf("page %+v, %v", page, err)
	}
}

func TestReplaceWithoutTheRightIsForbidden(t *testing.T) {
	t.Parallel()
	container, _ := play(t, status(http.StatusForbidden), status(http.StatusBadRequest))
	err := EventStore{container: container}.Replace(t.Context(), "k", "e", []byte(`{}`), `"e"`)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Conflict || f.Code != "forbidden" {
		t.Errorf("%v", err)
	}
	if err = (EventStore{container: container}).Replace(t.Context(), "k", "e", []byte(`{}`), `"e"`); err == nil || fault.KindOf(err) != fault.Internal {
		t.Errorf("%v", err)
	}
}
