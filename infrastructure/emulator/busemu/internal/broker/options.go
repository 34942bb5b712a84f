package broker

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Size limits in bytes of one message and of one batch, by tier.
const (
	StandardMaxMessageSize = 256 * 1024
	PremiumMaxMessageSize  = 1024 * 1024
)

// Options configure Open. The zero value is an in-memory broker of the Standard
// tier on the system clock.
type Options struct {
	// Dir is the directory of the store; empty means in memory. The broker creates it if
	// necessary. It refuses a directory that is damaged or in use.
	Dir string
	// FS is the file system that holds Dir. Default: the operating system's.
	FS vfs.FS
	// NoSync acknowledges before fsync. Default false. For benchmarks only, because a power
	// failure then loses acknowledged messages.
	NoSync bool
	// CacheBytes limits the messages in memory, with Dir. Above it new messages are swapped
	// out and read back from disk when needed. Default 64 MB.
	CacheBytes int64
	// Premium raises the size of a message and of a batch from 256 KB to 1 MB.
	Premium bool
	// Partitions is the number of partitions of a partitioned entity, fixed when it is
	// created; at most MaxPartitions. Default 16. With Premium the namespace is partitioned as
	// a whole: above 1 every entity must be partitioned, otherwise none can be.
	Partitions int
	// Now is the clock. Default time.Now. Advance adds to it.
	Now func() time.Time
	// DecodeFields reads the fields that correlation and SQL filters compare. It is called at
	// most once for each message, and only if a rule needs it. Without it such rules cannot be
	// created.
	DecodeFields func(payload []byte) (sqlfilter.Fields, error)
	// ApplyChanges writes the changes of an SQL action into a copy of a message: the
	// application properties in turn, and the texts of fields. Without it rules with actions
	// cannot be created.
	ApplyChanges func(payload []byte, fields *sqlfilter.Fields, changes []sqlfilter.Change) ([]byte, error)
	// Logger receives failures of background work, which no caller sees. Default: discard.
	Logger *slog.Logger
}
