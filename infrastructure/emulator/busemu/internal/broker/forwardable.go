package broker

import (
	"strings"
)

// forwardName is the entity that ForwardTo names: a name, or the URL of an entity of
// this namespace.
func forwardName(to string) string {
	if _, rest, ok := strings.Cut(to, "://"); ok {
		_, to, _ = strings.Cut(rest, "/")
	}
	return strings.Trim(to, "/")
}

// forwardable checks that the targets of an entity's forwarding exist. An entity may
// forward to itself, as the service has it: its messages go round until they have been
// forwarded too often.
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
