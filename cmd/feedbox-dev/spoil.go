package main

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	if e.PostgresURL != "" {
		return usageError{errors.New("an event can be spoilt in the Cosmos DB emulator only: start feedbox-dev without --store")}
	}
	credential, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		return err
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, credential, nil)
	if err != nil {
		return err
	}
	container, err := client.NewContainer(e.Database, e.Container)
	if err != nil {
		return err
	}
	key, id := uuid.NewString(), uuid.NewString()
	document := fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"contactId":%q,"id":%q,"aggregateVersion":1,"sequence":1},"ttl":864000}`, id, key, key, id)
	if _, err := container.CreateItem(ctx, azcosmos.NewPartitionKeyString(key), document, nil); err != nil {
		return fmt.Errorf("store the event: %w", err)
	}
	_, err = io.WriteString(out, exports("KEY", key, "EVENT", id))
	return err
}
