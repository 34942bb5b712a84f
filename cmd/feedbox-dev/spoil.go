package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func spoilCommand(out io.Writer) *cobra.Command {
	p := &place{}
	cmd := &cobra.Command{
		Use:   "spoil",
		Short: "Store an event that cannot be sent, to try feedbox parked on",
		Long: `Store an event that cannot be sent, to try feedbox parked on: it has no action, as
if written by hand. The relay parks it after a few tries. Printed are shell lines that
set KEY and EVENT to what feedbox parked calls them:

  eval "$(feedbox-dev spoil)"
  feedbox parked show "$KEY"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.spoil(cmd.Context(), out) },
	}
	p.register(cmd.Flags())
	return cmd
}

func (p *place) spoil(ctx context.Context, out io.Writer) error {
	e, err := p.findLiving(ctx)
	if err != nil {
		return err
	}
	key, id, err := e.spoil(ctx, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, exports("KEY", key, "EVENT", id))
	return err
}

// spoil stores an event that cannot be sent, and behind it others of its key that could.
func (e *endpoints) spoil(ctx context.Context, behind int) (key, id string, err error) {
	if e.PostgresURL != "" {
		return "", "", usageError{errors.New("an event can be spoilt in the Cosmos DB emulator only: start feedbox-dev without --store")}
	}
	credential, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		return "", "", err
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, credential, nil)
	if err != nil {
		return "", "", err
	}
	container, err := client.NewContainer(e.Database, e.Container)
	if err != nil {
		return "", "", err
	}
	key, id = uuid.NewString(), uuid.NewString()
	for n := range 1 + behind {
		event, action := id, ""
		if n > 0 {
			event, action = uuid.NewString(), `"action":"ContactUpdatedEvent",`
		}
		document := fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{%s"contactId":%q,"id":%q,"createdAt":%q,"aggregateVersion":%d,"sequence":%d},"ttl":864000}`,
			event, key, action, key, event, time.Now().UTC().Format(time.RFC3339Nano), n+1, n+1)
		if _, err := container.CreateItem(ctx, azcosmos.NewPartitionKeyString(key), document, nil); err != nil {
			return "", "", fmt.Errorf("store the event: %w", err)
		}
	}
	return key, id, nil
}
