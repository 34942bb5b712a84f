package busemu

import (
	"context"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// detachSoon detaches the links of an updated entity after detachDelay. The service lets the
// admin reply arrive first, and the SDK's own tests rely on it (TestSessionReceiver_Detach).
func (s *Server) detachSoon(path string) {
	reason := &amqp.Error{
		Condition:   condDetachForced,
		Description: "The link is force detached. Details: the entity '" + path + "' has been deleted, updated or unexpectedly reloaded.",
	}
	time.AfterFunc(detachDelay, func() {
		s.background(func(context.Context) {
			if err := s.broker.DetachAll(path, reason); err != nil {
				s.log.Debug("links of updated entity not detached", "entity", path, "error", err) // deleted meanwhile
			}
		})
	})
}
