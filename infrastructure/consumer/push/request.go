package push

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/consumer"
)

const (
	maxAnswer     = 64 << 10  // bytes that are read of an answer, so that its connection can be reused
	maxReason     = 500       // bytes of an answer in an error
	maxRetryAfter = time.Hour // a receiver that asks for more by mistake would stop the push
)

// outcome is the meaning of an answer.
type outcome uint8

const (
	accepted outcome = iota
	refused
	throttled
	failed
	misconfigured
)

// statusError is an answer that does not accept the events.
type statusError struct {
	outcome outcome
	status  int
	text    string    // of the body
	until   time.Time // of throttled; zero = not given
}

func (e *statusError) Error() string {
	text := "the receiver answered " + strconv.Itoa(e.status) + " " + http.StatusText(e.status)
	if e.text != "" {
		text += ": " + e.text
	}
	return strings.TrimRight(text, " ")
}

// Status returns the status of the answer that caused err, or 0 if there was no answer.
func Status(err error) int {
	if answer, ok := errors.AsType[*statusError](err); ok {
		return answer.status
	}
	return 0
}

// noAnswerError is the cause of a timeout.
type noAnswerError time.Duration

func (d noAnswerError) Error() string { return "no answer within " + time.Duration(d).String() }

// tokenError is an error of Options.Authorize. Nothing was sent, so it says nothing about the events.
type tokenError struct{ error }

func (e *tokenError) Error() string { return "get a token for the receiver: " + e.error.Error() }
func (e *tokenError) Unwrap() error { return e.error }

// post sends one request and returns nil if the receiver has accepted it.
func (s *Sender) post(ctx context.Context, events []Event, p *consumer.Policy) error {
	timeout := cmp.Or(p.Timeout, s.o.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, noAnswerError(timeout))
	defer cancel()
	body, header := encode(s.o.Mode, events)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.To, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	s.sign(header, events, body)
	if s.o.Authorize != nil {
		value, err := s.o.Authorize(ctx)
		if err != nil {
			return &tokenError{err}
		}
		header.Set("Authorization", value)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()                    // the status is the result
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // the same
	return s.judge(answer, text, p)
}

// sign adds the headers of Standard Webhooks: an HMAC of id, time and body with each secret, so that a
// secret can be replaced while receivers know either one.
func (s *Sender) sign(header http.Header, events []Event, body []byte) {
	id := events[0].ID
	if len(events) > 1 {
		id += ".." + events[len(events)-1].ID
	}
	id = escape(id)
	header.Set("Webhook-Id", id)
	if len(s.o.Secrets) == 0 {
		return
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	signatures := make([]string, len(s.o.Secrets))
	for i, secret := range s.o.Secrets {
		signatures[i] = signature(secret, id, at, body)
	}
	header.Set("Webhook-Timestamp", at)
	header.Set("Webhook-Signature", strings.Join(signatures, " "))
}

func signature(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(id + "." + at + ".")) // never fails, by its contract
	_, _ = mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// judge returns the meaning of an answer; nil is accepted.
func (s *Sender) judge(answer *http.Response, body []byte, p *consumer.Policy) error {
	e := &statusError{status: answer.StatusCode, text: reason(body)}
	until, given := retryAfter(answer.Header.Get("Retry-After"), time.Now())
	switch {
	case e.status >= 200 && e.status < 300:
		return nil
	case p.IsRefused == nil && slices.Contains(s.o.Refused, e.status), p.IsRefused != nil && p.IsRefused(e):
		e.outcome = refused
	case e.status == http.StatusTooManyRequests, e.status == http.StatusServiceUnavailable && given:
		e.outcome, e.until = throttled, until
	case e.status >= 500, e.status == http.StatusRequestTimeout, e.status == http.StatusTooEarly:
		e.outcome = failed
	default:
		e.outcome = misconfigured
	}
	return e
}

// retryAfter reads the header, which is a number of seconds or a date.
func retryAfter(value string, now time.Time) (until time.Time, given bool) {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		until = now.Add(time.Duration(seconds) * time.Second)
	} else if until, err = http.ParseTime(value); err != nil {
		return time.Time{}, false
	}
	if limit := now.Add(maxRetryAfter); until.After(limit) {
		until = limit
	}
	return until, true
}

// reason returns the beginning of an answer as one line of text.
func reason(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxReason)]), "")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
}

// ParseSecrets returns the keys of secrets in the form of Standard Webhooks, whsec_ and base64, separated
// by commas. A secret without that prefix is its own key. Errors do not quote secrets.
func ParseSecrets(text string) (keys [][]byte, err error) {
	if text == "" {
		return nil, nil
	}
	for n, one := range strings.Split(text, ",") {
		one = strings.TrimSpace(one)
		key := []byte(one)
		if encoded, ok := strings.CutPrefix(one, "whsec_"); ok {
			if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return nil, fmt.Errorf("secret %d is not whsec_ and base64", n+1)
			}
		}
		if len(key) < minSecret {
			return nil, fmt.Errorf("secret %d has fewer than %d bytes", n+1, minSecret)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// minSecret is the least length of a key in Standard Webhooks.
const minSecret = 24
