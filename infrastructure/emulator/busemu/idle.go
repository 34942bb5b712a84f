package busemu

import (
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// The service ends links without traffic for ten minutes, and connections without links for
// five. The check runs once a minute.
const (
	idlePoll       = time.Minute
	idleLink       = 10 // polls
	idleConnection = 5
)

// idleness counts the polls in a row that found a link without operations.
type idleness struct {
	done  uint32 // operations so far
	seen  uint32 // operations at the last poll
	looks int
}

// poll returns the number of polls in a row without operations.
func (i *idleness) poll() int {
	i.looks++
	if i.done != i.seen {
		i.seen, i.looks = i.done, 0
	}
	return i.looks
}

// endIdle ends idle links and the connection if it is idle.
func (c *conn) endIdle() {
	if c.closeSent {
		return
	}
	links := 0
	for _, s := range c.sessions {
		for _, l := range s.links {
			links++
			b := l.base()
			d, attached := l.(interface{ detach(*amqp.Error) })
			if attached && b.attach == nil && b.idleness.poll() >= idleLink && !b.over() {
				d.detach(&amqp.Error{Condition: amqp.Symbol(broker.DetachForced), Description: fmt.Sprintf(
					"The link '%s' is force detached by the broker because it was idle: nothing went over it for %v.", b.name, idleLink*idlePoll)})
			}
		}
	}
	if links > 0 {
		c.withoutLinks = 0
		return
	}
	if c.withoutLinks++; c.withoutLinks > idleConnection {
		c.close(&amqp.Error{Condition: condConnectionForced, Description: fmt.Sprintf(
			"The connection was inactive for more than the allowed %v and is closed.", idleConnection*idlePoll)})
	}
}
