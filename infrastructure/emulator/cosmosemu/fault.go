package cosmosemu

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// errClosing ends a call that a fault holds when the server closes or the client
// goes away.
var errClosing = refuse(http.StatusServiceUnavailable, "The emulator is closing")

// answerWith answers a call as a fault says, short of losing the reply.
func (x *request) answerWith(f *Fault) (*reply, error) {
	if err := x.wait(f); err != nil {
		return nil, err
	}
	if f.Status == 0 && f.Loss == NoLoss || f.Execute {
		answer, err := handlers[x.route.op](x)
		if f.Status == 0 {
			return answer, err
		}
	}
	if f.Status == 0 {
		return nil, nil // there is no reply, and it gets lost
	}
	e := &wireError{Status: f.Status, SubStatus: f.SubStatus, Message: f.Message}
	if e.Message == "" {
		e.Message = "Injected by the emulator's control hooks"
	}
	if f.RetryAfter > 0 {
		e.Headers = http.Header{replyRetryAfter: {strconv.FormatInt(f.RetryAfter.Milliseconds(), 10)}}
	}
	return nil, e
}

func (x *request) wait(f *Fault) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.req.Context().Done():
			return errClosing
		case <-x.srv.done:
			return errClosing
		}
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-x.req.Context().Done():
			return errClosing
		case <-x.srv.done:
			return errClosing
		}
	}
	return nil
}

// lose loses a reply that is ready. One without a body has no middle to break off
// in: it is lost whole.
func (x *request) lose(w http.ResponseWriter, loss Loss, answer *reply, failure error) {
	if loss == Truncate && failure == nil && (answer == nil || len(answer.body) == 0) {
		loss = Reset
	}
	switch loss {
	case NoLoss:
		return
	case Reset:
		reset(w)
	case Drop:
		select {
		case <-x.req.Context().Done():
		case <-x.srv.done:
		}
	case Truncate:
		half := &truncated{ResponseWriter: w}
		if failure != nil {
			x.writeError(half, asWire(failure))
		} else {
			x.write(half, answer)
		}
		_ = http.NewResponseController(w).Flush() // the connection is given up anyway
	}
	panic(http.ErrAbortHandler)
}

// truncated passes on the first half of a body.
type truncated struct{ http.ResponseWriter }

func (t *truncated) Write(p []byte) (int, error) { return t.ResponseWriter.Write(p[:len(p)/2]) }

// reset closes the connection so that the client sees a reset, not an end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // then it is closed without a reply
	}
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort: else the client sees an end
	}
	if err := raw.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return
	}
}
