package testkit

import (
	"net/url"
	"strings"
	"testing"

	"feedbox/infrastructure/lab/netfault"
)

// Proxy is a faulty network between a process and a server.
type Proxy = netfault.Proxy

// Way is the behaviour of a network in one direction.
type Way = netfault.Way

// StartProxy forwards to target, host:port, until the test ends.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := netfault.Start(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Network is the network between one process and the emulators.
type Network struct{ Cosmos, ServiceBus *Proxy }

// Through puts a separate network between a process and the emulators. The process must use the
// returned endpoints.
func (e Endpoints) Through(t testing.TB) (*Network, Endpoints) {
	t.Helper()
	cosmos, err := url.Parse(e.CosmosEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(e.ServiceBusConnectionString, "Endpoint=sb://")
	bus, _, _ := strings.Cut(rest, ";")
	bus = strings.TrimSuffix(bus, "/")
	n := &Network{StartProxy(t, cosmos.Host), StartProxy(t, bus)}
	e.CosmosEndpoint = strings.Replace(e.CosmosEndpoint, cosmos.Host, n.Cosmos.Addr(), 1)
	e.ServiceBusConnectionString = strings.Replace(e.ServiceBusConnectionString, bus, n.ServiceBus.Addr(), 1)
	return n, e
}

// Set changes the network to both emulators.
func (n *Network) Set(up, down Way) {
	n.Cosmos.Set(up, down)
	n.ServiceBus.Set(up, down)
}

// Heal removes all faults of the network.
func (n *Network) Heal() { n.Set(Way{}, Way{}) }
