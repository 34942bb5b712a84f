package firestore

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// keepAlive closes a silent connection, so that the next call opens another. It sends a ping if a call
// has received nothing for 30 s, and on Linux limits unacknowledged data to 10 s (TCP_USER_TIMEOUT). A
// shorter interval could exceed the limit of a server for pings.
var keepAlive = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}

// errSilent is the cause of a call that received no message for Options.Timeout.
var errSilent = status.Error(codes.DeadlineExceeded, "no reply from the database in time")

// watch ends the context of a call that receives no message for some time.
type watch struct {
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// watch returns the context of a call. The caller must call watch.end.
func (db *DB) watch(ctx context.Context) (context.Context, *watch) {
	w := &watch{timeout: db.timeout}
	ctx, w.cancel = context.WithCancelCause(db.outgoing(ctx))
	w.timer = time.AfterFunc(db.timeout, func() { w.cancel(errSilent) })
	return ctx, w
}

// more records a message and returns true.
func (w *watch) more() bool {
	w.timer.Reset(w.timeout)
	return true
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}
