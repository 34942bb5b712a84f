package cosmos_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
)

// The store commits and the reply is lost: the client gets the result, and the change was stored once.
func TestLostReplyIsResolved(t *testing.T) {
	t.Parallel()
	drop := once(func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if reply, err := pass(); err == nil {
			_ = reply.Body.Close()
		}
		return nil, io.ErrUnexpectedEOF
	})
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	w.wire.follow(drop)
	out := w.create()
	stored, events := w.documents(out.Contact.ID)
	if len(events) != 1 || stored.ETag != out.ETag || out.ETag == "" {
		t.Errorf("events %v, ETag %s; the answer has %s", actionsOf(events), stored.ETag, out.ETag)
	}
	// The ETag that was read back is valid for the next conditional update.
	_, err := w.rename(t.Context(), out.Contact.ID, "Jane", out.ETag)
	must(t, err)
}

// The reply is lost and another writer follows: the change was made, but the client gets no ETag,
// otherwise it could overwrite a state it has not seen.
func TestLostReplyFollowedByAnotherWriterReturnsNoETag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	id := w.create().Contact.ID
	w.wire.follow(once(func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if reply, err := pass(); err == nil {
			_ = reply.Body.Close()
		}
		if _, err := w.rename(context.WithoutCancel(t.Context()), id, "Other"); err != nil {
			t.Error(err)
		}
		return nil, io.ErrUnexpectedEOF
	}))
	out, err := w.rename(t.Context(), id, "Jane")
	must(t, err)
	if out.Version != 2 || out.ETag != "" {
		t.Errorf("%+v; want version 2 and no ETag", out)
	}
	if stored, events := w.documents(id); stored.Data.Version != 3 || len(events) != 3 {
		t.Errorf("version %d, events %v", stored.Data.Version, actionsOf(events))
	}
}

// The request is lost and another writer follows: the change is refused, not reported as made.
func TestLostRequestFollowedByAnotherWriterIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	out := w.create()
	id := out.Contact.ID
	w.wire.follow(once(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		if _, err := w.rename(context.WithoutCancel(t.Context()), id, "Other"); err != nil {
			t.Error(err)
		}
		return nil, io.ErrUnexpectedEOF
	}))
	if _, err := w.rename(t.Context(), id, "Jane", out.ETag); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("%v; want precondition failed", err)
	}
	if stored, events := w.documents(id); stored.Data.Name.FirstName != "Other" || len(events) != 2 {
		t.Errorf("stored %+v with %v", stored, actionsOf(events))
	}
}

// The reply never arrives: the outcome is resolved after the timeout of the attempt (in fake time).
func TestMissingReplyIsResolvedAfterTheAttemptTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{Network: pipenet.New(), Host: "never-comes.example:8081"}})
		w.wire.follow(once(func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if reply, err := pass(); err == nil {
				_ = reply.Body.Close()
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}))
		began := time.Now()
		out := w.create()
		if took := time.Since(began); took < 8*time.Second || took > 9*time.Second {
			t.Errorf("it took %s; want a little more than the time-out of 8 s", took)
		}
		if stored, events := w.documents(out.Contact.ID); len(events) != 1 || stored.ETag != out.ETag {
			t.Errorf("events %v, ETag %s; the answer has %s", actionsOf(events), stored.ETag, out.ETag)
		}
	})
}
