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

// Options adjust a Server. The zero value of each field, and a nil *Options,
// mean the documented default.
type Options struct {
	// Title and Description begin the OpenAPI document. Default "Feedbox orders", if that
	// is what the resources are, and that their changes are published.
	Title, Description string

	// Logger receives one line per request; default none.
	Logger *slog.Logger
	// Meters makes the instruments; default none.
	Meters metric.MeterProvider
	// Tracers makes a span per request; default none. Requests have a trace
	// id in either case.
	Tracers trace.TracerProvider

	// MaxBody bounds a request body in bytes; default 64 KB.
	MaxBody int64
	// RequestTimeout bounds the handling of one request; default 20 s. Then
	// the answer is 503.
	RequestTimeout time.Duration
	// DrainTimeout bounds the graceful stop; default 20 s.
	DrainTimeout time.Duration

	// Auth finds out who calls; default auth.Open, everybody.
	Auth auth.Authenticator
	// RateLimit is how many requests per second each principal may make on
	// average, and RateBurst how many at once; beyond is 429. Default 100 and
	// twice RateLimit; a negative RateLimit is no limit. Requests that are refused
	// before the principal is known count for the address they come from. The
	// anonymous principal of auth.Open has no limit, nor have refusals then.
	RateLimit float64
	RateBurst int
	// MaxInFlight bounds the requests handled at the same time; beyond is 503. A
	// request counts once its body has arrived. Default 512; negative is no limit.
	MaxInFlight int
	// MaxConnections bounds the open connections. One more takes the place of the one
	// that has been without a request for longest; it is closed if all have one. Default
	// 2000, negative is no limit. A connection takes some 20 KB, and up to MaxBody more
	// while a body arrives.
	MaxConnections int

	// RequirePrecondition refuses updates and deletions that carry no
	// If-Match with 428; default false.
	RequirePrecondition bool
	// Audit offers the audit trail of each aggregate, where its resource has a route for
	// it; the application must keep one. Default false.
	Audit bool
	// TokenKeys protect continuation tokens: the first seals, all open. Each
	// has at least 32 bytes. Default one random key, so that tokens end with
	// the process and are not understood by another.
	TokenKeys [][]byte
	// Home serves GET /; default 404.
	Home http.Handler
	// PublicURL is what clients call, such as https://api.contoso.example,
	// for absolute links. Default none: links are relative, without scheme and host.
	PublicURL string
}

// minTokenKey is the least length of a token key in bytes.
const minTokenKey = 32

func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.Meters == nil {
		out.Meters = metricnoop.NewMeterProvider()
	}
	if out.Tracers == nil {
		out.Tracers = tracenoop.NewTracerProvider()
	}
	if out.Auth == nil {
		out.Auth = auth.Open{}
	}
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
			faults = append(faults, fmt.Errorf("token key %d has %d bytes, at least %d are needed", i+1, len(key), minTokenKey))
		}
	}
	if o.PublicURL != "" {
		if u, err := url.Parse(o.PublicURL); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" {
			faults = append(faults, errors.New("PublicURL must be an http or https URL without a query"))
		}
	}
	return errors.Join(faults...)
}
