package push

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cloudevents"
)

// Document is a document of the change feed of a container. The types of package changefeed are not
// used here, because push belongs to the consumers; package wiring adapts it to the processor.
type Document struct {
	ID, Version, Key []byte // JSON; Version is the ETag, without one the LSN is used
	LSN              int64
	Time             time.Time
	Raw              []byte
}

// DocumentOptions are the options of Documents.
type DocumentOptions struct {
	Type string // of the CloudEvents; required
	// Batch is the number of documents of one key in a request, in mode Batch. Default 1.
	Batch int
	// Failures is the number of failed attempts of these documents before, for the log.
	Failures int
}

// Documents sends documents: those of a key in order, several keys at a time. It calls answer, from
// several goroutines, with nil for each accepted document and with the reason for the first one of a key
// that is not: a consumer.DeadLetterError if it was refused, an error for Paused if it waits. The later
// ones of that key have no answer. The id of an event is that of the document and its version, so that
// it is the same when the document is sent again.
//
// A refused batch is sent again one by one, because the answer does not name the document. So is one that is
// too large (413), because each document may be small enough.
func (s *Sender) Documents(ctx context.Context, documents []Document, o DocumentOptions, answer func(i int, err error)) {
	size := 1
	if s.o.Mode == Batch {
		size = max(1, o.Batch)
	}
	byKey := map[string][]int{}
	for i := range documents {
		key := string(documents[i].Key) // as JSON: the number 1 and the string "1" are two keys
		byKey[key] = append(byKey[key], i)
	}
	var sending sync.WaitGroup
	for _, items := range byKey {
		sending.Go(func() { s.sendDocuments(ctx, documents, items, o, size, answer) })
	}
	sending.Wait()
}

// sendDocuments sends the items of one key until one of them is not done.
func (s *Sender) sendDocuments(ctx context.Context, documents []Document, items []int, o DocumentOptions, size int, answer func(i int, err error)) {
	for len(items) > 0 {
		part := items[:min(size, len(items))]
		events := make([]Event, len(part))
		for n, i := range part {
			events[n] = documents[i].event(cmp.Or(s.o.Source, "/feedbox"), o.Type)
		}
		err := s.try(ctx, events[0].Key, events, &streak{failures: o.Failures})
		if _, isRefused := errors.AsType[*consumer.DeadLetterError](err); isRefused && len(part) > 1 {
			size = 1
			continue
		}
		if err != nil {
			answer(part[0], err)
			return
		}
		for _, i := range part {
			answer(i, nil)
		}
		items = items[len(part):]
	}
}

// Paused returns the end of the pause if err says that nothing was sent or that the receiver asks to
// wait.
func Paused(err error) (until time.Time, ok bool) {
	paused, ok := errors.AsType[*pausedError](err)
	if ok {
		until = paused.until
	}
	return until, ok
}

func (d *Document) event(source, action string) Event {
	id := textOf(d.ID)
	return Event{
		ID: id + "@" + cmp.Or(strings.Trim(textOf(d.Version), `"`), strconv.FormatInt(d.LSN, 10)), Source: source, Type: action,
		Subject: id, Key: textOf(d.Key), LSN: d.LSN, Time: cloudevents.Time(d.Time), Data: d.Raw,
	}
}

// textOf returns a JSON string as text, and other JSON as it is.
func textOf(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}
