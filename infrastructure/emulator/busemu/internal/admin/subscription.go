package admin

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
)

// Subscriptions of the admin API.
//
// PUT creates a subscription (201), with the rule in DefaultRuleDescription if there is one.
// PUT with If-Match updates it without its rules (200) and detaches its links. GET of one that
// does not exist returns an empty feed. DELETE deletes it.
//
// It refuses an update of RequiresSession.
//
// Source: azservicebus admin/admin_client_subscription.go.

func (q *request) subscriptions() {
	b, ctx := q.Broker, q.r.Context()
	switch q.r.Method {
	case http.MethodGet:
		if !q.maySub("GetSubscription") {
			return
		}
		info, err := b.Subscription(q.entity, q.subscription)
		if errors.Is(err, broker.NotFound) {
			q.emptyFeed()
			return
		}
		q.replySubscription(http.StatusOK, info, err)
	case http.MethodPut:
		if q.maySub("CreateOrUpdateSubscription") {
			q.putSubscription()
		}
	case http.MethodDelete:
		if q.maySub("DeleteSubscription") {
			q.done(b.DeleteSubscription(ctx, q.entity, q.subscription))
		}
	default:
		q.fail(http.StatusMethodNotAllowed, q.r.Method+" is not allowed here.")
	}
}

func (q *request) putSubscription() {
	content, ok := q.readContent()
	if !ok {
		return
	}
	d := content.child("SubscriptionDescription")
	if d == nil {
		q.fail(http.StatusBadRequest, "The entry's content is not a SubscriptionDescription.")
		return
	}
	p, err := readSubscription(d)
	if err != nil {
		q.failWith(err)
		return
	}
	p.Name = q.subscription
	b, ctx := q.Broker, q.r.Context()
	if !q.update() {
		info, err := b.CreateSubscription(ctx, q.entity, p)
		q.replySubscription(http.StatusCreated, info, err)
		return
	}
	old, err := b.Subscription(q.entity, q.subscription)
	if err != nil {
		q.failWith(err)
		return
	}
	if err := unchanged(d, "Subscription", old.RequiresSession, false, false); err != nil {
		q.failWith(err)
		return
	}
	p.Rules = nil
	info, err := b.UpdateSubscription(ctx, q.entity, p)
	if err == nil {
		defer q.Updated(q.entity + "/Subscriptions/" + q.subscription)
	}
	q.replySubscription(http.StatusOK, info, err)
}

func readSubscription(d *xmlNode) (broker.Subscription, error) {
	var p broker.Subscription
	f := fieldReader{node: d}
	f.duration("LockDuration", &p.LockDuration)
	f.bool("RequiresSession", &p.RequiresSession)
	f.duration("DefaultMessageTimeToLive", &p.DefaultTTL)
	f.bool("DeadLetteringOnMessageExpiration", &p.DeadLetteringOnExpiration)
	f.bool("DeadLetteringOnFilterEvaluationExceptions", &p.DeadLetteringOnFilterErrors)
	f.int("MaxDeliveryCount", &p.MaxDeliveryCount)
	f.notBool("EnableBatchedOperations", &p.DisableBatchedOperations)
	f.status(&p.Status)
	f.entityName("ForwardTo", &p.ForwardTo)
	f.entityName("ForwardDeadLetteredMessagesTo", &p.ForwardDeadLetteredTo)
	f.string("UserMetadata", &p.UserMetadata)
	f.duration("AutoDeleteOnIdle", &p.AutoDeleteOnIdle)
	p.Opaque = opaque(d, "ForwardTo", "ForwardDeadLetteredMessagesTo")
	if f.err != nil {
		return p, f.err
	}
	if r := d.child("DefaultRuleDescription"); r != nil {
		rule, err := readRuleDescription(r, broker.DefaultRule)
		if err != nil {
			return p, err
		}
		p.Rules = []broker.Rule{rule}
	}
	return p, nil
}

func (q *request) replySubscription(status int, info broker.SubscriptionInfo, err error) {
	if err != nil {
		q.failWith(err)
		return
	}
	q.replyEntry(status, subscriptionEntry(info))
}

func (q *request) listSubscriptions() {
	if !q.maySub("EnumerateSubscriptions") {
		return
	}
	all, err := q.Broker.Subscriptions(q.entity)
	if err != nil {
		q.failWith(err)
		return
	}
	var entries []entry
	for _, info := range page(q, all) {
		entries = append(entries, subscriptionEntry(info))
	}
	q.replyFeed("Subscriptions", entries)
}

func subscriptionEntry(info broker.SubscriptionInfo) entry {
	return entry{
		path: info.Topic + "/Subscriptions/" + info.Name, title: info.Name, at: info.CreatedAt, updated: info.UpdatedAt,
		content: func(b *bytes.Buffer) { writeSubscription(b, &info) },
	}
}

func writeSubscription(b *bytes.Buffer, info *broker.SubscriptionInfo) {
	defer description(b, "SubscriptionDescription")()
	element(b, "LockDuration", isoduration.Format(info.LockDuration))
	element(b, "RequiresSession", boolText(info.RequiresSession))
	element(b, "DefaultMessageTimeToLive", isoduration.Format(info.DefaultTTL))
	element(b, "DeadLetteringOnMessageExpiration", boolText(info.DeadLetteringOnExpiration))
	element(b, "DeadLetteringOnFilterEvaluationExceptions", boolText(info.DeadLetteringOnFilterErrors))
	element(b, "MessageCount", strconv.FormatInt(info.Active+info.DeadLetter+info.Scheduled+info.Deferred, 10))
	element(b, "MaxDeliveryCount", strconv.Itoa(info.MaxDeliveryCount))
	element(b, "EnableBatchedOperations", boolText(!info.DisableBatchedOperations))
	element(b, "Status", string(info.Status))
	forwardTo(b, info.Opaque, "ForwardTo", info.ForwardTo)
	element(b, "CreatedAt", formatTime(info.CreatedAt))
	element(b, "UpdatedAt", formatTime(info.UpdatedAt))
	accessed := info.AccessedAt // never zero at the service, unlike a queue's
	if accessed.IsZero() {
		accessed = info.CreatedAt
	}
	element(b, "AccessedAt", formatTime(accessed))
	elementIf(b, "UserMetadata", info.UserMetadata)
	forwardTo(b, info.Opaque, "ForwardDeadLetteredMessagesTo", info.ForwardDeadLetteredTo)
	countDetails(b, &info.Counts)
	element(b, "AutoDeleteOnIdle", isoduration.Format(info.AutoDeleteOnIdle))
	element(b, "EntityAvailabilityStatus", "Available")
}
