package busemu

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// An empty list of rules, as generic code passes it, is not a subscription that receives
// nothing.
func TestEmptyRulesMeanTheDefaultRule(t *testing.T) {
	all := Rule{Name: "all", Action: &Action{}} // an empty action is none
	for name, rules := range map[string][]Rule{"nil": nil, "empty": {}, "empty action": {all}} {
		o := &Options{Topology: &Topology{Topics: []Topic{{Name: "t", Subscriptions: []Subscription{{Name: "s", Rules: rules}}}}}}
		bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
			check(t, srv.Send(ctx, "t", Message{ID: "m"}))
			if got := must(srv.Peek("t/Subscriptions/s", 10))(t); len(got) != 1 {
				t.Errorf("%s: %d messages, want 1", name, len(got))
			}
		})
	}
}

func TestCorrelationFilterRefusesFieldsItDoesNotCompare(t *testing.T) {
	bubble(t, &Options{}, func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		check(t, srv.CreateTopic(ctx, Topic{Name: "t"}))
		for _, fields := range []Fields{{PartitionKey: "k"}, {SequenceNumber: 1}, {EnqueuedAt: srv.Now()}} {
			rule := Rule{Name: "r", Filter: Filter{Kind: CorrelationFilter, Correlation: fields}}
			if err := srv.CreateSubscription(ctx, "t", Subscription{Name: "s", Rules: []Rule{rule}}); err == nil {
				t.Errorf("%+v was accepted", fields)
			}
		}
	})
}
