package cosmosemu

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"feedbox/infrastructure/emulator/pipenet"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WellKnownKey is the account key that every Cosmos DB emulator accepts by default. It is
// public and protects nothing.
const WellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

var consistencyLevels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

// maxPartitions bounds Options.Partitions.
const maxPartitions = 256

// maxRetention of versions and deletions is 30 days in minutes: the longest retention of
// the service's continuous backup.
const maxRetention = 30 * 24 * 60

// Options configure an emulator. The zero value is ready to use: in memory, plain
// HTTP on a free loopback port, one physical partition per container.
type Options struct {
	// Addr is the TCP address to listen on, default "127.0.0.1:0".
	Addr string
	// Listener, if set, accepts the connections instead of Addr. The emulator closes it.
	Listener net.Listener
	// Network, if set, is an in-memory network to listen in under Host, instead of Addr.
	Network *pipenet.Network
	// Host is the host:port that clients use. The default is the listener's address; in a
	// Network it is "cosmos-<n>.emulator:8081" with a new n for each instance.
	Host string
	// AllowedHosts are host names to answer to on a loopback address, besides localhost, loopback
	// addresses and the host of Host; * is any. Other hosts get 421, because DNS rebinding could make a
	// browser send a web page's requests here. Default none.
	AllowedHosts []string
	// TLS serves HTTPS. Without Certificate the emulator creates an authority and a
	// certificate signed by it; Server.CertificatePEM returns the authority.
	TLS         bool
	Certificate *tls.Certificate

	// RoutingGateway makes Addr behave as the service's routing gateway: items whose id
	// contains a slash or ends with a space, for example, cannot be read back.
	RoutingGateway bool
	// ComputeAddr, if set, is a second TCP address without those restrictions.
	ComputeAddr string

	// Regions are the names of the account's regions, default "South Central US". The
	// first accepts writes until Server.FailOver, and is served at Addr. Each other region has an address of its own
	// (Server.RegionEndpoint) and refuses writes with 403 and sub-status 3. All regions
	// share one copy of the data, so there is no replication lag.
	Regions []string
	// MultipleWriteRegions makes every region accept writes.
	MultipleWriteRegions bool

	// DataDir keeps the data on disk, with fsync before a write is acknowledged.
	// Empty keeps it in memory.
	DataDir string
	// FS is the file system of DataDir, default the operating system's.
	FS vfs.FS

	// Key is the account key in base64, default WellKnownKey.
	Key string
	// Partitions is the number of physical partitions of a new container, default 1, at most 256.
	Partitions int
	// Consistency is the account's default level: Strong, BoundedStaleness, Session
	// (the default), ConsistentPrefix or Eventual. It changes the level that the account
	// reports; StaleReads is refused with Strong and BoundedStaleness.
	Consistency string
	// Now is the clock, default time.Now. Server.Advance moves it.
	Now func() time.Time
	// IgnoreIndexingPolicy accepts any indexing policy and answers every query as if all
	// properties were indexed. The default refuses what the service refuses: invalid policies,
	// ORDER BY without its index, filters with indexing mode none.
	IgnoreIndexingPolicy bool
	// StaleReads is the largest staleness of reads, queries and change feeds that carry no
	// session token, as Session consistency allows. The lag of each is drawn from Seed, and
	// half of them have none. A read with a session token is never stale. Default 0.
	StaleReads time.Duration
	// KeepWrites makes new containers keep the previous state of every document that is written,
	// which Server.LoseWrites and Server.BeginRestore need. It costs a copy per write. It excludes
	// StaleReads.
	KeepWrites bool
	// VersionRetention is the retention of the account's continuous backup, in whole minutes. It enables
	// the feed of all versions and deletes for the containers that are created from then on, as on the
	// service. It excludes KeepWrites. Default 0: the feed is refused.
	VersionRetention time.Duration
	// ContainerRetention enables that feed for each container whose changeFeedPolicy has a
	// retentionDuration, as Microsoft's emulator does. The service refuses such containers.
	ContainerRetention bool
	// Throughput is the request units per second of a container without throughput of its own or of
	// its database. It also makes the emulator keep all containers to their throughput: each physical
	// partition has an equal share, at most 10,000. A request beyond it gets 429 with sub-status 3200
	// and the time to wait. Default 0: nothing is throttled.
	Throughput int
	// CreationDelay is how long requests to a new container are answered with 404 and sub-status 1013,
	// as on the service, where it takes seconds. Default 0.
	CreationDelay time.Duration
	// Seed makes resource ids and stale reads repeatable. 0 uses a random seed.
	Seed uint64
	// Logger receives failures of the storage and of the HTTP server, default none.
	Logger *slog.Logger
}

// resolve applies the defaults and reports all invalid options at once.
func (o *Options) resolve() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	var faults []error
	exclude := func(a, b string, both bool) {
		if both {
			faults = append(faults, fmt.Errorf("options %s and %s exclude each other", a, b))
		}
	}
	exclude("Addr", "Listener", r.Addr != "" && r.Listener != nil)
	exclude("Addr", "Network", r.Addr != "" && r.Network != nil)
	exclude("Listener", "Network", r.Listener != nil && r.Network != nil)
	exclude("KeepWrites", "VersionRetention", r.KeepWrites && r.VersionRetention != 0)
	exclude("ContainerRetention", "VersionRetention", r.ContainerRetention && r.VersionRetention != 0)
	exclude("KeepWrites", "StaleReads", r.KeepWrites && r.StaleReads != 0)
	r.Addr = cmp.Or(r.Addr, "127.0.0.1:0")
	r.Key = cmp.Or(r.Key, WellKnownKey)
	r.Partitions = cmp.Or(r.Partitions, 1)
	r.Consistency = cmp.Or(r.Consistency, "Session")
	if len(r.Regions) == 0 {
		r.Regions = []string{"South Central US"}
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	if _, err := base64.StdEncoding.DecodeString(r.Key); err != nil {
		faults = append(faults, fmt.Errorf("option Key is not base64: %w", err))
	}
	if r.Partitions < 1 || r.Partitions > maxPartitions {
		faults = append(faults, fmt.Errorf("option Partitions is %d, it must be from 1 to %d", r.Partitions, maxPartitions))
	}
	if !slices.Contains(consistencyLevels, r.Consistency) {
		faults = append(faults, fmt.Errorf("option Consistency is %q, it must be one of %v", r.Consistency, consistencyLevels))
	}
	if r.StaleReads < 0 || r.StaleReads > 0 && (r.Consistency == "Strong" || r.Consistency == "BoundedStaleness") {
		faults = append(faults, fmt.Errorf("option StaleReads is %v under %s consistency: it must not be negative, and needs Session or weaker", r.StaleReads, r.Consistency))
	}
	if r.Throughput < 0 {
		faults = append(faults, fmt.Errorf("option Throughput is %d, it must not be negative", r.Throughput))
	}
	if r.CreationDelay < 0 {
		faults = append(faults, fmt.Errorf("option CreationDelay is %v, it must not be negative", r.CreationDelay))
	}
	if m := r.VersionRetention; m < 0 || m%time.Minute != 0 || m > maxRetention*time.Minute {
		faults = append(faults, fmt.Errorf("option VersionRetention is %v, it must be whole minutes, at most 30 days", m))
	}
	for i, name := range r.Regions {
		if name == "" || slices.Contains(r.Regions[:i], name) {
			faults = append(faults, fmt.Errorf("option Regions has %q: it must list different names", name))
		}
	}
	if r.FS != nil && r.DataDir == "" {
		faults = append(faults, errors.New("option FS is set but DataDir is not"))
	}
	if r.Certificate != nil && !r.TLS {
		faults = append(faults, errors.New("option Certificate is set but TLS is not"))
	}
	if r.Host != "" {
		if _, _, err := net.SplitHostPort(r.Host); err != nil {
			faults = append(faults, fmt.Errorf("option Host %q is not host:port", r.Host))
		}
	}
	return r, errors.Join(faults...)
}
