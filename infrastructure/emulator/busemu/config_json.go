package busemu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
)

// LoadConfig reads a topology from a file in the format of the official emulator's
// Config.json. It reports all errors of the file at once; an unknown property is an error.
func LoadConfig(path string) (*Topology, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("busemu: %w", err)
	}
	t, err := ParseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("busemu: %s: %w", path, err)
	}
	return t, nil
}

type configFile struct {
	UserConfig struct {
		Namespaces []configNamespace
		Logging    json.RawMessage // destinations of the official emulator's log; not used here
	}
}

type configNamespace struct {
	Name   string
	Queues []struct {
		Name       string
		Properties configQueue
	}
	Topics []struct {
		Name          string
		Properties    configTopic
		Subscriptions []struct {
			Name       string
			Properties configSubscription
			Rules      []configRule
		}
	}
}

type configQueue struct {
	DeadLetteringOnMessageExpiration    bool
	DefaultMessageTimeToLive            configDuration
	DuplicateDetectionHistoryTimeWindow configDuration
	EnablePartitioning                  bool // not in the official emulator
	ForwardDeadLetteredMessagesTo       string
	ForwardTo                           string
	LockDuration                        configDuration
	MaxDeliveryCount                    configCount
	RequiresDuplicateDetection          bool
	RequiresSession                     bool
}

type configTopic struct {
	DefaultMessageTimeToLive            configDuration
	DuplicateDetectionHistoryTimeWindow configDuration
	EnablePartitioning                  bool
	RequiresDuplicateDetection          bool
}

type configSubscription struct {
	DeadLetteringOnMessageExpiration bool
	DefaultMessageTimeToLive         configDuration
	ForwardDeadLetteredMessagesTo    string
	ForwardTo                        string
	LockDuration                     configDuration
	MaxDeliveryCount                 configCount
	RequiresSession                  bool
}

type configRule struct {
	Name       string
	Properties struct {
		FilterType        string // "Correlation" or "Sql"
		CorrelationFilter *configCorrelation
		SqlFilter         *struct{ SqlExpression string } //nolint:revive // the file's name
		Action            *struct{ SqlExpression string } //nolint:revive // the file's name
	}
}

type configCorrelation struct {
	ContentType, CorrelationId, Label, MessageId, ReplyTo, ReplyToSessionId, SessionId, To string //nolint:revive // the file's names
	Properties                                                                             map[string]any
}

// configDuration is an ISO 8601 duration.
type configDuration time.Duration

func (d *configDuration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == "" {
		return nil
	}
	v, err := isoduration.Parse(s)
	if err == nil && v == 0 { // the broker would read it as no value
		err = errors.New("a duration must be positive")
	}
	*d = configDuration(v)
	return err
}

// configCount is a number from 1.
type configCount int

func (n *configCount) UnmarshalJSON(b []byte) error {
	err := json.Unmarshal(b, (*int)(n))
	if err == nil && *n < 1 { // the broker would read 0 as no value
		err = errors.New("MaxDeliveryCount must be positive")
	}
	return err
}

// ParseConfig is LoadConfig for the contents of a file.
func ParseConfig(b []byte) (*Topology, error) {
	var file configFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON document")
	}
	spaces := file.UserConfig.Namespaces
	if len(spaces) != 1 {
		return nil, fmt.Errorf("%d namespaces: the emulator supports exactly one", len(spaces))
	}
	return spaces[0].topology()
}

func (n *configNamespace) topology() (*Topology, error) {
	var t Topology
	var faults []error
	for _, q := range n.Queues {
		p := q.Properties
		t.Queues = append(t.Queues, Queue{
			Name:                      q.Name,
			DeadLetteringOnExpiration: p.DeadLetteringOnMessageExpiration, DefaultTTL: time.Duration(p.DefaultMessageTimeToLive),
			DuplicateDetectionWindow: time.Duration(p.DuplicateDetectionHistoryTimeWindow), ForwardDeadLetteredTo: p.ForwardDeadLetteredMessagesTo,
			ForwardTo: p.ForwardTo, LockDuration: time.Duration(p.LockDuration), MaxDeliveryCount: int(p.MaxDeliveryCount),
			RequiresDuplicateDetection: p.RequiresDuplicateDetection, RequiresSession: p.RequiresSession, Partitioned: p.EnablePartitioning,
		})
	}
	for _, topic := range n.Topics {
		p := topic.Properties
		out := Topic{
			Name:       topic.Name,
			DefaultTTL: time.Duration(p.DefaultMessageTimeToLive), DuplicateDetectionWindow: time.Duration(p.DuplicateDetectionHistoryTimeWindow),
			RequiresDuplicateDetection: p.RequiresDuplicateDetection, Partitioned: p.EnablePartitioning,
		}
		for _, sub := range topic.Subscriptions {
			p := sub.Properties
			s := Subscription{
				Name:                      sub.Name,
				DeadLetteringOnExpiration: p.DeadLetteringOnMessageExpiration, DefaultTTL: time.Duration(p.DefaultMessageTimeToLive),
				ForwardDeadLetteredTo: p.ForwardDeadLetteredMessagesTo, ForwardTo: p.ForwardTo, LockDuration: time.Duration(p.LockDuration),
				MaxDeliveryCount: int(p.MaxDeliveryCount), RequiresSession: p.RequiresSession,
			}
			for _, r := range sub.Rules {
				rule, err := r.rule()
				if err != nil {
					faults = append(faults, fmt.Errorf("topic %s, subscription %s, rule %s: %w", topic.Name, sub.Name, r.Name, err))
				}
				s.Rules = append(s.Rules, rule)
			}
			out.Subscriptions = append(out.Subscriptions, s)
		}
		t.Topics = append(t.Topics, out)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &t, nil
}

func (r *configRule) rule() (Rule, error) {
	out := Rule{Name: r.Name}
	p := &r.Properties
	switch {
	case p.FilterType == "Correlation" && p.CorrelationFilter != nil:
		c := p.CorrelationFilter
		out.Filter = Filter{Kind: CorrelationFilter, Correlation: Fields{
			ContentType: c.ContentType, CorrelationID: c.CorrelationId, Subject: c.Label, MessageID: c.MessageId,
			ReplyTo: c.ReplyTo, ReplyToSessionID: c.ReplyToSessionId, SessionID: c.SessionId, To: c.To, Properties: c.Properties,
		}}
	case p.FilterType == "Sql" && p.SqlFilter != nil:
		out.Filter = Filter{Kind: SQLFilter, Expression: p.SqlFilter.SqlExpression}
	default:
		return out, fmt.Errorf("FilterType is %q: it must be Correlation with a CorrelationFilter, or Sql with a SqlFilter", p.FilterType)
	}
	if p.Action != nil && p.Action.SqlExpression != "" {
		out.Action = &Action{Expression: p.Action.SqlExpression}
	}
	return out, nil
}
