package doctor

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/store/cosmos"
)

func TestDoctorNamesTheRegionThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emulator := cosmosemu.StartT(t, &cosmosemu.Options{Regions: []string{"West US", "East US"}, Network: pipenet.New()})
		cfg := testConfig(t).Cosmos
		cfg.PreferredRegions = []string{"West US", "East US"}
		for _, spec := range Containers(operator.ProcessRelay, cfg, newDoctor(t, account{}).Contract) {
			props := cosmosemu.ContainerProps{ID: spec.ID, PartitionKey: []string{spec.PartitionKeyPath}}
			if spec.TTL {
				props.DefaultTTL = -1
			}
			if err := emulator.CreateContainer(cfg.Database, props); err != nil {
				t.Fatal(err)
			}
		}
		o := Options{Clock: &Clock{}, Account: &cosmos.Account{}, Identity: identity{}}
		var err error
		o.Client, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), PreferredRegions: cfg.PreferredRegions, Options: azcore.ClientOptions{
			Transport: emulator.HTTPClient(), PerCallPolicies: []policy.Policy{o.Clock, o.Account},
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Client.Close)
		d := New(cfg, o)
		for _, process := range []operator.Process{operator.ProcessRelay, operator.ProcessAPI} {
			if found := d.examineWriteRegion(t.Context(), process); len(found) > 0 {
				t.Errorf("before the failover: %+v", found)
			}
		}
		for name, disaster := range map[string]func() error{
			"writes moved": func() error { return emulator.FailOver("East US") },
			"removed":      func() error { return errors.Join(emulator.FailOver("East US"), emulator.RemoveRegion("West US")) },
		} {
			if err := disaster(); err != nil {
				t.Fatal(err)
			}
			found := d.examineWriteRegion(t.Context(), operator.ProcessRelay)
			if len(found) != 1 || found[0].Status != operator.FindingFailed || !strings.HasPrefix(found[0].Next, "West US (cosmos-") || !strings.Contains(found[0].Next, "FEEDBOX_COSMOS_PREFERRED_REGIONS") {
				t.Errorf("%s: %+v; want a failure that names the region", name, found)
			}
		}
		if found := d.examineContainers(t.Context(), operator.ProcessRelay); len(found) != 3 || found[0].Status != operator.FindingOK {
			t.Errorf("reads in the other region: %+v", found)
		}
		if got := d.advice(t.Context(), errors.New("other"), metadataRole, ""); strings.Contains(got, "West US") {
			t.Errorf("the advice on another error is %q", got)
		}
	})
}
