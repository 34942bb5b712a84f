package admin

import (
	"log/slog"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// maxBody limits a request's body in bytes.
const maxBody = 1 << 20

// Handler serves the admin API. All fields are required; they do not change while it
// serves.
type Handler struct {
	Broker  *broker.Broker
	Logger  *slog.Logger
	Host    string // host:port in ids and links
	Premium bool
	Started time.Time // reported as the namespace's creation time
	Hidden  string    // a queue that is not listed: the one of the health check

	// Authorize reports whether a token grants Manage on a path. The text of its error is
	// sent to the client.
	Authorize func(header, path string) (manage bool, err error)
	// Admit charges for a request. It returns an error while the namespace is throttled.
	Admit func() *broker.Error
	// Updated detaches the links of an entity that was updated.
	Updated func(path string)
}
