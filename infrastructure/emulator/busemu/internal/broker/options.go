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
	// Dir is the directory of the durable copy; empty means in memory. The broker
	// creates it when it does not exist and refuses a directory that is damaged or
	// is in use.
	Dir string
	// FS is the file system that holds Dir. Default: the operating system's.
	FS vfs.FS
	// NoSync acknowledges before fsync. Default false. For benchmarks only: a loss of
	// power then loses acknowledged messages.
	NoSync bool
	// CacheBytes is what messages that wait may take in memory, with Dir: those that come
	// when it is full are read back from disk when they are needed. Default 64 MB.
	CacheBytes int64
	// Premium raises the size of a message and of a batch from 256 KB to 1 MB.
	Premium bool
	// Partitions is how many partitions a partitioned entity gets when it is created, at
	// most MaxPartitions. Default 16. With Premium it is the namespace that is partitioned:
	// above 1 every entity must be, else none can be.
	Partitions int
	// Now is the clock. Default time.Now. Advance moves the broker's clock on top of it.
	Now func() time.Time
	// DecodeFields reads the fields that correlation and SQL filters compare. It is
	// called at most once for each message, and only if a rule needs it. Without it
	// such rules cannot be created.
	DecodeFields func(payload []byte) (sqlfilter.Fields, error)
	// ApplyChanges writes what an SQL action has changed into a copy of a message: the
	// changes of application properties in turn, and the texts of fields. Without it
	// rules with actions cannot be created.
	ApplyChanges func(payload []byte, fields *sqlfilter.Fields, changes []sqlfilter.Change) ([]byte, error)
	// Logger receives what no caller can be told: failed background work. Default:
	// discard.
	Logger *slog.Logger
}
