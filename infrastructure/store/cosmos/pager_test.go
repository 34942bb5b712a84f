package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// thing is a row and an item.
type thing struct {
	ID uuid.UUID `json:"id"`
}

var things = Listing[thing, thing]{Query: "SELECT c.id FROM c WHERE c.type = @type", Type: "thing", Item: func(row thing) (thing, error) { return row, nil }}

// rows answers a query with n rows and a continuation. It records the requested page size and
// continuation.
func rows(n int, continuation string, asked *[]string) answer {
	items := make([]string, n)
	for i := range items {
		items[i] = `{"id":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2"}`
	}
	body := fmt.Sprintf(`{"Documents":[%s],"_count":%d}`, strings.Join(items, ","), n)
	return func(r *http.Request) (*http.Response, error) {
		*asked = append(*asked, fmt.Sprint(r.Header.Get("x-ms-max-item-count"), r.Header.Values("x-ms-continuation")))
		return respond(http.StatusOK, body, "x-ms-continuation", continuation, store.HeaderSession, "0:-1#5")(r)
	}
}

// Pages of the store may be short or empty; ours are full until the end.
func TestPageIsFilledFromShortStorePages(t *testing.T) {
	t.Parallel()
	var asked []string
	container, s := play(t, rows(3, "a", &asked), rows(0, "b", &asked), rows(7, "c", &asked), rows(2, "", &asked))
	reader, err := NewPager(container, things)
	if err != nil {
		t.Fatal(err)
	}
	page, err := reader.Page(t.Context(), 10, "", "0:-1#2")
	if got := s.requests[0].Header.Get(store.HeaderSession); got != "0:-1#2" {
		t.Errorf("asked with the session %q", got)
	}
	if err != nil || len(page.Items) != 10 || page.Continuation != "c" || page.SessionToken != "0:-1#5" {
		t.Errorf("%d items, continuation %q, session %q, %v", len(page.Items), page.Continuation, page.SessionToken, err)
	}
	page, err = reader.Page(t.Context(), 10, page.Continuation, "")
	if err != nil || len(page.Items) != 2 || page.Continuation != "" {
		t.Errorf("the last page: %d items, continuation %q, %v", len(page.Items), page.Continuation, err)
	}
	if want := []string{"10[]", "7[a]", "7[b]", "10[c]"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q; want %q", asked, want)
	}
}

func TestPageEndsIfStorePagesStayEmpty(t *testing.T) {
	t.Parallel()
	var asked []string
	var answers []answer
	for range maxFetches {
		answers = append(answers, rows(0, "on", &asked))
	}
	container, s := play(t, answers...)
	reader, _ := NewPager(container, things)
	page, err := reader.Page(t.Context(), 10, "", "")
	if err != nil || page.Items == nil || len(page.Items) != 0 || page.Continuation != "on" || len(s.answers) != 0 {
		t.Errorf("%d items, continuation %q, %v, %d requests left", len(page.Items), page.Continuation, err, len(s.answers))
	}
}

func TestPageFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		continuation string
		answer       answer
		kind         fault.Kind
	}{
		"a refused continuation": {"x", status(http.StatusBadRequest), fault.Invalid},
		"a refused query":        {"", status(http.StatusBadRequest), fault.Internal},
		"forbidden":              {"x", status(http.StatusForbidden), fault.Internal},
		"a row of another shape": {"", respond(http.StatusOK, `{"Documents":[{"id":7}]}`), fault.Internal},
		"a row that is no item":  {"", rows(1, "", new([]string)), fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			container, _ := play(t, test.answer)
			listing := things
			if name == "a row that is no item" {
				listing.Item = func(thing) (thing, error) { return thing{}, errors.New("no item") }
			}
			reader, _ := NewPager(container, listing)
			if _, err := reader.Page(t.Context(), 10, test.continuation, ""); err == nil || fault.KindOf(err) != test.kind {
				t.Errorf("%v; want %s", err, test.kind)
			}
		})
	}
}

func TestCanceledPageIsUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	container, _ := play(t, func(*http.Request) (*http.Response, error) {
		cancel()
		return nil, context.Canceled
	})
	reader, _ := NewPager(container, things)
	if _, err := reader.Page(ctx, 10, "x", ""); !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want that it was canceled, without blame of the continuation", err)
	}
}
