package cosmos_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/mediator"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
)

// While the account still advertises the earlier region, writes fail soon as unavailable and are
// certainly not stored. Reads continue.
func TestRegionFailoverIsUnavailableNotAFailure(t *testing.T) {
	for name, disaster := range map[string]func(*cosmosemu.Server) error{
		"the write region moves": func(s *cosmosemu.Server) error { return s.FailOver("East US") },
		"the write region is removed": func(s *cosmosemu.Server) error {
			return errors.Join(s.FailOver("East US"), s.RemoveRegion("West US"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{Regions: []string{"West US", "East US"}, Network: pipenet.New()}})
				id := w.create().Contact.ID
				must(t, disaster(w.emulator))
				for range 3 {
					began := time.Now()
					_, err := mediator.Send(t.Context(), w.app, john())
					f, ok := errors.AsType[*fault.Error](err)
					if took := time.Since(began); !ok || f.Kind != fault.Unavailable || f.Code == cosmos.CodeOutcomeUnknown || fault.RetryAfter(err) < time.Second || took > 15*time.Second {
						t.Errorf("after %s: %v, retry after %s; want unavailable with a wait", took, err, fault.RetryAfter(err))
					}
					if host := strings.TrimPrefix(strings.Trim(w.emulator.RegionEndpoint("West US"), "/"), "http://"); !strings.Contains(err.Error(), "the region at "+host) {
						t.Errorf("the error does not name the region %s: %v", host, err)
					}
					if _, err := w.rename(t.Context(), id, "Jane"); !fault.Is(err, fault.Unavailable) {
						t.Errorf("a change: %v", err)
					}
					time.Sleep(time.Minute)
				}
				items, err := w.emulator.Items("contacts", "data")
				must(t, err)
				if len(items) != 2 { // the contact and its event
					t.Errorf("%d documents are stored, want those from before", len(items))
				}
				w.emulator.AdvertiseRegions()
				time.Sleep(5 * time.Second)
				began := time.Now()
				if _, err := w.rename(t.Context(), id, "Jane"); err != nil || time.Since(began) > 10*time.Second {
					t.Errorf("%s after the account lists the new region: %v", time.Since(began), err)
				}
			})
		})
	}
}
