package sqs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// idLimit is the longest group or deduplication id, in characters (SQS quotas).
const idLimit = 128

// GroupID returns the message group id of a key: the key itself, or "sha256-" and its hash in hex if
// the key is not a valid group id. Deduplication ids are derived from event ids in the same way.
func GroupID(key string) string {
	invalid := func(r rune) bool { return r <= ' ' || r >= 0x7f } // not a letter, digit or punctuation of ASCII
	if key != "" && len(key) <= idLimit && !strings.ContainsFunc(key, invalid) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// entry encodes m as entry n of a request.
func entry(n int, m *relay.Message, source string) types.SendMessageBatchRequestEntry {
	attributes := map[string]types.MessageAttributeValue{}
	for name, value := range publish.CloudEvents(m, source) {
		kind := "String"
		if _, ok := value.(int64); ok {
			kind = "Number"
		}
		attributes[name] = types.MessageAttributeValue{DataType: &kind, StringValue: aws.String(fmt.Sprint(value))}
	}
	return types.SendMessageBatchRequestEntry{
		Id: aws.String(strconv.Itoa(n)), MessageBody: aws.String(string(m.Body)), MessageAttributes: attributes,
		MessageGroupId: aws.String(GroupID(m.Key)), MessageDeduplicationId: aws.String(GroupID(m.ID)),
	}
}

// size returns the size of an entry as SQS counts it: the body and the attributes with names and types.
func size(e *types.SendMessageBatchRequestEntry) int {
	n := len(*e.MessageBody)
	for name, value := range e.MessageAttributes {
		n += len(name) + len(*value.DataType) + len(*value.StringValue)
	}
	return n
}

// The sizes of a request that SQS accepts for every queue, and for any (SQS quotas). They are also the
// default and the maximum of a topic.
const minRequestBytes, maxRequestBytes = 256 << 10, 1 << 20

// sizesPause is the time before a limit is read again, for a message above it.
const sizesPause = time.Minute

// sizes are the limits of a destination. The zero value is not read yet.
type sizes struct {
	mu             sync.Mutex // guards the fields below; held during a request
	message, total int        // 0: unknown
	read           time.Time
}

// maxBytes returns the limits for a message, and for all messages of a request, that has n bytes after
// others of the request. If they cannot be read, a larger message is sent alone and the service decides:
// to refuse it here could park an event that the destination accepts.
func (p *Publisher) maxBytes(ctx context.Context, n, others int) (message, total int) {
	if limit := cmp.Or(p.opts.MaxRequestBytes, p.to.minBytes()); p.opts.MaxRequestBytes > 0 || others+n <= limit {
		return limit, limit
	}
	s := &p.sizes
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read.IsZero() || n > s.message && time.Since(s.read) >= sizesPause {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		var err error
		if s.message, s.total, err = p.to.maxBytes(ctx); err != nil {
			s.message = 0
		}
		s.read = time.Now()
	}
	if s.message == 0 {
		return maxRequestBytes, minRequestBytes
	}
	return s.message, s.total
}

// check refuses a message that SQS would refuse for its characters.
func check(m *relay.Message) error {
	for _, text := range []string{string(m.Body), m.Key, m.ID, m.Action, m.Traceparent, m.CreatedAt} {
		if at := unsendable(text); at >= 0 {
			return relay.Refuse("invalid_characters", "byte %d of the event belongs to a character that SQS does not accept", at)
		}
	}
	return nil
}

// unsendable returns the index of the first character that XML 1.0 does not allow, or -1.
func unsendable(text string) int {
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"): // not UTF-8
			return i
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			return i
		}
	}
	return -1
}
