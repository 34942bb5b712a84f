package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// examineWriteRegion finds a region that refuses writes while the account still advertises it.
// Only a write shows that, so it deletes a document that does not exist. It reports nothing
// else: the identity of an operator may be one that may not write.
func (d *Doctor) examineWriteRegion(ctx context.Context, process operator.Process) []operator.Finding {
	name := d.cfg.Leases
	if process == operator.ProcessAPI {
		name = d.cfg.Container
	}
	container, err := d.Client.NewContainer(d.cfg.Database, name)
	if err == nil {
		id := "feedbox-doctor-" + uuid.NewString()
		_, err = container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	}
	host := store.RegionOf(err)
	if host == "" {
		return nil
	}
	return []operator.Finding{operator.Fine("write region", "%s", azure.Brief(store.AsFault("write to container "+name, err))).Is(operator.FindingFailed, d.regionAdvice(host))}
}

// regionAdvice names the region at a host that refuses requests.
func (d *Doctor) regionAdvice(host string) string {
	region := d.Account.Region(host)
	preferred := slices.ContainsFunc(d.cfg.PreferredRegions, func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), region) })
	where := host
	if region != "" {
		where = region + " (" + host + ")"
	}
	advice := fmt.Sprintf("%s refuses requests: the account is failing over, or this region was removed from it. Nothing is lost; wait some minutes. If it stays, see where the account is now: az cosmosdb show --resource-group <resource-group> --name %s --query \"[writeLocations[].locationName, readLocations[].locationName]\"", where, d.accountName())
	if preferred && region != "" {
		advice += "\nIf " + region + " is not among them, remove it from FEEDBOX_COSMOS_PREFERRED_REGIONS."
	}
	return advice
}
