package broker

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Limits and defaults of entity properties, from the service's documentation.
const (
	defaultLockDuration = time.Minute
	maxLockDuration     = 5 * time.Minute
	defaultMaxDelivery  = 10
	defaultSizeMB       = 1024
	defaultWindow       = 10 * time.Minute
	minWindow           = 20 * time.Second
	maxWindow           = 7 * 24 * time.Hour
	minIdle             = 5 * time.Minute
	maxEntityName       = 260
	maxShortName        = 50 // of subscriptions and rules
)

// faults collects the errors of a request.
type faults []error

func (f *faults) unless(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return errorf(ArgumentError, "%s", strings.ReplaceAll(errors.Join(f...).Error(), "\n", " "))
}

func (f *faults) name(what, name string, limit int) {
	f.unless(name != "", "The name of the %s is empty.", what)
	f.unless(utf8.RuneCountInString(name) <= limit, "The name of the %s has more than %d characters.", what, limit)
	f.unless(!strings.ContainsAny(name, "\\?#@*<>%&") && strings.Trim(name, "/") == name && utf8.ValidString(name),
		"The name '%s' of the %s has characters that are not allowed.", name, what)
	if limit == maxShortName {
		f.unless(!strings.Contains(name, "/"), "The name '%s' of the %s has a slash.", name, what)
	}
}

// value checks that a value can be stored.
func (f *faults) value(what string, v any) {
	err := sqlfilter.CheckValue(v)
	f.unless(err == nil, "The value of %s: %v.", what, err)
}

func (f *faults) lock(d *time.Duration) {
	fill(d, defaultLockDuration)
	f.unless(*d > 0 && *d <= maxLockDuration, "LockDuration is %v; it must be positive and at most %v.", *d, maxLockDuration)
}

func (f *faults) window(d *time.Duration) {
	fill(d, defaultWindow)
	f.unless(*d >= minWindow && *d <= maxWindow, "DuplicateDetectionHistoryTimeWindow is %v; it must be from %v to %v.", *d, minWindow, maxWindow)
}

func (f *faults) ttl(d *time.Duration) {
	fill(d, Forever)
	f.unless(*d >= time.Second, "DefaultMessageTimeToLive is %v; it must be at least 1s.", *d)
}

func (f *faults) idle(d *time.Duration) {
	fill(d, Forever)
	f.unless(*d >= minIdle, "AutoDeleteOnIdle is %v; it must be at least %v.", *d, minIdle)
}

// forwarding refuses to forward from an entity with sessions (azure-service-bus issues 317 and 660).
func (f *faults) forwarding(sessions bool, to string) {
	f.unless(!sessions || to == "", "SubCode=40000. Bad Request. An entity that requires sessions cannot have ForwardTo.")
}

func (f *faults) deliveries(n *int) {
	fill(n, defaultMaxDelivery)
	f.unless(*n >= 1 && *n <= 2000, "MaxDeliveryCount is %d; it must be from 1 to 2000.", *n)
}

func (f *faults) status(s *Status) {
	fill(s, StatusActive)
	switch *s {
	case StatusActive, StatusDisabled, StatusSendDisabled, StatusReceiveDisabled:
	default:
		f.unless(false, "The status '%s' is unknown.", *s)
	}
}

func (f *faults) sizes(e *engine, sizeMB, messageKB *int, partitioned bool) {
	standard := defaultSizeMB
	if partitioned && !e.options.Premium {
		standard *= e.Partitions()
	}
	fill(sizeMB, standard)
	f.unless(*sizeMB > 0, "MaxSizeInMegabytes is %d; it must be positive.", *sizeMB)
	fill(messageKB, e.maxMessageSize()>>10)
	f.unless(*messageKB > 0, "MaxMessageSizeInKilobytes is %d; it must be positive.", *messageKB)
	f.unless(e.options.Premium || *messageKB <= StandardMaxMessageSize>>10,
		"MaxMessageSizeInKilobytes is %d; a namespace of the Standard tier takes messages of %d KB at most.", *messageKB, StandardMaxMessageSize>>10)
}

func fill[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

func validateQueue(e *engine, p *Queue) error {
	var f faults
	f.name("queue", p.Name, maxEntityName)
	f.lock(&p.LockDuration)
	f.window(&p.DuplicateDetectionWindow)
	f.ttl(&p.DefaultTTL)
	f.idle(&p.AutoDeleteOnIdle)
	f.deliveries(&p.MaxDeliveryCount)
	f.status(&p.Status)
	f.sizes(e, &p.MaxSizeMB, &p.MaxMessageSizeKB, p.Partitioned)
	f.forwarding(p.RequiresSession, p.ForwardTo)
	return f.err()
}

func validateTopic(e *engine, p *Topic) error {
	var f faults
	f.name("topic", p.Name, maxEntityName)
	f.window(&p.DuplicateDetectionWindow)
	f.ttl(&p.DefaultTTL)
	f.idle(&p.AutoDeleteOnIdle)
	f.status(&p.Status)
	f.sizes(e, &p.MaxSizeMB, &p.MaxMessageSizeKB, p.Partitioned)
	return f.err()
}

func validateSubscription(p *Subscription) error {
	var f faults
	f.name("subscription", p.Name, maxShortName)
	f.lock(&p.LockDuration)
	f.ttl(&p.DefaultTTL)
	f.idle(&p.AutoDeleteOnIdle)
	f.deliveries(&p.MaxDeliveryCount)
	f.status(&p.Status)
	f.forwarding(p.RequiresSession, p.ForwardTo)
	return f.err()
}

// limit converts a time span to nanoseconds, 0 for Forever.
func limit(d time.Duration) int64 {
	if d == Forever {
		return 0
	}
	return int64(d)
}
