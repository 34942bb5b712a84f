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
	// Addr is the address of the AMQP listener. Default "127.0.0.1:0"; "-" listens on no
	// address, so that connections come by Dial only. In a testing/synctest bubble use "-"
	// here and for AdminAddr, or pipenet listeners, because a socket stops fake time. Not used
	// with Listener.
	Addr string
	// Listener accepts AMQP connections of any kind, for instance pipenet's. Start takes
	// ownership.
	Listener net.Listener
	// AdminAddr is the HTTP address of the admin API and /health. Default "127.0.0.1:0"; "-"
	// serves none. Not used with AdminListener.
	AdminAddr string
	// AdminListener accepts connections for the admin API. Start takes ownership.
	AdminListener net.Listener
	// Host is the host:port in connection strings. Default: the listener's address, or
	// "busemu:5672" without a listener.
	Host string
	// AllowedHosts are host names to answer to on a loopback address, besides localhost, loopback
	// addresses and the host of Host; * is any. Other hosts get 421, because DNS rebinding could make a
	// browser send a web page's requests here. Default none.
	AllowedHosts []string
	// TLS, if set, also serves AMQP by TLS, on the same port. Connection strings then omit
	// UseDevelopmentEmulator, so that the SDKs dial TLS. NewCertificate makes a certificate.
	// WebSockets are served on the ports of Addr and AdminAddr, by TLS where that is set.
	TLS *tls.Config
	// AdminTLS, if set, serves the admin API by HTTPS.
	AdminTLS *tls.Config

	// DataDir is the directory of entities and messages. Default: in memory only.
	DataDir string
	// FS is the file system of DataDir. Default: the operating system's.
	FS vfs.FS
	// Premium raises the limit of a message and of a batch from 256 KB to 1 MB.
	Premium bool
	// Partitions is the number of partitions of a partitioned queue or topic, fixed when it is
	// created; at most 256. Default 16, as at the service. With Premium the namespace is
	// partitioned as a whole: above 1 every queue and topic must be Partitioned, otherwise
	// none can be.
	Partitions int

	// EndIdle ends links without traffic for ten minutes, and connections without links for
	// five, as the service does. Default false.
	EndIdle bool
	// CreditsPerSecond throttles the namespace. A sent or delivered message costs one credit,
	// a request to $management or the admin API ten. Without credits, sends and requests are
	// refused with ServerBusy and deliveries wait until the next second. The service gives a
	// namespace of the Standard tier 1,000. Default 0: not throttled.
	CreditsPerSecond int
	// MessagingUnits throttles a Premium namespace: each unit carries 4 MB a second in, and 4 MB
	// out. Beyond it, sends are refused with ServerBusy and deliveries wait until the next second.
	// The service's throughput depends on the features in use. Default 0: not throttled.
	MessagingUnits int

	// Keys are the shared access keys. Default: RootManageSharedAccessKey with the key
	// SAS_KEY_VALUE and all rights, as in the official emulator.
	Keys []SASKey
	// Topology is created at the start; existing entities are left unchanged.
	Topology *Topology

	// Now is the clock of locks, expiry, schedules and duplicate windows. Default time.Now.
	// Shared access tokens always use time.Now, which is the client's clock.
	Now func() time.Time
	// Logger receives refusals and errors, most of them at debug level. Default: discard.
	Logger *slog.Logger
}

// resolve sets defaults and reports all errors at once.
func (o *Options) resolve() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var faults []error
	if out.Addr != "" && out.Listener != nil {
		faults = append(faults, errors.New("options Addr and Listener exclude each other: leave one out"))
	}
	if out.AdminAddr != "" && out.AdminListener != nil {
		faults = append(faults, errors.New("options AdminAddr and AdminListener exclude each other: leave one out"))
	}
	if out.AdminTLS != nil && out.AdminAddr == noAddr {
		faults = append(faults, errors.New("option AdminTLS is set but AdminAddr serves nothing: set an address or leave AdminTLS out"))
	}
	if out.Host != "" {
		if _, _, err := net.SplitHostPort(out.Host); err != nil {
			faults = append(faults, fmt.Errorf("option Host %q is not host:port", out.Host))
		}
	}
	if out.CreditsPerSecond < 0 {
		faults = append(faults, errors.New("option CreditsPerSecond is negative: it must be 0 (not throttled) or more"))
	}
	if out.MessagingUnits < 0 || out.MessagingUnits > 0 && (!out.Premium || out.CreditsPerSecond > 0) {
		faults = append(faults, fmt.Errorf("option MessagingUnits is %d: it must be 0 (not throttled) or more, and needs Premium without CreditsPerSecond", out.MessagingUnits))
	}
	if out.Partitions < 0 || out.Partitions > broker.MaxPartitions {
		faults = append(faults, fmt.Errorf("option Partitions is %d: it must be from 1 to %d, or 0 for the default", out.Partitions, broker.MaxPartitions))
	}
	if out.FS != nil && out.DataDir == "" {
		faults = append(faults, errors.New("option FS is set but DataDir is not: set both or neither"))
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

// noAddr as Addr or AdminAddr means no listener.
const noAddr = "-"
