package config

import (
	"fmt"
	"slices"
	"strings"
)

// Containers returns the configuration of the relay for each container that it reads, that of
// FEEDBOX_COSMOS_CONTAINER first.
func (c *Relay) Containers() []*Relay {
	all := []*Relay{c}
	for _, entry := range c.More {
		if more, ok := parseContainer(entry); ok { // LoadRelay has checked it
			one := *c
			one.Cosmos.Container, one.Cosmos.Leases, one.Cosmos.Parked = more.Container, more.Leases, more.Parked
			all = append(all, &one)
		}
	}
	return all
}

// Of returns the configuration for the container of a name; "" is the first one. The error lists those
// that there are.
func (c *Relay) Of(name string) (*Relay, error) {
	var names []string
	for i, one := range c.Containers() {
		if name == one.Cosmos.Container || name == "" && i == 0 {
			return one, nil
		}
		names = append(names, one.Cosmos.Container)
	}
	return nil, fmt.Errorf("the relay reads no container %q; it reads %s", name, strings.Join(names, ", "))
}

// Command returns a command with the option that makes it act on the container of c, if there are several.
func (c *Relay) Command(command string) string {
	if len(c.More) > 0 {
		command += " --container " + c.Cosmos.Container
	}
	return command
}

// parseContainer reads DATA/LEASES/PARKED. The id of a container cannot have a slash.
func parseContainer(entry string) (c Cosmos, ok bool) {
	names := strings.Split(strings.TrimSpace(entry), "/")
	if len(names) != 3 || slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) != name || name == "" }) {
		return c, false
	}
	c.Container, c.Leases, c.Parked = names[0], names[1], names[2]
	return c, true
}

// checkMore refuses containers that have two purposes. Two sets of leases in one container would be
// possible, but each relay would list both for each.
func checkMore(report *report, c *Relay) {
	const name, hint = "FEEDBOX_RELAY_CONTAINERS", "write for example orders/orders-leases/orders-parked,invoices/invoices-leases/invoices-parked"
	if len(c.More) == 0 {
		return
	}
	if c.Store.Kind != StoreCosmos {
		report.add(name, "is set, and the store "+c.Store.Kind+" has no containers", "remove it, or set FEEDBOX_STORE to cosmos")
		return
	}
	seen := map[string]bool{c.Cosmos.Container: true, c.Cosmos.Leases: true, c.Cosmos.Parked: true}
	for _, entry := range c.More {
		more, ok := parseContainer(entry)
		if !ok {
			report.add(name, fmt.Sprintf("%q is not DATA/LEASES/PARKED", entry), hint)
			return
		}
		for _, id := range []string{more.Container, more.Leases, more.Parked} {
			if seen[id] {
				report.add(name, fmt.Sprintf("the container %q has two purposes", id), "give each container leases and parked events of its own; "+hint)
				return
			}
			seen[id] = true
		}
	}
}
