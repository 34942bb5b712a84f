package doctor

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"feedbox/infrastructure/operator"
)

// Clock measures the offset of this machine's clock from that of the service, by the Date header
// of replies (RFC 9110, 6.6.1).
type Clock struct {
	mu    sync.Mutex // guards known, ahead
	known bool
	ahead time.Duration
}

// Do implements policy.Policy.
func (c *Clock) Do(req *policy.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := req.Next()
	if resp == nil {
		return resp, err
	}
	if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil {
		now := time.Now()
		// The header is truncated to the second and was written between the two readings, so the
		// middle of both intervals has a small error.
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

// skewFailure is well below 15 minutes, because the service refuses requests dated that far off.
const skewFailure = 5 * time.Minute

func (c *Clock) examine(context.Context) []operator.Finding {
	ahead, known := c.skew()
	f := operator.Clock(ahead, "service", "keep the clock with NTP: ages that are shown are off by this much")
	switch {
	case !known:
		f = operator.Fine("clock", "the service told no time").Is(operator.FindingUnknown, "")
	case ahead.Abs() > skewFailure:
		f = f.Is(operator.FindingFailed, "set the clock, and keep it with NTP: signatures of requests are refused at 15 minutes")
	}
	return []operator.Finding{f}
}
