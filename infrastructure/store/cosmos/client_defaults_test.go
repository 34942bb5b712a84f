package cosmos

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A throttled read is retried three times with short waits, and carries a user agent.
func TestDefaultsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttled := status(http.StatusTooManyRequests)
		container, s := play(t, throttled, throttled, throttled, throttled)
		began := time.Now()
		if _, err := container.ReadItem(t.Context(), keyValue("k"), "a", nil); err == nil {
			t.Error("read")
		}
		if took := time.Since(began); len(s.requests) != 4 || took < 300*time.Millisecond || took > 3*time.Second {
			t.Errorf("%d requests in %s; want 4 in a second or so", len(s.requests), took)
		}
		if got := s.requests[0].Header.Get("User-Agent"); !strings.HasPrefix(got, "feedbox ") {
			t.Errorf("User-Agent %q", got)
		}
	})
}
