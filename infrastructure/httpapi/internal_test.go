package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A hanging readiness check must not block the prober.
func TestReadinessCheckTimesOutAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := NewOps(&OpsOptions{Ready: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		began, answer := time.Now(), httptest.NewRecorder()
		ops.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if took := time.Since(began); answer.Code != http.StatusServiceUnavailable || took != time.Second {
			t.Errorf("%d after %s, want 503 after a second", answer.Code, took)
		}
	})
}

// An id of the maximum length is echoed, a longer one is not.
func TestLongClientRequestIDsAreNotEchoed(t *testing.T) {
	for length, back := range map[int]bool{1: true, maxClientRequestID: true, maxClientRequestID + 1: false} {
		id := strings.Repeat("x", length)
		h := http.Header{}
		setRequestHeaders(h, &http.Request{Header: http.Header{headerClientRequest: {id}}}, "r")
		if (h.Get(headerClientRequest) == id) != back {
			t.Errorf("an id of %d characters: echoed %q", length, h.Get(headerClientRequest))
		}
	}
}
