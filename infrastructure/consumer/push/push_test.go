package push

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/pipenet"
)

// bubble runs test in a synctest bubble, with a receiver that answers by serve.
func bubble(t *testing.T, o Options, serve http.HandlerFunc, test func(t *testing.T, s *Sender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		transport, stop, err := pipenet.Serve("receiver:80", serve)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		o.To, o.Transport, o.Logger = "http://receiver:80/events", transport, cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

func event(key string, n int64) *consumer.Event {
	return &consumer.Event{ID: fmt.Sprintf("%s-%d", key, n), Key: key, Action: "OrderPaid", Sequence: n, Body: []byte(`{"n":1}`)}
}

// handle returns the result of s for an event within a time; errHeld if there is none.
func handle(t *testing.T, s *Sender, within time.Duration, e *consumer.Event) error {
	ctx, cancel := context.WithTimeoutCause(t.Context(), within, errHeld)
	defer cancel()
	return s.Handle(ctx, e)
}

var errHeld = errors.New("held")

func TestStatusDecidesTheOutcome(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		want     string
	}{
		{[]int{200, 201, 202, 204}, ""},
		{[]int{409, 410, 422}, "dead letter: refused_"},
		{[]int{300, 301, 307, 400, 401, 403, 404, 405, 413, 415}, "held"},
		{[]int{408, 425, 429, 500, 502, 503, 504}, "held"},
	} {
		for _, status := range c.statuses {
			requests := 0
			bubble(t, Options{Attempts: 3}, func(w http.ResponseWriter, r *http.Request) {
				if requests++; r.URL.Path != "/events" {
					t.Errorf("%d: the redirect to %s is followed", status, r.URL.Path)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "not today\x00\n")
			}, func(t *testing.T, s *Sender) {
				err := handle(t, s, 10*time.Minute, event("a", 1))
				if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.HasPrefix(got, c.want) {
					t.Errorf("%d: %v, want %q", status, err, c.want)
				}
				if c.want != "held" && requests != 1 || c.want == "held" && (requests < 15 || requests > 200) {
					t.Errorf("%d: %d requests in ten minutes", status, requests)
				}
				if dead, ok := errors.AsType[*consumer.DeadLetterError](err); ok && !strings.HasSuffix(dead.Description(), ": not today") {
					t.Errorf("%d: the description has no reason of the receiver: %q", status, dead.Description())
				}
			})
		}
	}
}

// Retry-After pauses all keys until that time and spends no attempt.
func TestRetryAfterPausesEveryKey(t *testing.T) {
	for name, value := range map[string]func() string{
		"seconds": func() string { return "90" },
		"date":    func() string { return time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat) },
		"capped":  func() string { return "99999999" },
		"huge":    func() string { return "99999999999999999999" },
	} {
		for _, status := range []int{429, 503} {
			want := 90 * time.Second
			if name == "capped" || name == "huge" {
				want = time.Hour
			}
			var mu sync.Mutex
			requests := 0
			bubble(t, Options{Attempts: 1}, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if requests++; requests == 1 {
					w.Header().Set("Retry-After", value())
					w.WriteHeader(status)
				}
			}, func(t *testing.T, s *Sender) {
				began := time.Now()
				var keys sync.WaitGroup
				for _, key := range []string{"a", "b", "c", "d", "e"} {
					keys.Go(func() {
						if key != "a" {
							time.Sleep(time.Second) // of the bubble: after the answer to a
						}
						if err := handle(t, s, 2*time.Hour, event(key, 1)); err != nil {
							t.Errorf("%s, %d: key %s: %v", name, status, key, err)
						}
						if waited := time.Since(began); waited < want || waited > want+5*time.Second {
							t.Errorf("%s, %d: key %s waited %s, want %s", name, status, key, waited, want)
						}
					})
				}
				keys.Wait()
			})
		}
	}
}

// An answer to a request that was sent before the receiver asked to wait does not end the wait or shorten it.
func TestRetryAfterOutlastsRequestsUnderWay(t *testing.T) {
	var mu sync.Mutex
	limited, vague := false, false
	bubble(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Webhook-Id") {
		case "vague-1":
			mu.Lock()
			first := !vague
			vague = true
			mu.Unlock()
			if first {
				time.Sleep(time.Second)
				w.WriteHeader(http.StatusTooManyRequests) // without Retry-After
			}
		case "slow-1":
			time.Sleep(time.Second) // of the bubble: the answer arrives after that to limited
		case "limited-1":
			mu.Lock()
			first := !limited
			limited = true
			mu.Unlock()
			if first {
				w.Header().Set("Retry-After", "90")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}
	}, func(t *testing.T, s *Sender) {
		began := time.Now()
		var keys sync.WaitGroup
		for key, c := range map[string]struct{ start, least time.Duration }{
			"slow": {0, time.Second}, "vague": {0, 90 * time.Second}, "limited": {500 * time.Millisecond, 90 * time.Second}, "other": {2 * time.Second, 90 * time.Second},
		} {
			keys.Go(func() {
				time.Sleep(c.start)
				if err := handle(t, s, time.Hour, event(key, 1)); err != nil {
					t.Errorf("key %s: %v", key, err)
				}
				if done := time.Since(began); done < c.least || done > c.least+5*time.Second {
					t.Errorf("key %s was accepted after %s, want %s", key, done, c.least)
				}
			})
		}
		keys.Wait()
	})
}

// A receiver that asks to wait for no time is not sent to in a busy loop.
func TestRetryAfterZeroBacksOff(t *testing.T) {
	requests := 0
	bubble(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests < 1000 { // otherwise a busy loop would not let the time of the bubble pass
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, func(t *testing.T, s *Sender) {
		if err := handle(t, s, 10*time.Minute, event("a", 1)); !errors.Is(err, errHeld) || requests > 200 {
			t.Errorf("%v after %d requests in ten minutes", err, requests)
		}
	})
}

// The default transport uses HTTP/2 where the receiver offers it over TLS.
func TestHTTP2IsUsedOverTLS(t *testing.T) {
	for _, major := range []int{1, 2} {
		var got atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(int64(r.ProtoMajor)) }))
		server.EnableHTTP2 = major == 2
		server.StartTLS()
		s, err := New(Options{To: server.URL, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s.o.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		if err := handle(t, s, time.Minute, event("a", 1)); err != nil || got.Load() != int64(major) {
			t.Errorf("%v by HTTP/%d, want HTTP/%d", err, got.Load(), major)
		}
		s.client.CloseIdleConnections()
		server.Close()
	}
}

// A receiver that is down gets one request at a time, whatever the policies of the events, and no event uses an
// attempt.
func TestOutageIsProbedByOneKey(t *testing.T) {
	const outage = 10 * time.Minute
	var log bytes.Buffer
	var mu sync.Mutex
	down, late, inside, most := true, 0, 0, 0
	bubble(t, Options{Attempts: 2, Logger: slog.New(slog.NewTextHandler(&log, nil)), Policies: map[string]consumer.Policy{"impatient": {Attempts: 1, RetryDelay: 100 * time.Millisecond, RetryDelayMax: time.Second}}}, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		isDown := down
		if inside++; isDown && time.Now().Second() > 0 {
			late++
			most = max(most, inside)
		}
		mu.Unlock()
		if isDown {
			time.Sleep(10 * time.Millisecond)
			w.WriteHeader(http.StatusBadGateway)
		}
		mu.Lock()
		inside--
		mu.Unlock()
	}, func(t *testing.T, s *Sender) {
		time.AfterFunc(outage, func() {
			mu.Lock()
			defer mu.Unlock()
			down = false
		})
		var keys sync.WaitGroup
		for n := range 40 {
			keys.Go(func() {
				e := event(fmt.Sprint("key", n), 1)
				e.Action = []string{"OrderPaid", "impatient"}[n%2]
				if err := handle(t, s, time.Hour, e); err != nil {
					t.Errorf("key %d: %v", n, err)
				}
			})
		}
		keys.Wait()
		if most > 1 || late > 300 {
			t.Errorf("%d requests during the outage, up to %d at a time; want one every 4 to 6 s", late, most)
		}
	})
	// The receiver was down for 10 minutes, and a probe begins every 6 s at most.
	resumed := regexp.MustCompile(`push resumed: the receiver answers" paused=(9m[45]|10m)\d`).FindAllString(log.String(), -1)
	if n := strings.Count(log.String(), "push paused: "); n != 1 || len(resumed) != 1 {
		t.Errorf("the log of one outage:\n%s", &log)
	}
}

// The pauses of an outage do not begin with the length of those of the outage before.
func TestNextOutageBeginsWithAShortPause(t *testing.T) {
	var down atomic.Bool
	bubble(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	}, func(t *testing.T, s *Sender) {
		for n, c := range []struct{ outage, most time.Duration }{{10 * time.Minute, 11 * time.Minute}, {200 * time.Millisecond, 2 * time.Second}} {
			down.Store(true)
			began := time.Now()
			time.AfterFunc(c.outage, func() { down.Store(false) })
			var keys sync.WaitGroup
			for key := range minFailingKeys {
				keys.Go(func() {
					if err := handle(t, s, time.Hour, event(fmt.Sprint("key", key), int64(n+1))); err != nil {
						t.Errorf("outage %d: key %d: %v", n, key, err)
					}
				})
			}
			keys.Wait()
			if took := time.Since(began); took > c.most {
				t.Errorf("outage %d of %s: all keys were accepted after %s, want at most %s", n, c.outage, took, c.most)
			}
		}
	})
}

// A key that fails alone is refused after Options.Attempts; without that option it is held.
func TestAttemptsCountWhileOtherKeysAreAccepted(t *testing.T) {
	for attempts, status := range map[int]int{0: http.StatusInternalServerError, 3: http.StatusInternalServerError, 4: http.StatusServiceUnavailable} {
		bubble(t, Options{Attempts: attempts, RetryDelay: time.Second}, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Webhook-Id") == "poison-1" {
				w.WriteHeader(status) // without Retry-After
			}
		}, func(t *testing.T, s *Sender) {
			ctx, cancel := context.WithCancel(t.Context())
			var others sync.WaitGroup
			others.Go(func() {
				for n := int64(1); ctx.Err() == nil; n++ {
					_ = s.Handle(ctx, event("other", n))
					time.Sleep(100 * time.Millisecond)
				}
			})
			err := handle(t, s, 5*time.Minute, event("poison", 1))
			cancel()
			others.Wait()
			want := "held"
			if attempts > 0 {
				want = "dead letter: " + consumer.ReasonAttempts
			}
			if !strings.HasPrefix(fmt.Sprint(err), want) {
				t.Errorf("Attempts %d: %v, want %s", attempts, err, want)
			}
		})
	}
}

// Each action has its own statuses, attempts, pauses and timeout. The others have those of the options.
// Each case has its own sender: several failing keys can open the circuit breaker.
func TestPolicyOfAnActionDecidesAboutItsFailures(t *testing.T) {
	o := Options{Attempts: 20, RetryDelay: time.Second, RetryDelayMax: time.Second, Timeout: 30 * time.Second, Policies: map[string]consumer.Policy{
		"strict":  {IsRefused: func(err error) bool { return Status(err) == 400 || Status(err) == 0 }, Refused: consumer.Drop},
		"patient": {Attempts: -1, RetryDelay: time.Minute, RetryDelayMax: 2 * time.Minute},
		"brief":   {Attempts: 3, Timeout: 2 * time.Second},
	}}
	const within = 10 * time.Minute
	for _, c := range []struct {
		action, kind, want string
		least, most        int64
		took               time.Duration // at most
	}{
		{"strict", "bad", "dead letter: refused_400", 1, 1, time.Second},
		{"other", "bad", "held", 500, 800, within},
		{"strict", "invalid", "held", 500, 800, within},
		{"other", "invalid", "dead letter: refused_422", 1, 1, time.Second},
		{"patient", "failing", "held", 5, 8, within},
		{"other", "failing", "dead letter: too_many_attempts: the receiver answered 500", 20, 21, 30 * time.Second},
		{"brief", "silent", "dead letter: too_many_attempts: Post \"http://receiver:80/events\": no answer within 2s", 3, 3, 10 * time.Second},
		{"other", "silent", "held", 18, 20, within},
	} {
		var requests atomic.Int64 // a silent answer does not synchronise
		bubble(t, o, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Webhook-Id") != "failing-1" {
				return
			}
			requests.Add(1)
			switch c.kind {
			case "bad":
				w.WriteHeader(http.StatusBadRequest)
			case "invalid":
				w.WriteHeader(http.StatusUnprocessableEntity)
			case "failing":
				w.WriteHeader(http.StatusInternalServerError)
			case "silent":
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			}
		}, func(t *testing.T, s *Sender) {
			ctx, cancel := context.WithCancel(t.Context())
			var others sync.WaitGroup
			others.Go(func() { // attempts count while events of other keys are accepted
				for n := int64(1); ctx.Err() == nil; n++ {
					_ = s.Handle(ctx, event("other", n))
					time.Sleep(300 * time.Millisecond)
				}
			})
			began := time.Now()
			e := event("failing", 1)
			e.Action = c.action
			err := handle(t, s, within, e)
			took, got, n := time.Since(began), fmt.Sprint(err), requests.Load()
			cancel()
			others.Wait()
			if took == within {
				got = "held"
			}
			if !strings.HasPrefix(got, c.want) || n < c.least || n > c.most || took > c.took {
				t.Errorf("%s/%s: %v after %s and %d requests; want %q, %d to %d, within %s", c.action, c.kind, err, took, n, c.want, c.least, c.most, c.took)
			}
			// The kit would spend deliveries on attempts, and end held events by its timeout.
			if got := s.Treatments(); !reflect.DeepEqual(got, map[string]consumer.Policy{"strict": {Refused: consumer.Drop}, "patient": {}, "brief": {}}) {
				t.Errorf("policies of the kit: %+v", got)
			}
		})
	}
}

// A silent receiver and an endless answer end with the timeout of the request.
func TestEachRequestHasADeadline(t *testing.T) {
	for _, answers := range []bool{false, true} {
		requests := 0
		bubble(t, Options{Timeout: 5 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests > 1 {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body) // then the server notices the end of the connection
			for ; answers && r.Context().Err() == nil; time.Sleep(time.Second) {
				_, _ = io.WriteString(w, "more")
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}, func(t *testing.T, s *Sender) {
			began := time.Now()
			if err := handle(t, s, time.Minute, event("a", 1)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
				t.Errorf("answers %v: took %s", answers, took)
			}
		})
	}
}

// cut is a transport whose connections fail.
type cut struct{}

func (cut) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// The timeout of a request is the cause of its error only if it has ended the request.
func TestErrorOfAConnectionHasNoOtherCause(t *testing.T) {
	s, err := New(Options{To: "http://receiver/events", Transport: cut{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	want := (&url.Error{Op: "Post", URL: "http://receiver/events", Err: io.ErrUnexpectedEOF}).Error()
	s.Documents(t.Context(), []Document{{ID: []byte(`"1"`), Key: []byte(`"a"`)}}, DocumentOptions{Type: "ContactChanged"}, func(_ int, err error) {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// Stop returns held events at once, so that a drain does not last as long as an outage.
func TestStopReleasesHeldEvents(t *testing.T) {
	bubble(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, func(t *testing.T, s *Sender) {
		began := time.Now()
		time.AfterFunc(time.Second, s.Stop)
		if err := handle(t, s, time.Hour, event("a", 1)); !errors.Is(err, errStopping) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// The example of the Standard Webhooks specification.
func TestSignatureIsThatOfStandardWebhooks(t *testing.T) {
	secret, err := ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	if got := signature(secret[0], "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

// An identity provider that fails holds events like a receiver that is down. Other statuses may refuse.
func TestEachRequestHasAToken(t *testing.T) {
	tokens := 0
	authorize := func(context.Context) (string, error) {
		if tokens++; tokens < 3 {
			return "", errors.New("identity provider away")
		}
		return fmt.Sprint("Bearer ", tokens), nil
	}
	bubble(t, Options{Authorize: authorize, Refused: []int{400}, RetryDelayMax: time.Second, Mode: Binary, Source: "/other"}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer 3" && r.Header.Get("Ce-Source") == "/other" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}, func(t *testing.T, s *Sender) {
		began := time.Now()
		dead, ok := errors.AsType[*consumer.DeadLetterError](handle(t, s, time.Minute, event("a", 1)))
		if !ok || dead.Reason != "refused_400" || time.Since(began) > 4*time.Second {
			t.Errorf("%v after %s", dead, time.Since(began))
		}
	})
}

// A token that cannot be had says nothing about the event that waits for it, also while others have one.
func TestMissingTokenUsesNoAttempt(t *testing.T) {
	type unlucky struct{}
	authorize := func(ctx context.Context) (string, error) {
		if ctx.Value(unlucky{}) != nil {
			return "", errors.New("identity provider away")
		}
		return "Bearer 1", nil
	}
	bubble(t, Options{Authorize: authorize, Attempts: 2, RetryDelay: time.Second}, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, s *Sender) {
		ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), unlucky{}, true), 5*time.Minute, errHeld)
		defer cancel()
		var held error
		var waiting sync.WaitGroup
		waiting.Go(func() { held = s.Handle(ctx, event("a", 1)) })
		for n := int64(1); ctx.Err() == nil; n++ {
			if err := s.Handle(t.Context(), event("other", n)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		waiting.Wait()
		if !errors.Is(held, errHeld) {
			t.Errorf("%v; want the event held", held)
		}
	})
}

// During a rotation each request has a signature by both secrets.
func TestEachSecretSigns(t *testing.T) {
	secrets := [][]byte{[]byte("the old one"), []byte("the new one")}
	bubble(t, Options{Secrets: secrets}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id, at, given := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), strings.Fields(r.Header.Get("Webhook-Signature"))
		if len(given) != 2 || given[0] != signature(secrets[0], id, at, body) || given[1] != signature(secrets[1], id, at, body) || id != "a%20-1" {
			w.WriteHeader(http.StatusConflict)
		}
	}, func(t *testing.T, s *Sender) {
		e := event("a", 1)
		e.ID = "a -1"
		if err := handle(t, s, time.Minute, e); err != nil {
			t.Error(err)
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{
		{},
		{To: "ftp://host/"},
		{To: "https://user:password@host/"},
		{To: "https://host", Mode: "xml"},
		{To: "https://host", Attempts: -1},
		{To: "https://host", Mode: Binary, Secrets: [][]byte{{1}}},
		{To: "https://host", RetryDelay: time.Hour},
		{To: "https://host", Policies: map[string]consumer.Policy{"OrderPaid": {Timeout: -1}}},
		{To: "https://host", Policies: map[string]consumer.Policy{"OrderPaid": {Dependency: "crm"}}},
		{To: "https://host", Policies: map[string]consumer.Policy{"OrderPaid": {IsUnavailable: func(error) bool { return true }}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	for _, text := range []string{"short", "whsec_%%%", "whsec_c2hvcnQ=", "whsec_" + strings.Repeat("QUJD", 8) + "%"} {
		if _, err := ParseSecrets(text); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("secret %q: %v", text, err)
		}
	}
	if keys, err := ParseSecrets("whsec_" + strings.Repeat("QUJD", 8) + ", " + strings.Repeat("x", 24)); err != nil || len(keys) != 2 || string(keys[0]) != strings.Repeat("ABC", 8) || !slices.Equal(keys[1], []byte(strings.Repeat("x", 24))) {
		t.Errorf("%q, %v", keys, err)
	}
}
