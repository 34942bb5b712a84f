package sqs

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/process/failpoint"
)

// Publisher publishes events to a FIFO queue or a FIFO topic. It is safe for concurrent use. Concurrent
// calls must not contain the same key.
type Publisher struct {
	to    destination
	opts  PublisherOptions
	slots chan struct{} // one held for each request in flight, over all calls
	sizes sizes
}

// destination is a FIFO queue or topic. Entries and answers are those of SQS, because those of SNS have
// the same parts.
type destination interface {
	send(ctx context.Context, entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error)
	// maxBytes reads the limits for a message, and for all messages of a request; 0 if the service
	// does not return them.
	maxBytes(ctx context.Context) (message, total int, err error)
	// minBytes is a size of a request that every such destination accepts.
	minBytes() int
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the options of NewPublisher. Zero means the default.
type PublisherOptions struct {
	// InFlight is the maximum number of concurrent requests. Default 16.
	InFlight int
	// MaxRequestBytes bounds the total size of the messages of a request, and so of one message.
	// Default: the MaximumMessageSize of the queue, but at least 256 KiB for all messages of a
	// request; that of the topic for both. It is read before the first request that could exceed it.
	MaxRequestBytes int
	// SendTimeout bounds one request. Default 15 s.
	SendTimeout time.Duration
	// Source is the CloudEvents source. Default: the URL of the queue, or the ARN of the topic.
	Source string
	// Sent, if set, is called after every request. It must return quickly and be safe for
	// concurrent use.
	Sent func(ctx context.Context, r relay.BatchReport)
}

// Window is the deduplication window of FIFO queues. SQS has no setting for it.
const Window = 5 * time.Minute

// perRequest is the maximum number of messages in a request (SQS quotas).
const perRequest = 10

// NewPublisher returns a publisher to the FIFO queue with this URL. It does no I/O. It disables the
// retries of the client, because the relay decides when a message is sent again.
func NewPublisher(client *sqs.Client, queueURL string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || queueURL == "" {
		return nil, errors.New("sqs publisher: a client and the URL of a FIFO queue are required")
	}
	return newPublisher(queue{client, queueURL}, queueURL, opts)
}

func newPublisher(to destination, source string, opts *PublisherOptions) (*Publisher, error) {
	p := &Publisher{to: to, opts: *cmp.Or(opts, &PublisherOptions{})}
	p.opts.InFlight = cmp.Or(p.opts.InFlight, 16)
	p.opts.SendTimeout = cmp.Or(p.opts.SendTimeout, 15*time.Second)
	p.opts.Source = cmp.Or(p.opts.Source, source)
	if p.opts.InFlight < 0 || p.opts.MaxRequestBytes < 0 || p.opts.SendTimeout < 0 {
		return nil, errors.New("sqs publisher: InFlight, MaxRequestBytes and SendTimeout must be positive")
	}
	p.slots = make(chan struct{}, p.opts.InFlight)
	return p, nil
}

// queue is the FIFO queue of a publisher.
type queue struct {
	client *sqs.Client
	url    string
}

func (q queue) send(ctx context.Context, entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries}, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
}

func (q queue) maxBytes(ctx context.Context) (message, total int, err error) {
	const name = types.QueueAttributeNameMaximumMessageSize
	found, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return 0, 0, err
	}
	message, _ = strconv.Atoi(found.Attributes[string(name)]) // 0 if SQS does not send it
	return message, max(message, minRequestBytes), nil
}

func (queue) minBytes() int { return minRequestBytes }

// Close does nothing, because the publisher has no connection of its own.
func (p *Publisher) Close(context.Context) error { return nil }

// call is one Publish call. At most one message of a group is in flight.
type call struct {
	*Publisher
	groups  []relay.Group
	results []relay.KeyError // by group; Sent is the number of accepted messages
	ready   []int            // groups whose next message may be sent
}

// Publish implements relay.Publisher.
func (p *Publisher) Publish(ctx context.Context, groups []relay.Group) error {
	c := &call{Publisher: p, groups: groups, results: make([]relay.KeyError, len(groups))}
	for i := range groups {
		c.ready = append(c.ready, i)
	}
	done := make(chan []int)
	for inFlight := 0; ; {
		for request, entries := c.next(ctx); len(request) > 0; request, entries = c.next(ctx) {
			inFlight++
			go func() {
				c.send(ctx, request, entries)
				done <- request
			}()
		}
		if inFlight == 0 {
			break
		}
		c.ready = append(c.ready, <-done...)
		inFlight--
	}
	return publish.Failed(c.results)
}

// next removes the groups of the next request from the ready ones, and encodes their messages.
func (c *call) next(ctx context.Context) (request []int, entries []types.SendMessageBatchRequestEntry) {
	bytes := 0
	for len(c.ready) > 0 && len(request) < perRequest {
		g := c.ready[0]
		f, group := &c.results[g], &c.groups[g]
		if f.Err != nil || f.Sent == len(group.Messages) {
			c.ready = c.ready[1:]
			continue
		}
		m := &group.Messages[f.Sent]
		if f.Err = check(m); f.Err != nil {
			continue
		}
		e := entry(len(request), m, c.opts.Source)
		n := size(&e)
		message, total := c.maxBytes(ctx, n, bytes)
		if n > message {
			f.Err = relay.Refuse("too_large", "message of %d bytes; the destination accepts at most %d (its MaximumMessageSize, or the option MaxRequestBytes)", n, message)
			continue
		}
		if len(request) > 0 && (bytes+n > total || group.Alone) {
			break
		}
		c.ready = c.ready[1:]
		request, entries, bytes = append(request, g), append(entries, e), bytes+n
		if group.Alone {
			break
		}
	}
	return request, entries
}

// send sends a request and sets the results of its groups. All sends start here. Concurrent requests of
// a call have other groups, so the results need no lock.
func (c *call) send(ctx context.Context, request []int, entries []types.SendMessageBatchRequestEntry) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
	}
	if err := relay.Ended(ctx); err != nil {
		c.fail(request, err)
		return
	}
	attempt, cancel := context.WithTimeout(ctx, c.opts.SendTimeout)
	defer cancel()
	failpoint.Here("send")
	began := time.Now()
	answer, err := c.to.send(attempt, entries)
	if err != nil {
		c.fail(request, classify(ctx, attempt, err, len(request)))
	} else {
		failpoint.Here("sent")
		c.setResults(request, answer)
	}
	if c.opts.Sent != nil {
		accepted := 0
		for _, g := range request {
			if c.results[g].Err == nil {
				accepted++
			}
		}
		c.opts.Sent(ctx, publish.Report(c.results, request, len(request), accepted, began))
	}
}

// setResults applies the response to a request. A message that the response does not list is not sent.
func (c *call) setResults(request []int, answer *sqs.SendMessageBatchOutput) {
	c.fail(request, publish.Rule{Class: relay.Outage, Reason: "no_answer", Ambiguous: true}.Wrap(errors.New("the response does not list the message")))
	for _, f := range answer.Failed {
		if i, ok := indexOf(f.Id, len(request)); ok {
			c.results[request[i]].Err = ruleFor(aws.ToString(f.Code), f.SenderFault).Wrap(entryError(f))
		}
	}
	for _, s := range answer.Successful {
		if i, ok := indexOf(s.Id, len(request)); ok {
			c.results[request[i]].Err = nil
			c.results[request[i]].Sent++
		}
	}
}

func (c *call) fail(request []int, err error) {
	for _, g := range request {
		c.results[g].Err = err
	}
}
