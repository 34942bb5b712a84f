package changefeed_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

func TestRepeatedFailureIsLoggedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := changefeed.LogObserver(slog.New(slog.NewTextHandler(&out, nil)))
		fail := func(n int, err error) {
			for i := range n {
				o.BatchFailed(changefeed.BatchFailed{LeaseRef: changefeed.LeaseRef{Lease: fmt.Sprintf("p..%d-FF", i)}, Err: err})
			}
		}
		missing := fmt.Errorf("blocked: entity_not_found: id %d: no such topic", 1)
		fail(17, missing)
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("17 failures are %d lines:\n%s", n, out.String())
		}
		fail(1, errors.New("refused: too_large: 2 MB")) // another cause is another line
		time.Sleep(61 * time.Second)
		fail(3, fmt.Errorf("blocked: entity_not_found: id %d: no such topic", 2))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[2], "repeated=16") {
			t.Errorf("after a minute:\n%s", out.String())
		}
	})
}

func TestLeaseNames(t *testing.T) {
	const token = "-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
	name := changefeed.LeaseName(token)
	if name != "7e9dd390" || changefeed.LeaseName("feedboxhost_db_container.."+token) != name {
		t.Errorf("the name of %s is %s, by its id %s", token, name, changefeed.LeaseName("feedboxhost_db_container.."+token))
	}
	if changefeed.LeaseName("") != "" || changefeed.LeaseName("-FF") == name {
		t.Error("names of nothing, or of another")
	}
}
