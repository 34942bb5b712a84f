package doctor

import (
	"context"
	"fmt"
	"strings"

	"feedbox/infrastructure/process/azure"
)

// The built-in roles of Service Bus.
const (
	busSender = "Azure Service Bus Data Sender"
	busOwner  = "Azure Service Bus Data Owner"

	busScope = "https://servicebus.azure.net/.default"
)

// advice returns the command that assigns a role on a topic.
func (d *Doctor) advice(ctx context.Context, role, topic string) string {
	namespace, _, _ := strings.Cut(d.host(), ".")
	return fmt.Sprintf("az role assignment create --role %q --assignee-object-id %s --assignee-principal-type ServicePrincipal --scope /subscriptions/<subscription>/resourceGroups/<resource-group>/providers/Microsoft.ServiceBus/namespaces/%s/topics/%s",
		role, azure.Principal(ctx, d.identity, busScope), namespace, topic)
}
