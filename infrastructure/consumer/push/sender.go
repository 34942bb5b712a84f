package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// Options are the options of New. To is required; zero means the default for all others.
type Options struct {
	To     string // URL of the receiver
	Mode   Mode   // default Structured
	Source string // CloudEvents source; default that of the message
	// Secrets sign each request by the rules of Standard Webhooks. Not with Binary, because the
	// signature does not cover the attributes, which are headers there.
	Secrets [][]byte
	// Authorize returns the header Authorization of a request.
	Authorize func(ctx context.Context) (string, error)
	// Refused are the statuses that refuse an event. Default 409, 410 and 422.
	Refused []int
	// Requests is the number of requests in parallel. Default 64.
	Requests int
	Timeout  time.Duration // of a request. Default 30 s
	// RetryDelay is the pause after the first failure of an event; it doubles up to RetryDelayMax.
	// Defaults 500 ms and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// Attempts is the number of failed attempts after which an event is refused
	// (consumer.ReasonAttempts). Attempts during an outage, without a token and those that show a fault of
	// the set-up do not count. Default: no limit.
	Attempts int
	// Policies are those of some actions, by action; that of "" is for all others. A zero member has the value
	// of these options. Timeout is that of a request, and IsRefused gets the error of an answer (Status). They
	// have no Dependency: the sender itself is the circuit breaker of its receiver. See Sender.Treatments.
	Policies map[string]consumer.Policy
	// Transport carries the requests. Default: HTTP/2 and 1.1.
	Transport http.RoundTripper
	Logger    *slog.Logger // Default: slog.Default
}

// Sender sends events to one receiver. It is safe for concurrent use.
type Sender struct {
	o        Options
	client   *http.Client
	receiver *receiver
	runner   handling.Runner // of the policies; it calls no handler
	requests chan struct{}   // one held for each request
	stopping chan struct{}
	stop     sync.Once
}

// errStopping says nothing about the event, so that it uses no attempt and ends no retry of parked events.
var errStopping = consumer.Unavailable(errors.New("push: stopping; the event is held by the broker"))

// New returns a sender. It does no I/O.
func New(o Options) (*Sender, error) {
	u, err := url.Parse(o.To)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("push: option To must be an http or https URL without user and password")
	}
	o.Mode = cmp.Or(o.Mode, Structured)
	o.Requests, o.Timeout = cmp.Or(o.Requests, 64), cmp.Or(o.Timeout, 30*time.Second)
	o.RetryDelay, o.RetryDelayMax = cmp.Or(o.RetryDelay, 500*time.Millisecond), cmp.Or(o.RetryDelayMax, 30*time.Second)
	if o.Refused == nil {
		o.Refused = []int{http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity}
	}
	switch {
	case o.Mode != Structured && o.Mode != Binary && o.Mode != Batch:
		return nil, fmt.Errorf("push: mode %q is unknown", o.Mode)
	case o.Mode == Binary && len(o.Secrets) > 0:
		return nil, errors.New("push: a signature does not cover the headers that carry the attributes in mode binary; use structured or batch")
	case o.Requests < 0 || o.Timeout < 0 || o.RetryDelay < 0 || o.RetryDelayMax < o.RetryDelay || o.Attempts < 0:
		return nil, errors.New("push: numbers and times must be positive, RetryDelayMax not below RetryDelay")
	}
	if err := handling.CheckPolicies(o.Policies); err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	for action, p := range o.Policies {
		if p.Dependency != "" || p.IsUnavailable != nil {
			return nil, fmt.Errorf("push: policy of %q: Dependency and IsUnavailable have no effect; the receiver is the only dependency", action)
		}
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: o.Requests, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
			// Without pings a silent connection of HTTP/2 would fail every request until its timeout.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
		}
	}
	return &Sender{
		o: o, receiver: newReceiver(cmp.Or(o.Logger, slog.Default())), requests: make(chan struct{}, o.Requests), stopping: make(chan struct{}),
		runner: handling.Runner{RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, Policies: o.Policies},
		client: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Stop makes held events return to the broker, so that a drain does not wait for the receiver.
func (s *Sender) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// Handle is a consumer.Handler. It returns when the receiver has accepted or refused the event, ctx has
// ended or Stop was called.
func (s *Sender) Handle(ctx context.Context, e *consumer.Event) error {
	events := []Event{fromConsumer(e, s.o.Source)}
	for held := (streak{policy: s.runner.Policy(e)}); ; {
		err := s.try(ctx, e.Key, events, &held)
		if final(err) {
			return err
		}
		paused, ok := errors.AsType[*pausedError](err)
		if !ok {
			if reason := s.runner.Refusal(e, err, held.attempts, s.o.Attempts); reason != nil {
				return reason
			}
			paused = &pausedError{until: time.Now().Add(s.runner.BackoffOf(e, held.failures))}
		}
		if err := s.wait(ctx, paused); err != nil {
			return err
		}
	}
}

// Treatments returns the policies of the kit that calls Handle: what happens to refused events. The sender
// applies the other members itself, because a kit on Service Bus spends a delivery on each attempt, and the kit's
// timeout would end the wait of a held event.
func (s *Sender) Treatments() map[string]consumer.Policy {
	all := make(map[string]consumer.Policy, len(s.o.Policies))
	for action, p := range s.o.Policies {
		all[action] = consumer.Policy{Refused: p.Refused}
	}
	return all
}

// final reports whether an event needs no other attempt.
func final(err error) bool {
	_, refused := errors.AsType[*consumer.DeadLetterError](err)
	return err == nil || refused
}

// streak counts the consecutive failures of an event.
type streak struct {
	failures int
	attempts int    // failures that count for Options.Attempts
	began    uint64 // receiver.answered after the first one
	policy   consumer.Policy
}

// pausedError means that nothing was sent, or that the receiver asks to wait.
type pausedError struct {
	until   time.Time
	changed <-chan struct{} // closed when the pause may have ended earlier; nil = never
	err     error
}

func (e *pausedError) Error() string { return "push paused: " + e.err.Error() }
func (e *pausedError) Unwrap() error { return e.err }

// try sends events of one key once. It returns nil, a consumer.DeadLetterError, a pausedError or the
// reason of the failure.
func (s *Sender) try(ctx context.Context, key string, events []Event, held *streak) error {
	select {
	case s.requests <- struct{}{}:
	case <-ctx.Done():
		return &pausedError{until: time.Now(), err: context.Cause(ctx)}
	case <-s.stopping:
		return &pausedError{until: time.Now(), err: errStopping}
	}
	defer func() { <-s.requests }()
	a := s.receiver.admit()
	if a.paused != nil {
		return a.paused
	}
	defer s.receiver.end(a)
	err := s.post(ctx, events, &held.policy)
	if err != nil && ctx.Err() != nil { // says nothing about the receiver
		return &pausedError{until: time.Now(), err: context.Cause(ctx)}
	}
	answer, _ := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		s.receiver.answer(key)
		return nil
	case answer != nil && (answer.outcome == refused || len(events) > 1 && answer.status == http.StatusRequestEntityTooLarge):
		s.receiver.answer(key)
		return consumer.DeadLetter("refused_"+strconv.Itoa(answer.status), err)
	case answer != nil && answer.outcome == throttled:
		return &pausedError{until: s.receiver.throttle(answer.until, err), err: err}
	}
	isSetUp := answer != nil && answer.outcome == misconfigured
	if held.failures++; held.failures == 1 {
		held.began = a.answered
	}
	_, tokenless := errors.AsType[*tokenError](err)
	if s.receiver.fail(a, key, held.began, err) && !isSetUp && !tokenless {
		held.attempts++
	}
	s.logFailure(ctx, key, &events[0], held.failures, isSetUp, err)
	return err
}

// logFailure logs the failures 1, 2, 4, 8 and so on of an event.
func (s *Sender) logFailure(ctx context.Context, key string, e *Event, failures int, isSetUp bool, err error) {
	if failures&(failures-1) != 0 {
		return
	}
	log := s.receiver.log.With("key", key, "event", e.ID, "failures", failures, "error", err)
	if isSetUp {
		log.ErrorContext(ctx, "event held: the receiver's answer shows a fault of the set-up",
			"next", "correct the URL, the secret or the identity; if the status is about this event alone, add it to the refused statuses")
		return
	}
	log.WarnContext(ctx, "event held: the receiver failed")
}

// wait blocks until the end of a pause.
func (s *Sender) wait(ctx context.Context, p *pausedError) error {
	timer := time.NewTimer(time.Until(p.until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-p.changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.stopping:
		return errStopping
	}
}
