package busemu

import (
	"errors"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// detachDelay is how long after a change of an entity its links are detached.
// The service lets the admin reply arrive first, and the SDK's own tests rely on
// that (TestSessionReceiver_Detach).
const detachDelay = 100 * time.Millisecond

// detachLater runs detach on the loop: at once, or after a delay if an entity
// was changed.
func (c *conn) detachLater(reason error, detach func()) {
	if !errors.Is(reason, broker.DetachForced) {
		detach()
		return
	}
	time.AfterFunc(detachDelay, func() { c.post(event{fn: detach}) })
}
