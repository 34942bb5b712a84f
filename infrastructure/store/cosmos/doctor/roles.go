package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// DataRole is a role on the data plane of Cosmos DB.
type DataRole struct {
	// Name is the name of the role in bicep/modules/roles.bicep. It has exactly the rights that
	// the process uses.
	Name string
	// BuiltIn and BuiltInName are the built-in role that includes these rights (azure-docs,
	// "Use data plane role-based access control").
	BuiltIn, BuiltInName string
}

// The roles. tests/infra compares them with the Bicep.
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

// DataRoles returns the roles that a process needs, by container; "" is the account.
func DataRoles(process operator.Process, cfg config.Cosmos) map[string]DataRole {
	if process == operator.ProcessAPI {
		return map[string]DataRole{"": metadataRole, cfg.Container: apiRole}
	}
	return map[string]DataRole{"": metadataRole, cfg.Container: feedRole, cfg.Leases: bookkeepingRole, cfg.Parked: parkingRole}
}

// advice returns the remedy for err. role is the role that the process needs in container; "" is
// the account.
func (d *Doctor) advice(ctx context.Context, err error, role DataRole, container string) string {
	code := azure.StatusOf(err)
	withKey := d.cfg.Key.IsSet()
	expires, _ := errors.AsType[*cosmos.ExpiryError](err)
	switch {
	case store.RegionOf(err) != "":
		return d.regionAdvice(store.RegionOf(err))
	case code == http.StatusUnauthorized && withKey:
		return "FEEDBOX_COSMOS_KEY is not a key of this account, or the clock is off: copy the primary key of the account"
	case code == http.StatusForbidden && withKey:
		return "the account refuses keys or this network: use a managed identity (leave FEEDBOX_COSMOS_KEY out), and check the account's firewall"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return d.assignment(ctx, role, container)
	case code == http.StatusNotFound:
		return "create the database and its containers: azd provision"
	case azure.CredentialFailed(err):
		return "no identity could be had: az login, or run where a managed identity is, or set FEEDBOX_COSMOS_KEY"
	case code == 0 && (fault.Is(err, fault.Unavailable) || ctx.Err() != nil):
		return "nothing answers: check FEEDBOX_COSMOS_ENDPOINT, the network and the account's firewall"
	case expires != nil:
		return fmt.Sprintf("az cosmosdb sql container update --resource-group <resource-group> --account-name %s --database-name %s --name %s --ttl -1", d.accountName(), d.cfg.Database, expires.Container)
	case code == 0:
		return "create the container as it has to be: azd provision"
	}
	return "try again; if it stays, look into the account's metrics and the status of Azure"
}

// assignment returns the command that assigns role in container, and the built-in role to use if
// the deployment has not created the role.
func (d *Doctor) assignment(ctx context.Context, role DataRole, container string) string {
	scope := "/"
	if container != "" {
		scope = fmt.Sprintf("/dbs/%s/colls/%s", d.cfg.Database, container)
	}
	return fmt.Sprintf("az cosmosdb sql role assignment create --resource-group <resource-group> --account-name %s --scope %q --principal-id %s --role-definition-name %q\n"+
		"That role comes with bicep/modules/roles.bicep. In an account without it, put --role-definition-id %s in place of the name: %s, which allows more.",
		d.accountName(), scope, azure.Principal(ctx, d.Identity, strings.TrimRight(string(d.cfg.Endpoint), "/")+"/.default"), role.Name, role.BuiltIn, role.BuiltInName)
}

func (d *Doctor) accountName() string {
	name, _, _ := strings.Cut(d.host(), ".")
	return name
}

// Containers returns the containers that a process uses, with their required properties. The
// deployment creates them; the service only verifies them.
func Containers(process operator.Process, cfg config.Cosmos, contract document.EventContract) []cosmos.ContainerSpec {
	if process == operator.ProcessAPI {
		return []cosmos.ContainerSpec{cosmos.DataContainer(cfg.Container)}
	}
	return cosmos.RelayContainers(contract, cfg.Container, cfg.Leases, cfg.Parked)
}
