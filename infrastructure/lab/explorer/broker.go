package explorer

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/page"
)

func (e *Explorer) broker() page.Section {
	return page.Section{
		Path: "broker", Title: "Broker", Templates: templates, Assets: assets, Style: "explorer.css",
		Views: []page.View{
			{Template: "entities.html", Every: 2 * time.Second, Data: e.entities},
			{Path: "messages", Title: "Messages", Template: "messages.html", Data: e.messages},
			{Path: "message", Title: "Message", Template: "message.html", Data: e.message},
			{Path: "rules", Title: "Rules", Template: "rules.html", Data: e.rules},
		},
		Acts: []page.Act{
			{Path: "resubmit", Title: "Resubmit a dead letter", Verb: "Resubmit", Preview: e.previewResubmit, Do: e.resubmit},
			{Path: "send", Title: "Send a message", Verb: "Send", Preview: e.previewSend, Do: e.send},
			{Path: "status", Title: "Enable or disable", Verb: "Change", AtOnce: true, Do: e.setStatus},
		},
	}
}

// maxEntities bounds the topics, queues, subscriptions and rules shown.
const maxEntities = 200

// entity is a queue, or a topic with its subscriptions.
type entity struct {
	Name, Path    string // Path is the argument of Peek
	Topic         bool
	Sessions      bool
	Detects       time.Duration // the duplicate window, 0 for none
	Active, Dead  int64
	Scheduled     int64
	Size          int64
	Status        string
	Subscriptions []entity
	Counters      busemu.Counters
}

// entities has topics and queues. More reports whether there are more of either.
type entities struct {
	Topics, Queues []entity
	More           bool
}

func (e *Explorer) entities(r *http.Request) (any, error) {
	ctx := r.Context()
	out := &entities{}
	topics := e.admin.NewListTopicsPager(nil)
	for topics.More() && !out.More {
		found, err := topics.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range found.Topics {
			topic, err := e.topic(ctx, &found.Topics[i])
			if err != nil {
				return nil, err
			}
			out.Topics = append(out.Topics, *topic)
		}
		out.More = len(out.Topics) > maxEntities
	}
	queues := e.admin.NewListQueuesPager(nil)
	for queues.More() && len(out.Queues) <= maxEntities {
		found, err := queues.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range found.Queues {
			q := &found.Queues[i]
			now, err := e.admin.GetQueueRuntimeProperties(ctx, q.QueueName, nil)
			if err != nil || now == nil {
				continue // it was deleted meanwhile
			}
			out.Queues = append(out.Queues, entity{
				Name: q.QueueName, Path: q.QueueName, Sessions: set(q.RequiresSession), Detects: window(set(q.RequiresDuplicateDetection), q.DuplicateDetectionHistoryTimeWindow),
				Active: int64(now.ActiveMessageCount), Dead: int64(now.DeadLetterMessageCount), Scheduled: int64(now.ScheduledMessageCount),
				Size: now.SizeInBytes, Status: statusOf(q.Status), Counters: e.counters(q.QueueName),
			})
		}
	}
	out.More = out.More || len(out.Queues) > maxEntities
	return out, nil
}

func (e *Explorer) topic(ctx context.Context, item *admin.TopicItem) (*entity, error) {
	topic := &entity{
		Name: item.TopicName, Path: item.TopicName, Topic: true, Status: statusOf(item.Status),
		Detects: window(set(item.RequiresDuplicateDetection), item.DuplicateDetectionHistoryTimeWindow), Counters: e.counters(item.TopicName),
	}
	if now, err := e.admin.GetTopicRuntimeProperties(ctx, item.TopicName, nil); err == nil && now != nil {
		topic.Size, topic.Scheduled = now.SizeInBytes, int64(now.ScheduledMessageCount)
	}
	subscriptions := e.admin.NewListSubscriptionsPager(item.TopicName, nil)
	for subscriptions.More() && len(topic.Subscriptions) < maxEntities {
		found, err := subscriptions.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range found.Subscriptions {
			s := &found.Subscriptions[i]
			line := entity{Name: s.SubscriptionName, Path: item.TopicName + "/Subscriptions/" + s.SubscriptionName, Sessions: set(s.RequiresSession), Status: statusOf(s.Status)}
			line.Counters = e.counters(line.Path)
			if now, err := e.admin.GetSubscriptionRuntimeProperties(ctx, item.TopicName, s.SubscriptionName, nil); err == nil && now != nil {
				line.Active, line.Dead = int64(now.ActiveMessageCount), int64(now.DeadLetterMessageCount)
			}
			topic.Subscriptions = append(topic.Subscriptions, line)
		}
	}
	return topic, nil
}

func (e *Explorer) counters(path string) busemu.Counters {
	c, err := e.bus.Counters(path)
	if err != nil {
		return busemu.Counters{} // it was deleted meanwhile
	}
	return c
}

func set(b *bool) bool { return b != nil && *b }

func statusOf(s *admin.EntityStatus) string {
	if s == nil {
		return string(admin.EntityStatusActive)
	}
	return string(*s)
}

// window parses a duplicate window of the admin API.
func window(detects bool, iso *string) time.Duration {
	if !detects || iso == nil {
		return 0
	}
	d, err := time.ParseDuration(strings.ToLower(strings.NewReplacer("P", "", "T", "").Replace(*iso)))
	if err != nil {
		return time.Second // not 0, because there is a window
	}
	return d
}

// parts parses the path of a queue or a subscription, or of its dead letters.
func parts(path string) (topic, name string, dead bool) {
	path, dead = strings.CutSuffix(path, deadLetters)
	topic, name, sub := strings.Cut(path, "/Subscriptions/")
	if !sub {
		return "", path, dead
	}
	return topic, name, dead
}

const deadLetters = "/$DeadLetterQueue"

// ruleLine is a rule of a subscription.
type ruleLine struct{ Name, Filter, Action string }

// ruleList has the rules of a subscription.
type ruleList struct {
	Topic, Name string
	Rules       []ruleLine
}

func (e *Explorer) rules(r *http.Request) (any, error) {
	path := strings.TrimSuffix(r.URL.Query().Get("path"), deadLetters)
	topic, name, _ := parts(path)
	if _, err := e.bus.Counters(path); topic == "" || err != nil { // the SDK lists no rules of an unknown subscription
		return nil, missing("subscription", "See the list of entities.")
	}
	out := &ruleList{Topic: topic, Name: name}
	pager := e.admin.NewListRulesPager(topic, name, nil)
	for pager.More() && len(out.Rules) < maxEntities {
		found, err := pager.NextPage(r.Context())
		if err != nil {
			return nil, missing("subscription", "See the list of entities.")
		}
		for i := range found.Rules {
			rule := &found.Rules[i]
			line := ruleLine{Name: rule.Name, Filter: filterOf(rule.Filter)}
			if action, ok := rule.Action.(*admin.SQLAction); ok {
				line.Action = action.Expression
			}
			out.Rules = append(out.Rules, line)
		}
	}
	return out, nil
}

func filterOf(f admin.RuleFilter) string {
	switch f := f.(type) {
	case *admin.TrueFilter:
		return "every message"
	case *admin.FalseFilter:
		return "no message"
	case *admin.SQLFilter:
		return f.Expression
	case *admin.CorrelationFilter:
		var all []string
		for name, value := range map[string]*string{
			"content type": f.ContentType, "correlation id": f.CorrelationID, "message id": f.MessageID, "reply to": f.ReplyTo,
			"reply to session": f.ReplyToSessionID, "session": f.SessionID, "subject": f.Subject, "to": f.To,
		} {
			if value != nil {
				all = append(all, name+" = "+*value)
			}
		}
		for name, value := range f.ApplicationProperties {
			all = append(all, fmt.Sprintf("%s = %v", name, value))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%T", f)
}

func (e *Explorer) setStatus(ctx context.Context, o *page.Order) error {
	status := busemu.StatusActive
	if o.Values.Get("to") == "off" {
		status = busemu.StatusDisabled
	}
	return impossible(e.bus.SetStatus(ctx, o.Values.Get("path"), status))
}
