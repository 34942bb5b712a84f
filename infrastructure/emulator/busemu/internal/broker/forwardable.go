package broker

import (
	"strings"
)

// forwardName returns the entity's name in ForwardTo: the name itself, or the path of a URL in
// this namespace.
func forwardName(to string) string {
	if _, rest, ok := strings.Cut(to, "://"); ok {
		_, to, _ = strings.Cut(rest, "/")
	}
	return strings.Trim(to, "/")
}

// forwardable checks that the targets of forwarding exist. An entity may forward to itself,
// because the service allows it: the hop limit ends the cycle.
func (d *directory) forwardable(targets ...string) error {
	for _, to := range targets {
		if to == "" {
			continue
		}
		n, ok := d.find(forwardName(to))
		if !ok || n.subscription != nil || n.suffix != "" {
			return errorf(ArgumentError, "The target entity '%s' of the forwarding does not exist. Messages are forwarded to queues and topics.", to)
		}
	}
	return nil
}
