package monitor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

// A gate that opens without some of its events is an error in the log, because they are not sent.
func TestMissingParkedEventsAreLoggedAsError(t *testing.T) {
	for missing, want := range map[int64]bool{0: false, 2: true} {
		var log bytes.Buffer
		DrainLog(slog.New(slog.NewTextHandler(&log, nil)))(t.Context(), relay.DrainReport{Key: "k", Opened: true, Missing: missing})
		if got := strings.Contains(log.String(), "level=ERROR"); got != want {
			t.Errorf("%d missing: error %t\n%s", missing, got, log.String())
		}
	}
}

// The log names the shard that is away only if there are several.
func TestPauseOfAShardNamesIt(t *testing.T) {
	for shard, want := range map[string]string{
		"":  `level=WARN msg="publishing paused: broker unavailable" until=1970-01-01T00:00:09.000Z class=outage reason=unknown error=away`,
		"b": `level=WARN msg="publishing paused: broker unavailable" shard=b until=1970-01-01T00:00:09.000Z class=outage reason=unknown error=away`,
	} {
		var log bytes.Buffer
		RelayLog(slog.New(slog.NewTextHandler(&log, nil))).Paused(t.Context(), relay.Pause{Until: time.Unix(9, 0).UTC(), Err: errors.New("away"), Shard: shard})
		if _, got, _ := strings.Cut(strings.TrimSpace(log.String()), " "); got != want {
			t.Errorf("shard %q: %s, want %s", shard, got, want)
		}
	}
}

// What a check of the feed or of the leases finds does not pass by itself: it is an
// error, and says what to do. An operation on the lease store is tried again: a warning.
func TestFindingsOfChecksAreErrorsWithAdvice(t *testing.T) {
	cause := errors.New("no match")
	for op, want := range map[string]string{
		changefeed.OpCheckFeed: "level=ERROR", changefeed.OpCheckHistory: "level=ERROR", changefeed.OpCheckTiling: "level=ERROR", changefeed.OpCheckLeases: "level=ERROR", "renew": "level=WARN",
	} {
		var log bytes.Buffer
		ProcessorLog(slog.New(slog.NewTextHandler(&log, nil))).LeaseError(changefeed.LeaseError{Lease: "l-1", Op: op, Err: cause})
		line := log.String()
		advised := strings.Contains(line, "next=")
		if !strings.Contains(line, want) || advised != (want == "level=ERROR") || !strings.Contains(line, changefeed.LeaseName("l-1")) || !strings.Contains(line, "no match") {
			t.Errorf("%s: %s", op, line)
		}
	}
}

// The advice has the setting of the process and that of the library.
func TestDuplicateInstanceNamesBothSettings(t *testing.T) {
	var log bytes.Buffer
	ProcessorLog(slog.New(slog.NewTextHandler(&log, nil))).DuplicateHost(changefeed.DuplicateHost{Host: "vm", Incarnation: "1"})
	for _, want := range []string{"instance=vm", "FEEDBOX_INSTANCE", "Options.Instance"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in %s", want, &log)
		}
	}
}

// The processor says by the operation that a check has found something.
func TestFeedFindingIsLoggedAsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		feed := doubtful{memfeed.New(nil)}
		startProcessor(t, feed, memstore.New(nil), ProcessorLog(slog.New(slog.NewTextHandler(&log, nil))), time.Minute)
		if got := log.String(); !strings.Contains(got, "level=ERROR msg=\"partition keys hash differently") || !strings.Contains(got, errDoubted.Error()) {
			t.Errorf("logged\n%s", got)
		}
	})
}

var errDoubted = errors.New("outside the range")

// doubtful says of every page that something is wrong with it.
type doubtful struct{ changefeed.Feed }

func (d doubtful) Read(ctx context.Context, r changefeed.ReadRequest) (*changefeed.Page, error) {
	p, err := d.Feed.Read(ctx, r)
	if p != nil {
		p.Doubt = errDoubted
	}
	return p, err
}

// lockedLog is a log that several goroutines write.
type lockedLog struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
