package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"feedbox/infrastructure/httpapi/auth"
)

// Options configures a Server. The zero value of each field, and a nil *Options, mean the
// documented default.
type Options struct {
	// Title and Description are the info of the OpenAPI document. Default "Feedbox orders"
	// for orders, and that every change is published.
	Title, Description string

	// Logger receives one line per request; default none.
	Logger *slog.Logger
	// Meters creates the instruments; default none.
	Meters metric.MeterProvider
	// Tracers creates a span per request; default none. Requests always have a trace id.
	Tracers trace.TracerProvider

	// MaxBody bounds a request body in bytes; default 64 KB.
	MaxBody int64
	// RequestTimeout bounds the handling of one request; default 20 s. After it the answer
	// is 503.
	RequestTimeout time.Duration
	// DrainTimeout bounds the graceful shutdown; default 20 s.
	DrainTimeout time.Duration

	// Auth authenticates callers; default auth.Open, which admits all.
	Auth auth.Authenticator
	// RateLimit is the average rate of each principal in requests per second, and RateBurst
	// the number at once; more are answered with 429. Default 100 and twice RateLimit; a
	// negative RateLimit means unlimited. Requests that are refused before authentication
	// count for their remote address. With auth.Open there is no rate limit.
	RateLimit float64
	RateBurst int
	// MaxInFlight bounds the requests in flight; more are answered with 503. A caller may have
	// as many as are free, alone half of them; more are answered with 429. A request counts
	// once its body has arrived. Default 512; negative means unlimited.
	MaxInFlight int
	// MaxConnections bounds the open connections. At the limit, a new connection displaces one
	// of the caller or address that has most, unless its request is being handled, see package
	// limit. Default 2000; negative means unlimited. A connection takes about 20 KB, up to
	// MaxBody more while a body arrives, and at most 128 KB in the kernel.
	MaxConnections int
	// MaxConnectionsPerAddress bounds those of one address, for IPv6 of one /64 network.
	// Default only MaxConnections, because behind a proxy all clients have one address.
	MaxConnectionsPerAddress int

	// RequirePrecondition refuses updates and deletions without If-Match with 428; default
	// false.
	RequirePrecondition bool
	// Audit serves the audit trail of each aggregate whose resource has a route for it; the
	// application must store the trail. Default false.
	Audit bool
	// TokenKeys protect continuation tokens: the first seals, all open. Each has at least
	// 32 bytes. The first also makes the pseudonyms of callers in the log. Default one random
	// key, so that tokens are valid, and pseudonyms stable, only in this process.
	TokenKeys [][]byte
	// Home serves GET /; default 404.
	Home http.Handler
	// PublicURL is the address for absolute links, such as https://api.contoso.example.
	// Default none: links are relative, without scheme and host.
	PublicURL string
	// AllowedHosts are host names to answer to on a loopback address, besides localhost, loopback
	// addresses and the host of PublicURL; * is any. Other hosts get 421, because DNS rebinding could make a
	// browser send a web page's requests here. Default none.
	AllowedHosts []string
}

const minTokenKey = 32

func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	out.Logger = cmp.Or(out.Logger, slog.New(slog.DiscardHandler))
	out.Meters = cmp.Or[metric.MeterProvider](out.Meters, metricnoop.NewMeterProvider())
	out.Tracers = cmp.Or[trace.TracerProvider](out.Tracers, tracenoop.NewTracerProvider())
	out.Auth = cmp.Or[auth.Authenticator](out.Auth, auth.Open{})
	out.RateLimit = cmp.Or(out.RateLimit, 100)
	out.RateBurst = cmp.Or(out.RateBurst, max(1, int(2*out.RateLimit)))
	out.MaxInFlight = cmp.Or(out.MaxInFlight, 512)
	out.MaxConnections = cmp.Or(out.MaxConnections, 2000)
	out.MaxBody = cmp.Or(out.MaxBody, 64<<10)
	out.RequestTimeout = cmp.Or(out.RequestTimeout, 20*time.Second)
	out.DrainTimeout = cmp.Or(out.DrainTimeout, 20*time.Second)
	out.PublicURL = strings.TrimSuffix(out.PublicURL, "/")
	return out, out.validate()
}

func (o *Options) validate() error {
	var faults []error
	if o.MaxBody < 0 || o.RequestTimeout < 0 || o.DrainTimeout < 0 {
		faults = append(faults, errors.New("MaxBody, RequestTimeout and DrainTimeout must not be negative"))
	}
	if o.RateBurst < 0 {
		faults = append(faults, errors.New("RateBurst must not be negative"))
	}
	for i, key := range o.TokenKeys {
		if len(key) < minTokenKey {
			faults = append(faults, fmt.Errorf("token key %d has %d bytes, but at least %d are required", i+1, len(key), minTokenKey))
		}
	}
	if o.PublicURL != "" {
		if u, err := url.Parse(o.PublicURL); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" {
			faults = append(faults, errors.New("PublicURL must be an http or https URL without a query"))
		}
	}
	return errors.Join(faults...)
}
