package wiring

import (
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// clockSkew learns from the Date header of replies (RFC 9110, 6.6.1) how far the
// clock of this machine is ahead of the service's.
type clockSkew struct {
	mu    sync.Mutex // guards known, ahead
	known bool
	ahead time.Duration
}

var _ policy.Policy = (*clockSkew)(nil)

// Do implements policy.Policy.
func (s *clockSkew) Do(req *policy.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := req.Next()
	if resp == nil {
		return resp, err
	}
	if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil {
		now := time.Now()
		// The header is cut to the second and was written somewhere between the two
		// readings; the middle of both intervals is off by little.
		middle := began.Add(now.Sub(began) / 2)
		s.mu.Lock()
		s.known, s.ahead = true, middle.Sub(date.Add(500*time.Millisecond))
		s.mu.Unlock()
	}
	return resp, err
}

func (s *clockSkew) value() (ahead time.Duration, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead, s.known
}
