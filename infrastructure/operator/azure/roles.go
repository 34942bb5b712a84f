package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
)

// DataRole gives rights on the data plane of Cosmos DB.
type DataRole struct {
	// Name is what bicep/modules/roles.bicep calls the role. It allows what the process
	// does and nothing else.
	Name string
	// BuiltIn and BuiltInName are the role every account has (azure-docs, "Use data plane
	// role-based access control") that allows this, and more.
	BuiltIn, BuiltInName string
}

// The roles. tests/infra holds them against the Bicep.
var (
	metadataRole    = reading("Feedbox metadata reader")
	apiRole         = writing("Feedbox API")
	feedRole        = reading("Feedbox change feed reader")
	bookkeepingRole = writing("Feedbox bookkeeper")
	parkingRole     = writing("Feedbox parking")
)

func reading(name string) DataRole {
	return DataRole{name, "00000000-0000-0000-0000-000000000001", "Cosmos DB Built-in Data Reader"}
}

func writing(name string) DataRole {
	return DataRole{name, "00000000-0000-0000-0000-000000000002", "Cosmos DB Built-in Data Contributor"}
}

// DataRoles are the roles process needs, by the container they are for; "" is the account.
func DataRoles(process operator.Process, cfg config.Cosmos) map[string]DataRole {
	if process == operator.ProcessAPI {
		return map[string]DataRole{"": metadataRole, cfg.Container: apiRole}
	}
	return map[string]DataRole{"": metadataRole, cfg.Container: feedRole, cfg.Leases: bookkeepingRole, cfg.Parked: parkingRole}
}

// The roles of Service Bus, all built in.
const (
	busSender = "Azure Service Bus Data Sender"
	busOwner  = "Azure Service Bus Data Owner"

	busScope = "https://servicebus.azure.net/.default"
)

// advice says what to do about err. role is what the process needs in container,
// which is "" for the whole account.
func (o *storeDoctor) advice(ctx context.Context, err error, role DataRole, container string) string {
	code := status(err)
	withKey := o.cfg.Key.IsSet()
	expires, _ := errors.AsType[*cosmos.ExpiryError](err)
	switch {
	case code == http.StatusUnauthorized && withKey:
		return "FEEDBOX_COSMOS_KEY is not a key of this account, or the clock is off: copy the primary key of the account"
	case code == http.StatusForbidden && withKey:
		return "the account refuses keys or this network: use a managed identity (leave FEEDBOX_COSMOS_KEY out), and check the account's firewall"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return o.assignment(ctx, role, container)
	case code == http.StatusNotFound:
		return "create the database and its containers: azd provision"
	case credentialFailed(err):
		return "no identity could be had: az login, or run where a managed identity is, or set FEEDBOX_COSMOS_KEY"
	case code == 0 && (fault.Is(err, fault.Unavailable) || ctx.Err() != nil):
		return "nothing answers: check FEEDBOX_COSMOS_ENDPOINT, the network and the account's firewall"
	case expires != nil:
		return fmt.Sprintf("az cosmosdb sql container update --resource-group <resource-group> --account-name %s --database-name %s --name %s --ttl -1", o.accountName(), o.cfg.Database, expires.Container)
	case code == 0:
		return "create the container as it has to be: azd provision"
	}
	return "try again; if it stays, look into the account's metrics and the status of Azure"
}

// assignment is the line that gives role in container, and what to write in it where the
// deployment has not made the role.
func (o *storeDoctor) assignment(ctx context.Context, role DataRole, container string) string {
	scope := "/"
	if container != "" {
		scope = fmt.Sprintf("/dbs/%s/colls/%s", o.cfg.Database, container)
	}
	return fmt.Sprintf("az cosmosdb sql role assignment create --resource-group <resource-group> --account-name %s --scope %q --principal-id %s --role-definition-name %q\n"+
		"That role comes with bicep/modules/roles.bicep. In an account without it, put --role-definition-id %s in place of the name: %s, which allows more.",
		o.accountName(), scope, principal(ctx, o.identity, strings.TrimRight(o.cfg.Endpoint, "/")+"/.default"), role.Name, role.BuiltIn, role.BuiltInName)
}

func (o *storeDoctor) accountName() string {
	name, _, _ := strings.Cut(o.host(), ".")
	return name
}

// credentialFailed tells whether no token could be had. azidentity's errors have this
// mark.
func credentialFailed(err error) bool {
	var marked interface {
		error
		NonRetriable()
	}
	return errors.As(err, &marked) && status(err) == 0
}

// advice is the line that gives a role on a topic.
func (b *broker) advice(ctx context.Context, role, topic string) string {
	namespace, _, _ := strings.Cut(b.host(), ".")
	return fmt.Sprintf("az role assignment create --role %q --assignee-object-id %s --assignee-principal-type ServicePrincipal --scope /subscriptions/<subscription>/resourceGroups/<resource-group>/providers/Microsoft.ServiceBus/namespaces/%s/topics/%s",
		role, principal(ctx, b.identity, busScope), namespace, topic)
}

// principal is the object id of an identity, as its token for scope tells. A placeholder
// if there is none.
func principal(ctx context.Context, identity azcore.TokenCredential, scope string) string {
	const unknown = "<object-id>"
	if identity == nil {
		return unknown
	}
	token, err := identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return unknown
	}
	return objectID(token.Token, unknown)
}

// objectID reads the claim oid of a token (Microsoft identity platform, access token
// claims). The token came from its issuer; nothing is decided by it.
func objectID(token, otherwise string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return otherwise
	}
	var claims struct {
		ObjectID string `json:"oid"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.ObjectID == "" {
		return otherwise
	}
	return claims.ObjectID
}
