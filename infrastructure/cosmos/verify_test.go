package cosmos_test

import (
	"strings"
	"testing"

	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/emulator/cosmosemu"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "no-ttl", PartitionKey: []string{"/partitionKey"}}))
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "short", PartitionKey: []string{"/id"}, DefaultTTL: 60}))
	spec := func(id string) cosmos.ContainerSpec {
		return cosmos.ContainerSpec{ID: id, PartitionKeyPath: cosmos.PartitionKeyPath, TTL: true}
	}
	must(t, cosmos.Verify(t.Context(), w.client, "contacts", spec("data")))

	err := cosmos.Verify(t.Context(), w.client, "contacts", spec("data"), spec("no-ttl"), spec("short"), spec("absent"))
	if err == nil {
		t.Fatal("four faults are accepted")
	}
	for _, want := range []string{
		`"no-ttl" has the default TTL off`, `"short" has the partition key [/id]`, `"short" has the default TTL 60`, `"absent" does not exist`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), `"data"`) {
		t.Errorf("the error blames the container that is right:\n%v", err)
	}
	if err := cosmos.Verify(t.Context(), w.client, "elsewhere", spec("data")); err == nil || !strings.Contains(err.Error(), `database "elsewhere" does not exist`) {
		t.Errorf("a missing database: %v", err)
	}
}

// What has no TTL of its own must not expire, or parked events and leases vanish.
func TestVerifyRefusesADefaultTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for id, ttl := range map[string]int{"off": 0, "on": -1, "hour": 3600} {
		must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: id, PartitionKey: []string{"/partitionKey"}, DefaultTTL: ttl}))
		err := cosmos.Verify(t.Context(), w.client, "contacts", cosmos.ContainerSpec{ID: id, PartitionKeyPath: cosmos.PartitionKeyPath})
		const want = `the container "hour" has the default TTL 3600, after which what is kept in it would vanish: az cosmosdb sql container update --name hour --ttl -1`
		if ttl > 0 && (err == nil || err.Error() != want) || ttl <= 0 && err != nil {
			t.Errorf("default TTL %d: %v", ttl, err)
		}
	}
}

func TestVerifyOfAnAccountThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.Close())
	err := cosmos.Verify(t.Context(), w.client, "contacts")
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v; want unavailable", err)
	}
}

func TestNewClientReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: "ftp://x"})
	if err == nil || !strings.Contains(err.Error(), "endpoint") || !strings.Contains(err.Error(), "credential") {
		t.Errorf("error %v", err)
	}
	_, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: "http://x", Key: "secret!"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v; want one that does not show the key", err)
	}
}
