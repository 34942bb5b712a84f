package busemu

import (
	"context"
	"errors"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// detachSoon ends the links of an entity that was updated. Until then they are
// served as before: the service lets the admin reply arrive first, and the SDK's
// own tests rely on it (TestSessionReceiver_Detach).
func (s *Server) detachSoon(path string) {
	reason := &amqp.Error{
		Condition:   condDetachForced,
		Description: "The link is force detached. Details: the entity '" + path + "' has been deleted, updated or unexpectedly reloaded.",
	}
	time.AfterFunc(detachDelay, func() {
		s.background(func(context.Context) {
			if err := s.broker.DetachAll(path, reason); err != nil {
				s.log.Debug("detach after an update", "entity", path, "error", err) // deleted meanwhile
			}
		})
	})
}

// detachDelay is how long after a change of an entity its links are detached.
const detachDelay = 100 * time.Millisecond

// detachLater runs detach on the loop: at once, or after a delay if the broker
// ended the link because its entity was deleted.
func (c *conn) detachLater(reason error, detach func()) {
	if !errors.Is(reason, broker.DetachForced) {
		detach()
		return
	}
	time.AfterFunc(detachDelay, func() { c.post(event{fn: detach}) })
}
