package busemu

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/internal/hooks"
)

// namespace has what all connections share: broker, keys, credits and hooks.
type namespace struct {
	o           Options
	log         *slog.Logger
	listener    net.Listener // of AMQP; nil if there is none
	broker      *broker.Broker
	keys        keyring
	credits     credits
	in, out     credits // bytes
	jms         jmsConsumers
	containerID string
	started     time.Time
	hooks       hooks.List[Call, Fault]

	ctx    context.Context //nolint:containedctx // ends administrative work at Close
	cancel context.CancelFunc

	wg     sync.WaitGroup
	mu     sync.Mutex // guards closed, and the connections of the Server
	closed bool
}

// background runs work that waits for the disk, unless the server is closed.
func (n *namespace) background(run func(ctx context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.wg.Go(func() { run(n.ctx) })
	}
}

// allowedHosts returns the hosts that listeners on loopback addresses serve, see package hostguard.
func (n *namespace) allowedHosts() []string {
	return append(slices.Clone(n.o.AllowedHosts), n.o.Host, n.o.Addr, n.o.AdminAddr)
}
