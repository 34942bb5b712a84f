package cosmosemu

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// errClosing ends a call that a fault holds if the server closes or the client
// disconnects.
var errClosing = refuse(http.StatusServiceUnavailable, "The emulator is closing")

// fault asks the hooks for the fault of a call; nil means none.
func (d *dispatcher) fault(x *request) *Fault {
	if d.hooks.Empty() {
		return nil
	}
	return d.hooks.Ask(&Call{
		Operation: x.route.op, Region: d.account.options.Regions[x.region], Database: x.route.db, Container: x.route.coll, ID: x.route.id,
		Method: x.req.Method, Path: x.req.URL.Path, Header: x.header, Body: x.body,
	})
}

// answerWith applies all of a fault except the loss of the reply.
func (d *dispatcher) answerWith(x *request, f *Fault) (*reply, error) {
	if err := d.wait(x.req.Context(), f); err != nil {
		return nil, err
	}
	if f.Status == 0 && f.Loss == NoLoss || f.Execute {
		answer, err := x.handle()
		if f.Status == 0 {
			return answer, err
		}
	}
	if f.Status == 0 {
		return nil, nil // the caller loses the reply, so none is needed
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

func (d *dispatcher) wait(ctx context.Context, f *Fault) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return errClosing
		case <-d.done:
			return errClosing
		}
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return errClosing
		case <-d.done:
			return errClosing
		}
	}
	return nil
}

// lose loses a finished reply. A reply without a body cannot be truncated, so its
// connection is reset instead.
func (d *dispatcher) lose(w http.ResponseWriter, x *request, loss Loss, answer *reply, failure error) {
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
		case <-d.done:
		}
	case Truncate:
		half := &truncated{ResponseWriter: w}
		if failure != nil {
			x.writeError(half, asWire(failure))
		} else {
			answer.write(half, x)
		}
		_ = http.NewResponseController(w).Flush() // the connection is aborted below in any case
	}
	panic(http.ErrAbortHandler)
}

// truncated writes only the first half of a body.
type truncated struct{ http.ResponseWriter }

func (t *truncated) Write(p []byte) (int, error) { return t.ResponseWriter.Write(p[:len(p)/2]) }

// reset closes the connection so that the client sees a reset, not an end of file. With HTTP/2
// the panic that follows resets the stream only.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // HTTP/2, or the connection is closed already
	}
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort: otherwise the client sees an end of file
	}
	if err := raw.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return
	}
}
