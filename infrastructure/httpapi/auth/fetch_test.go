package auth

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type provider struct {
	down  bool
	asked int
}

func (p *provider) RoundTrip(*http.Request) (*http.Response, error) {
	if p.asked++; p.down {
		return nil, errors.New("away")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// Keys are fetched again after the floor, or after a sixth of it if the fetch failed.
// Requests in between do not cause a fetch.
func TestFetchesHaveAMinimumInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{down: true}
		floor := newFloorTransport(p, time.Minute)
		ask := func() error {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://issuer.test/keys", nil)
			response, err := floor.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		}
		for _, step := range []struct {
			after time.Duration
			down  bool
			asked int
			fails bool
		}{
			{0, true, 1, true},
			{9 * time.Second, false, 1, true},
			{2 * time.Second, false, 2, false},
			{59 * time.Second, true, 2, false},
			{2 * time.Second, true, 3, true},
			{11 * time.Second, false, 4, false},
		} {
			time.Sleep(step.after)
			p.down = step.down
			if err := ask(); (err != nil) != step.fails || p.asked != step.asked {
				t.Errorf("after %s more: error %v, %d requests to the provider, want %d", step.after, err, p.asked, step.asked)
			}
		}
	})
}
