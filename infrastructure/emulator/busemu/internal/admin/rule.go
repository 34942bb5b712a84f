package admin

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Rules of the admin API.
//
// GET returns one rule or all rules of a subscription, PUT creates one (201), PUT with
// If-Match updates it (200), DELETE deletes it. Filters and actions are returned as the XML in
// which they came, even if their type is unknown.
//
// It refuses SQL that does not parse. A filter of an unknown type is stored; the broker
// refuses a send that would have to evaluate it.
//
// Source: azservicebus admin/admin_client_rules.go.

func (q *request) rules() {
	b, ctx := q.Broker, q.r.Context()
	info, err := b.Subscription(q.entity, q.subscription)
	switch {
	case q.r.Method == http.MethodGet && q.list:
		if !q.maySub("EnumerateRules") {
			return
		}
		if err != nil {
			q.failWith(err)
			return
		}
		var entries []entry
		for _, r := range page(q, info.Rules) {
			entries = append(entries, q.ruleEntry(r))
		}
		q.replyFeed("Rules", entries)
	case q.r.Method == http.MethodGet:
		if !q.maySub("GetRule") {
			return
		}
		for _, r := range info.Rules {
			if strings.EqualFold(r.Name, q.rule) {
				q.replyEntry(http.StatusOK, q.ruleEntry(r))
				return
			}
		}
		if err != nil && !errors.Is(err, broker.NotFound) {
			q.failWith(err)
			return
		}
		q.emptyFeed()
	case q.r.Method == http.MethodPut && !q.list:
		if q.maySub("CreateOrUpdateRule") {
			q.putRule()
		}
	case q.r.Method == http.MethodDelete && !q.list:
		if q.maySub("DeleteRule") {
			q.done(b.DeleteRule(ctx, q.entity, q.subscription, q.rule))
		}
	default:
		q.fail(http.StatusMethodNotAllowed, q.r.Method+" is not allowed here.")
	}
}

func (q *request) putRule() {
	content, ok := q.readContent()
	if !ok {
		return
	}
	d := content.child("RuleDescription")
	if d == nil {
		q.fail(http.StatusBadRequest, "The entry's content is not a RuleDescription.")
		return
	}
	rule, err := readRuleDescription(d, q.rule)
	if err != nil {
		q.failWith(err)
		return
	}
	rule.Name = q.rule
	status, put := http.StatusCreated, q.Broker.CreateRule
	if q.update() {
		status, put = http.StatusOK, q.Broker.UpdateRule
	}
	stored, err := put(q.r.Context(), q.entity, q.subscription, rule)
	if err != nil {
		q.failWith(err)
		return
	}
	q.replyEntry(status, q.ruleEntry(stored))
}

func (q *request) ruleEntry(r broker.Rule) entry {
	return entry{
		path: q.entity + "/Subscriptions/" + q.subscription + "/Rules/" + r.Name, title: r.Name, at: r.CreatedAt, updated: r.CreatedAt,
		content: func(b *bytes.Buffer) { writeRule(b, &r) },
	}
}
