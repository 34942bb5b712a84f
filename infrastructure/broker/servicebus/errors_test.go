package servicebus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

func TestClassifyErrors(t *testing.T) {
	answer := rejected
	tests := []struct {
		err    error
		class  relay.Class
		reason string
	}{
		{answer("com.microsoft:server-busy"), relay.Outage, "server_busy"},
		{answer("com.microsoft:timeout"), relay.Outage, "server_timeout"},
		{answer(amqp.ErrCondUnauthorizedAccess), relay.Outage, "unauthorized"},
		{answer(amqp.ErrCondDetachForced), relay.Outage, "link_detached"},
		{answer("some:thing-new"), relay.Outage, "unknown"},
		{answer(amqp.ErrCondNotFound), relay.Blocked, "entity_not_found"},
		{answer("com.microsoft:entity-disabled"), relay.Blocked, "entity_disabled"},
		{answer(amqp.ErrCondResourceLimitExceeded), relay.Blocked, "entity_full"},
		{answer(amqp.ErrCondMessageSizeExceeded), relay.Refused, "too_large"},
		{answer(amqp.ErrCondDecodeError), relay.Refused, "malformed"},
		{answer(amqp.ErrCondNotAllowed), relay.Refused, "not_allowed"},
		{&notAcceptedError{amqp.Error{Condition: "rejected"}}, relay.Refused, "rejected"},
		{&notAcceptedError{amqp.Error{Condition: "no outcome"}}, relay.Outage, "no_outcome"},
		{fmt.Errorf("wrapped: %w", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotFound}}), relay.Blocked, "entity_not_found"},
		{&amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}, relay.Refused, "not_allowed"},
		{&amqp.SessionError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}, relay.Outage, "connection_lost"},
		{&amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondInvalidField}}, relay.Outage, "connection_lost"},
		{&amqp.LinkError{}, relay.Outage, "connection_lost"},
		{&amqp.ConnError{}, relay.Outage, "connection_lost"},
		{&amqp.Error{Condition: amqp.ErrCondMessageSizeExceeded}, relay.Refused, "too_large"},
		{&attachError{&amqp.Error{Condition: amqp.ErrCondNotAllowed}}, relay.Blocked, "link_refused"},
		{&attachError{&amqp.Error{Condition: amqp.ErrCondNotFound}}, relay.Blocked, "entity_not_found"},
		{&attachError{&amqp.Error{Condition: "some:thing-new"}}, relay.Outage, "unknown"},
		{&attachError{&amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}}, relay.Outage, "connection_lost"},
		{&attachError{&wire.RefusedError{Status: 401}}, relay.Outage, "unauthorized"},
		{&attachError{&wire.RefusedError{Status: 404}}, relay.Blocked, "entity_not_found"},
		{&attachError{&wire.RefusedError{Status: 500}}, relay.Outage, "connection_lost"},
		{&attachError{&net.OpError{Op: "dial", Err: errors.New("connection refused")}}, relay.Outage, "connection_lost"},
		{&attachError{shared.ErrClosed}, relay.Outage, "client_closed"},
		{&azidentity.AuthenticationFailedError{}, relay.Outage, "credential"},
		{errors.New("what is this"), relay.Outage, "unknown"},
	}
	for _, tt := range tests {
		got := classify(t.Context(), t.Context(), tt.err)
		if relay.ClassOf(got) != tt.class || relay.ReasonOf(got) != tt.reason || !errors.Is(got, tt.err) {
			t.Errorf("%v is %v, want %v %s", tt.err, got, tt.class, tt.reason)
		}
	}
}

// Only a refusal for the size of a message is not ambiguous.
func TestRefusalsAreAmbiguous(t *testing.T) {
	for cond, doubtful := range map[amqp.ErrCond]bool{
		amqp.ErrCondMessageSizeExceeded: false, "com.microsoft:entity-disabled": false, "com.microsoft:server-busy": false,
		amqp.ErrCondNotAllowed: true, "com.microsoft:argument-error": true, amqp.ErrCondDecodeError: true, "some:thing-new": true,
		"released": true,
	} {
		e, ok := errors.AsType[*relay.Error](classify(t.Context(), t.Context(), rejected(cond)))
		if !ok || e.Ambiguous != doubtful {
			t.Errorf("%s is %+v, want ambiguous %v", cond, e, doubtful)
		}
	}
}

func TestClassifyReturnsTheErrorOfAnEndedContext(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("lease lost")
	cancel(lost)
	// What go-amqp says of a link without credit when the context ends.
	err := &amqp.Error{Condition: amqp.ErrCondTransferLimitExceeded}
	if got := classify(ended, ended, err); !errors.Is(got, lost) || relay.ClassOf(got) != relay.Outage {
		t.Errorf("classified %v, want the cause of the context", got)
	}
	if got := classify(t.Context(), ended, err); relay.ReasonOf(got) != "send_timeout" {
		t.Errorf("classified %v, want send_timeout", got)
	}
	if got := classify(t.Context(), ended, rejected(amqp.ErrCondNotAllowed)); relay.ReasonOf(got) != "not_allowed" {
		t.Errorf("classified %v, want what the broker answered before the time was up", got)
	}
}

// A send to an ended link is retried. A permanent error, or a link that cannot be attached, would fail
// again.
func TestOnlyEndedLinksAreRetried(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		err     error
		attempt context.Context //nolint:containedctx // of the try
		want    bool
	}{
		{&amqp.LinkError{}, t.Context(), true},
		{&amqp.SessionError{}, t.Context(), true},
		{&amqp.ConnError{}, t.Context(), true},
		{&amqp.LinkError{}, ended, false},
		{&attachError{&amqp.LinkError{}}, t.Context(), false},
		{&amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotFound}}, t.Context(), false},
		{rejected("com.microsoft:server-busy"), t.Context(), false},
		{errors.New("what is this"), t.Context(), false},
	} {
		if got := linkHadEnded(classify(t.Context(), tt.attempt, tt.err)); got != tt.want {
			t.Errorf("%T %v is sent again: %v, want %v", tt.err, tt.err, got, tt.want)
		}
	}
}

func TestNewClientValidatesItsConfig(t *testing.T) {
	for _, cfg := range []ClientConfig{
		{},
		{Namespace: "contoso.servicebus.windows.net"},
		{Namespace: "contoso.servicebus.windows.net", ConnectionString: "Endpoint=sb://x;SharedAccessKeyName=a;SharedAccessKey=b"},
		{ConnectionString: "nonsense"},
	} {
		if _, err := NewClient(cfg); err == nil {
			t.Errorf("config %+v was accepted", cfg)
		}
	}
}
