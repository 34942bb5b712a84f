package sqs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/process/failpoint"
)

// Publisher sends events to a FIFO queue. It is safe for concurrent use; two concurrent calls
// must not carry the same key.
type Publisher struct {
	client *sqs.Client
	queue  string
	opts   PublisherOptions
	slots  chan struct{} // one held for each request under way, over all calls
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the choices of NewPublisher. Zero means the default.
type PublisherOptions struct {
	// InFlight is how many requests may be under way at a time. Default 16.
	InFlight int
	// MaxRequestBytes is what the messages of one request may have together, and so the largest
	// message. Default 256 KiB.
	MaxRequestBytes int
	// SendTimeout bounds one request. Default 15 s.
	SendTimeout time.Duration
	// Source is the CloudEvents attribute of that name. Default: the URL of the queue.
	Source string
	// Sent, if set, is called after every request. It must be quick and safe for concurrent use.
	Sent func(ctx context.Context, r relay.BatchReport)
}

// Window is how long a FIFO queue remembers a deduplication id. It is no setting of a queue.
const Window = 5 * time.Minute

// perRequest is how many messages a request has at most (SQS quotas).
const perRequest = 10

// NewPublisher returns a publisher to the FIFO queue with this URL. It does no I/O. The client's
// own retries are not used: the relay decides when something is sent again.
func NewPublisher(client *sqs.Client, queueURL string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || queueURL == "" {
		return nil, errors.New("sqs publisher: give a client and the URL of a FIFO queue")
	}
	p := &Publisher{client: client, queue: queueURL, opts: *cmp.Or(opts, &PublisherOptions{})}
	p.opts.InFlight = cmp.Or(p.opts.InFlight, 16)
	p.opts.MaxRequestBytes = cmp.Or(p.opts.MaxRequestBytes, 256<<10)
	p.opts.SendTimeout = cmp.Or(p.opts.SendTimeout, 15*time.Second)
	p.opts.Source = cmp.Or(p.opts.Source, queueURL)
	if p.opts.InFlight < 0 || p.opts.MaxRequestBytes < 0 || p.opts.SendTimeout < 0 {
		return nil, errors.New("sqs publisher: InFlight, MaxRequestBytes and SendTimeout must be positive")
	}
	p.slots = make(chan struct{}, p.opts.InFlight)
	return p, nil
}

// Close does nothing: requests need no links.
func (p *Publisher) Close(context.Context) error { return nil }

// call is one Publish call. Of a group one message at a time is in a request.
type call struct {
	*Publisher
	groups []relay.Group
	faults []relay.KeyError // where each group stands
	ready  []int            // groups whose next message may go
}

// Publish implements relay.Publisher.
func (p *Publisher) Publish(ctx context.Context, groups []relay.Group) error {
	c := &call{Publisher: p, groups: groups, faults: make([]relay.KeyError, len(groups))}
	for i := range groups {
		c.ready = append(c.ready, i)
	}
	answers := make(chan []int)
	for flying := 0; ; {
		for request, entries := c.next(); len(request) > 0; request, entries = c.next() {
			flying++
			go func() {
				c.send(ctx, request, entries)
				answers <- request
			}()
		}
		if flying == 0 {
			break
		}
		c.ready = append(c.ready, <-answers...)
		flying--
	}
	return publish.Failed(c.faults)
}

// next takes the groups of the next request from those that are ready, with their messages.
func (c *call) next() (request []int, entries []types.SendMessageBatchRequestEntry) {
	bytes := 0
	for len(c.ready) > 0 && len(request) < perRequest {
		g := c.ready[0]
		f, group := &c.faults[g], &c.groups[g]
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
		if n > c.opts.MaxRequestBytes {
			f.Err = relay.Refuse("too_large", "message of %d bytes; a request to the queue has at most %d", n, c.opts.MaxRequestBytes)
			continue
		}
		if bytes+n > c.opts.MaxRequestBytes || group.Alone && len(request) > 0 {
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

// send makes a request and notes what became of each message. It is the one place where a send
// starts. Only the call's other requests run beside it, which are of other groups.
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
	answer, err := c.client.SendMessageBatch(attempt, &sqs.SendMessageBatchInput{QueueUrl: &c.queue, Entries: entries},
		func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		c.fail(request, classify(ctx, attempt, err, len(request)))
	} else {
		failpoint.Here("sent")
		c.note(request, answer)
	}
	if c.opts.Sent != nil {
		c.opts.Sent(ctx, publish.Report(c.faults, request, len(request), began))
	}
}

// note takes an answer. A message that it does not name is not sent.
func (c *call) note(request []int, answer *sqs.SendMessageBatchOutput) {
	c.fail(request, publish.As(relay.Outage, "no_answer", unsure).Of(errors.New("the answer does not name the message")))
	for _, f := range answer.Failed {
		if i, ok := place(f.Id, len(request)); ok {
			c.faults[request[i]].Err = verdictOn(aws.ToString(f.Code), f.SenderFault).Of(told(f))
		}
	}
	for _, s := range answer.Successful {
		if i, ok := place(s.Id, len(request)); ok {
			c.faults[request[i]].Err = nil
			c.faults[request[i]].Sent++
		}
	}
}

func (c *call) fail(request []int, err error) {
	for _, g := range request {
		c.faults[g].Err = err
	}
}
