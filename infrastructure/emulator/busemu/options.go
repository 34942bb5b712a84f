package busemu

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Options configure Start. The zero value, and nil, is an in-memory broker of the
// Standard tier on free ports of the loopback interface.
type Options struct {
	// Addr is where AMQP is served. Default "127.0.0.1:0"; "-" serves no address:
	// connections then come by Dial only. In a testing/synctest bubble use "-" here
	// and for AdminAddr, or pipenet listeners: a socket keeps fake time from passing.
	// Not used with Listener.
	Addr string
	// Listener serves AMQP on any kind of connection, for instance pipenet's.
	// Start takes ownership.
	Listener net.Listener
	// AdminAddr is where the admin API and /health are served by HTTP. Default
	// "127.0.0.1:0"; "-" serves none. Not used with AdminListener.
	AdminAddr string
	// AdminListener serves the admin API. Start takes ownership.
	AdminListener net.Listener
	// Host is the host:port in connection strings. Default: the listener's address,
	// or "busemu:5672" without one.
	Host string
	// TLS, if set, serves AMQP by TLS too, on the same port. Connection strings then
	// do not carry UseDevelopmentEmulator, on which the SDKs dial TLS. NewCertificate
	// makes one. WebSockets are served on the port of Addr and on AdminAddr's, by TLS
	// where that is set.
	TLS *tls.Config
	// AdminTLS, if set, serves the admin API by HTTPS.
	AdminTLS *tls.Config

	// DataDir is where entities and messages are kept. Default: in memory only.
	DataDir string
	// FS is the file system of DataDir. Default: the operating system's.
	FS vfs.FS
	// Premium raises the limit of a message and of a batch from 256 KB to 1 MB.
	Premium bool
	// Partitions is how many partitions a partitioned queue or topic gets when it is
	// created, at most 256. Default 16, the service's. With Premium it is the namespace that
	// is partitioned: above 1 every queue and topic must be Partitioned, else none can be.
	Partitions int

	// EndIdle ends links over which nothing went for ten minutes, and connections without
	// a link for five, as the service does. Default false.
	EndIdle bool
	// CreditsPerSecond throttles the namespace: a message sent or delivered costs one
	// credit, a request to $management or the admin API ten. When they are used up, sends
	// and requests are refused with ServerBusy, deliveries wait, until the second is over.
	// The service gives a namespace of the Standard tier 1,000; for one of the Premium tier
	// choose what its messaging units achieve. Default 0: not throttled.
	CreditsPerSecond int

	// Keys are the shared access keys. Default: RootManageSharedAccessKey with the
	// key SAS_KEY_VALUE and all rights, as the official emulator has.
	Keys []SASKey
	// Topology is created at the start; what exists already is left as it is.
	Topology *Topology

	// Now is the clock of locks, expiry, schedules and duplicate windows. Default
	// time.Now. Shared access tokens always live by time.Now, which is the client's.
	Now func() time.Time
	// Logger receives refusals and errors, most of them at debug level. Default:
	// discard.
	Logger *slog.Logger
}

// resolve fills in defaults and reports all faults at once.
func (o *Options) resolve() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var faults []error
	if out.Addr != "" && out.Listener != nil {
		faults = append(faults, errors.New("options Addr and Listener exclude each other"))
	}
	if out.AdminAddr != "" && out.AdminListener != nil {
		faults = append(faults, errors.New("options AdminAddr and AdminListener exclude each other"))
	}
	if out.AdminTLS != nil && out.AdminAddr == noAddr {
		faults = append(faults, errors.New("option AdminTLS is set but AdminAddr serves nothing"))
	}
	if out.Host != "" {
		if _, _, err := net.SplitHostPort(out.Host); err != nil {
			faults = append(faults, fmt.Errorf("option Host %q is not host:port", out.Host))
		}
	}
	if out.CreditsPerSecond < 0 {
		faults = append(faults, errors.New("option CreditsPerSecond is negative"))
	}
	if out.Partitions < 0 || out.Partitions > broker.MaxPartitions {
		faults = append(faults, fmt.Errorf("option Partitions is %d: it must be from 1 to %d, or 0 for the default", out.Partitions, broker.MaxPartitions))
	}
	if out.FS != nil && out.DataDir == "" {
		faults = append(faults, errors.New("option FS is set but DataDir is not"))
	}
	names := make(map[string]bool)
	for i, k := range out.Keys {
		switch {
		case k.Name == "" || k.Key == "":
			faults = append(faults, fmt.Errorf("option Keys: key %d needs a name and a value", i))
		case names[k.Name]:
			faults = append(faults, fmt.Errorf("option Keys: key %q is given twice", k.Name))
		case k.Rights&^allRights != 0:
			faults = append(faults, fmt.Errorf("option Keys: key %q has unknown rights", k.Name))
		}
		names[k.Name] = true
	}
	if len(out.Keys) == 0 {
		out.Keys = []SASKey{{Name: DefaultKeyName, Key: DefaultKey}}
	}
	keys := make([]SASKey, len(out.Keys))
	for i, k := range out.Keys {
		k.Rights = cmp.Or(k.Rights, allRights)
		keys[i] = k
	}
	out.Keys = keys
	out.Addr = cmp.Or(out.Addr, "127.0.0.1:0")
	out.AdminAddr = cmp.Or(out.AdminAddr, "127.0.0.1:0")
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out, errors.Join(faults...)
}

// noAddr as Addr or AdminAddr stands for no listener.
const noAddr = "-"
