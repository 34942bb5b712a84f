package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
)

// DeadLetter is an event in the dead-letter queue of a consumer.
type DeadLetter = relayport.DeadLetter

// DeadLetterReason summarises the dead letters with one reason.
type DeadLetterReason struct {
	Reason        string
	Letters, Keys int
	Oldest        time.Time
	Example       string // the description of one of them
}

// DeadLetterReasons groups dead letters by reason, the most frequent first.
func DeadLetterReasons(letters []DeadLetter) []DeadLetterReason {
	byName, keys := map[string]*DeadLetterReason{}, map[[2]string]bool{}
	for _, l := range letters {
		r := byName[l.Reason]
		if r == nil {
			r = &DeadLetterReason{Reason: l.Reason, Oldest: l.EnqueuedAt}
			byName[l.Reason] = r
		}
		r.Letters++
		if key := [2]string{l.Reason, l.Key}; !keys[key] {
			keys[key] = true
			r.Keys++
		}
		if l.EnqueuedAt.Before(r.Oldest) {
			r.Oldest = l.EnqueuedAt
		}
		r.Example = cmp.Or(r.Example, l.Description)
	}
	var all []DeadLetterReason
	for _, r := range byName {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b DeadLetterReason) int {
		return cmp.Or(cmp.Compare(b.Letters, a.Letters), strings.Compare(a.Reason, b.Reason))
	})
	return all
}

// deadLetters returns the port of the broker.
func (o *Operator) deadLetters() (relayport.DeadLetters, error) {
	switch {
	case o.broker == nil:
		return nil, errNoBroker
	case o.broker.DeadLetters == nil:
		return nil, errors.New("the dead letters of this broker cannot be read here: use its own tools")
	}
	return o.broker.DeadLetters, nil
}

// Consumers returns the consumers whose dead letters can be read: those of the configuration, else
// those that the broker lists. management is the base URL of its management API, "" for its usual one.
func (o *Operator) Consumers(ctx context.Context, management string) ([]string, error) {
	if len(o.cfg.Broker.Consumers) > 0 {
		_, err := o.deadLetters()
		return o.cfg.Broker.Consumers, err
	}
	return o.ListConsumers(ctx, management)
}

// ListConsumers is Consumers without those of the configuration.
func (o *Operator) ListConsumers(ctx context.Context, management string) ([]string, error) {
	if _, err := o.deadLetters(); err != nil {
		return nil, err
	}
	found, err := o.broker.Doctor.Consumers(ctx, management)
	if err != nil {
		return nil, fmt.Errorf("list the consumers: %w; FEEDBOX_CONSUMERS can name them", err)
	}
	return found, nil
}

// ReadDeadLetters returns up to limit dead letters of a consumer, the oldest first, and whether there
// are more. Fault: NotFound if there is no such consumer.
func (o *Operator) ReadDeadLetters(ctx context.Context, consumer string, limit int) ([]DeadLetter, bool, error) {
	port, err := o.deadLetters()
	if err != nil {
		return nil, false, err
	}
	letters, more, err := port.Read(ctx, consumer, limit)
	if errors.Is(err, relayport.ErrNoConsumer) {
		// The cause is left out, because the broker says the same in the terms of its protocol.
		err = fault.New(fault.NotFound, "no_consumer", "there is no consumer "+consumer)
	}
	return letters, more, err
}

// KeyLetters are dead letters of one key in the order of its events.
type KeyLetters struct {
	Key     string
	Letters []DeadLetter
}

// Resubmission is a plan to send dead letters again.
type Resubmission struct {
	Consumer string
	Keys     []KeyLetters // the key of the oldest letter first
	Letters  int
	// Repeats counts further letters of an event, which the duplicate window or the inbox drops.
	Repeats int
	// LeftOut lists keys with an older letter that was not chosen. It must go first.
	LeftOut []string
	// Effects has sentences for people about what happens to the letters.
	Effects []string
	// Bodies replaces the bodies of letters by their ids.
	Bodies map[string][]byte
}

// PlanResubmission plans to send the chosen ones of all dead letters of a consumer again.
func (o *Operator) PlanResubmission(ctx context.Context, management, consumer string, all []DeadLetter, chosen func(DeadLetter) bool) (*Resubmission, error) {
	port, err := o.deadLetters()
	if err != nil {
		return nil, err
	}
	p := &Resubmission{Consumer: consumer}
	events := map[[2]string]bool{}
	for _, k := range byKey(all) {
		picked := KeyLetters{Key: k.Key}
		for i, l := range k.Letters {
			if !chosen(l) {
				continue
			}
			if i != len(picked.Letters) {
				p.LeftOut, picked.Letters = append(p.LeftOut, k.Key), nil
				break
			}
			picked.Letters = append(picked.Letters, l)
		}
		for _, l := range picked.Letters {
			event := [2]string{l.Key, l.Event}
			if p.Letters++; events[event] && l.Event != "" {
				p.Repeats++
			}
			events[event] = true
		}
		if len(picked.Letters) > 0 {
			p.Keys = append(p.Keys, picked)
		}
	}
	p.Effects = p.effects(o.broker.Doctor.Window(ctx, management), port.Reach(consumer))
	return p, nil
}

// byKey groups letters by key, each key in the order of its events. A letter that was resubmitted and
// has failed again is late in the queue, so the sequence decides where both have one. Letters without
// a key have no order.
func byKey(letters []DeadLetter) []KeyLetters {
	var keys []KeyLetters
	index := map[string]int{}
	for _, l := range letters {
		i, known := index[l.Key]
		if !known || l.Key == "" {
			i = len(keys)
			index[l.Key] = i
			keys = append(keys, KeyLetters{Key: l.Key})
		}
		keys[i].Letters = append(keys[i].Letters, l)
	}
	for _, k := range keys {
		if !slices.ContainsFunc(k.Letters, func(l DeadLetter) bool { return l.Sequence == 0 }) {
			slices.SortStableFunc(k.Letters, func(a, b DeadLetter) int { return cmp.Compare(a.Sequence, b.Sequence) })
		}
	}
	return keys
}

func (p *Resubmission) effects(window Window, reach string) []string {
	all := []string{
		"The letters of a key go again in the order of the key, one key at a time. A key stops at its first failure.",
		"The consumer handles each once, although it has handled later events of the key. Consumers without the kit, or with one before resubmission, may drop them by their own records.",
	}
	repeat := "the inbox of the consumer drops it"
	if window.Length > 0 {
		repeat = fmt.Sprintf("the duplicate window of %s or the inbox of the consumer drops it", window.Length)
		if window.Assumed {
			repeat = fmt.Sprintf("the duplicate window (%s is assumed, it could not be read) or the inbox of the consumer drops it", window.Length)
		}
		all = append(all, "Each gets a new message id, because the broker would drop one that it has seen within its duplicate window.")
	}
	all = append(all, "A letter is removed after the broker has accepted it again. A crash in between sends it twice: "+repeat+".")
	if p.Repeats > 0 {
		all = append(all, fmt.Sprintf("%d of the letters repeat an event of another one: %s.", p.Repeats, repeat))
	}
	if reach != "" {
		all = append(all, "All consumers of "+reach+" receive them: the inboxes of the others drop them. A consumer without an inbox handles them again.")
	}
	return all
}

// resubmissionID identifies the resubmissions of an event from one letter.
func resubmissionID(consumer, letter, event string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", consumer, letter, event))
	return "resubmission-" + hex.EncodeToString(sum[:16])
}

// LetterFailure is a key whose letters could not all be sent again or discarded.
type LetterFailure struct {
	Key, Letter string
	Left        int // letters of the plan that remain in the queue
	Err         error
}

const (
	// letterTimeout bounds a send or a removal with its renewal of the lock.
	letterTimeout = 30 * time.Second
	// claimTimeout bounds the search for the letters of a claim.
	claimTimeout = 2 * time.Minute
	// claimLetters is the number of letters after which no further key is added to a claim, because
	// locks expire.
	claimLetters = 200
)

// Resubmit sends the letters of a plan again, and calls progress after each. It returns the keys that
// stopped. The error is that of a claim; the letters counted by progress have been sent before it.
func (o *Operator) Resubmit(ctx context.Context, p *Resubmission, progress func()) ([]LetterFailure, error) {
	first := map[[2]string]string{} // the id of the first letter of an event, so that others repeat it
	return o.settle(ctx, p.Consumer, p.Keys, func(ctx context.Context, c relayport.LetterClaim, l DeadLetter) error {
		event := [2]string{l.Key, l.Event}
		if first[event] == "" || l.Event == "" {
			first[event] = l.ID
		}
		if err := c.Resubmit(ctx, l.ID, relayport.Resubmission{ID: resubmissionID(p.Consumer, first[event], l.Event), Body: p.Bodies[l.ID]}); err != nil {
			return err
		}
		if err := c.Remove(ctx, l.ID); err != nil {
			return fmt.Errorf("sent again, but not removed, so resubmit it once more: %w", err)
		}
		progress()
		return nil
	})
}

// Discard removes letters of a consumer without sending them, and calls progress after each.
func (o *Operator) Discard(ctx context.Context, consumer string, letters []DeadLetter, progress func()) ([]LetterFailure, error) {
	return o.settle(ctx, consumer, byKey(letters), func(ctx context.Context, c relayport.LetterClaim, l DeadLetter) error {
		if err := c.Remove(ctx, l.ID); err != nil {
			return err
		}
		progress()
		return nil
	})
}

// settle claims the letters of some keys at a time and calls do for each letter, in order. After an
// error of do it continues with the next key.
func (o *Operator) settle(ctx context.Context, consumer string, keys []KeyLetters, do func(context.Context, relayport.LetterClaim, DeadLetter) error) ([]LetterFailure, error) {
	port, err := o.deadLetters()
	if err != nil {
		return nil, err
	}
	var failures []LetterFailure
	for len(keys) > 0 {
		var ids []string
		n := 0
		for ; n < len(keys) && len(ids) < claimLetters; n++ {
			for _, l := range keys[n].Letters {
				ids = append(ids, l.ID)
			}
		}
		claiming, cancel := context.WithTimeoutCause(ctx, claimTimeout, errors.New("the letters were not found in "+claimTimeout.String()))
		claim, err := port.Claim(claiming, consumer, ids)
		cancel()
		if err != nil {
			return failures, err
		}
		for _, k := range keys[:n] {
			failures = append(failures, settleKey(ctx, claim, k, do)...)
		}
		claim.Release(ctx)
		if ctx.Err() != nil {
			return failures, context.Cause(ctx)
		}
		keys = keys[n:]
	}
	return failures, nil
}

func settleKey(ctx context.Context, claim relayport.LetterClaim, k KeyLetters, do func(context.Context, relayport.LetterClaim, DeadLetter) error) []LetterFailure {
	for i, l := range k.Letters {
		err := ctx.Err()
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, letterTimeout)
			err = do(bounded, claim, l)
			cancel()
		}
		if err != nil {
			return []LetterFailure{{Key: k.Key, Letter: l.ID, Left: len(k.Letters) - i, Err: err}}
		}
	}
	return nil
}
