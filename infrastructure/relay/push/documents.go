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

	"feedbox/changefeed"
	"feedbox/infrastructure/consumer"
)

// DocumentOptions are the options of Documents.
type DocumentOptions struct {
	Type string // of the CloudEvents; required
	// Batch is the number of documents of one key in a request, in mode Batch. Default 1.
	Batch int
	// Hold retries a refused document, so that its key waits. Otherwise it counts as refused for the
	// policy of the processor, changefeed.Options.Poison.
	Hold bool
}

var (
	idOf   = changefeed.Field("id")
	etagOf = changefeed.Field("_etag")
)

// Documents returns a handler that sends the documents of a change feed: those of a key in order,
// several keys at a time. A held document waits in the processor, which continues with other keys and
// bounds the memory. The id of an event is that of the document and its ETag, so that it is the same
// when the document is sent again.
//
// A refused batch is sent again one by one, because the answer does not name the document.
func (s *Sender) Documents(o DocumentOptions) changefeed.Handler {
	size := 1
	if s.o.Mode == Batch {
		size = max(1, o.Batch)
	}
	return changefeed.HandlerFunc(func(ctx context.Context, batch *changefeed.Batch) error {
		byKey := map[string][]int{}
		for i := range batch.Items {
			key := string(batch.Items[i].Key)
			byKey[key] = append(byKey[key], i)
		}
		var sending sync.WaitGroup
		for key, items := range byKey {
			sending.Go(func() { s.sendDocuments(ctx, batch, textOf([]byte(key)), items, o, size) })
		}
		sending.Wait()
		return nil
	})
}

// sendDocuments sends the items of one key until one of them is not done. Those after it have no answer,
// so that the processor keeps them with their key.
func (s *Sender) sendDocuments(ctx context.Context, batch *changefeed.Batch, key string, items []int, o DocumentOptions, size int) {
	for len(items) > 0 {
		part := items[:min(size, len(items))]
		events := make([]Event, len(part))
		for n, i := range part {
			events[n] = document(&batch.Items[i], key, cmp.Or(s.o.Source, "/feedbox"), o.Type)
		}
		err := s.try(ctx, key, events, &streak{failures: batch.Attempt - 1})
		if _, isRefused := errors.AsType[*consumer.DeadLetterError](err); isRefused && len(part) > 1 {
			size = 1
			continue
		}
		if err != nil {
			batch.Answer(part[0], answerOf(err, o.Hold))
			return
		}
		for _, i := range part {
			batch.Answer(i, nil)
		}
		items = items[len(part):]
	}
}

// answerOf returns the answer of a document that the receiver has not accepted.
func answerOf(err error, hold bool) error {
	if _, isRefused := errors.AsType[*consumer.DeadLetterError](err); isRefused && !hold {
		return changefeed.Refuse(err)
	}
	if paused, ok := errors.AsType[*pausedError](err); ok {
		return changefeed.WaitUntil(paused.until, err)
	}
	return err
}

func document(item *changefeed.Item, key, source, action string) Event {
	e := Event{Source: source, Type: action, Subject: textOf(idOf(item.Raw)), Key: key, LSN: item.LSN, Time: item.Time(), Data: item.Raw}
	version := strings.Trim(textOf(etagOf(item.Raw)), `"`)
	if version == "" {
		version = strconv.FormatInt(item.LSN, 10)
	}
	e.ID = e.Subject + "@" + version
	return e
}

// textOf returns a JSON string as text, and other JSON as it is.
func textOf(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}
