package operator

import (
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Clock learns from the Date header of replies (RFC 9110, 6.6.1) how far the
// clock of this machine is ahead of the service's.
type Clock struct {
	mu    sync.Mutex // guards known, ahead
	known bool
	ahead time.Duration
}

var _ policy.Policy = (*Clock)(nil)

// Do implements policy.Policy.
func (c *Clock) Do(req *policy.Request) (*http.Response, error) {
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
		c.mu.Lock()
		c.known, c.ahead = true, middle.Sub(date.Add(500*time.Millisecond))
		c.mu.Unlock()
	}
	return resp, err
}

func (c *Clock) skew() (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}
