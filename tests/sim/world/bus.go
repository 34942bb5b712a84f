package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu"
)

const archivePath = Topic + "/Subscriptions/" + Archive

// busPart is the Service Bus emulator.
type busPart struct {
	hooks hooks[busemu.Call, busemu.Fault]

	mu         sync.Mutex // guards the fields below
	srv        *busemu.Server
	nic        *nic // nil while it does not run
	disk       *vfs.MemFS
	random     *rand.Rand
	kept       int64 // messages in the archive at the last start
	duplicates int64 // dropped before the last start
	quota      int64 // 0: the default
	status     busemu.Status
}

func (b *busPart) init(w *World) error {
	b.random = w.Random(2)
	if w.topology.OnDisk {
		b.disk = vfs.NewCrashableMem()
	}
	return b.start(w)
}

func (b *busPart) server() *busemu.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.srv
}

func (b *busPart) current() *nic {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.nic
}

func (b *busPart) start(w *World) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nic != nil {
		return nil
	}
	n := newNIC(w.network)
	listener, err := n.listen(busAddr)
	if err != nil {
		return err
	}
	const deliveries = 2000 // faults must not dead-letter
	o := &busemu.Options{
		Listener: listener, AdminAddr: "-", Host: busAddr, Premium: w.topology.Premium,
		Topology: &busemu.Topology{Topics: []busemu.Topic{{
			Name:                       Topic,
			RequiresDuplicateDetection: true, DuplicateDetectionWindow: w.topology.DuplicateWindow,
			Subscriptions: []busemu.Subscription{
				{Name: Subscription, RequiresSession: true, LockDuration: 30 * time.Second, MaxDeliveryCount: deliveries},
				{Name: Archive},
			},
		}}},
	}
	if b.disk != nil {
		o.FS, o.DataDir = b.disk, "data"
	}
	if b.srv, err = busemu.Start(o); err != nil {
		return fmt.Errorf("start the Service Bus emulator: %w", err)
	}
	b.nic = n
	b.srv.Control(busemu.OpAny, b.hooks.ask)
	kept, err := b.srv.Peek(archivePath, everything)
	if err != nil {
		return err
	}
	b.kept = int64(len(kept))
	if b.quota != 0 {
		if err := b.srv.SetQuota(Topic, b.quota); err != nil {
			return err
		}
	}
	w.trace.Add(PartBus, "starts with %d messages in the archive", b.kept)
	if b.status == "" {
		return nil
	}
	return b.srv.SetStatus(w.ctx, Topic, b.status)
}

const everything = 1 << 20

// crash loses a random part of the data that was not synced.
func (b *busPart) crash(w *World) bool {
	b.mu.Lock()
	if b.nic == nil || b.disk == nil {
		b.mu.Unlock()
		return false
	}
	if c, err := b.srv.Counters(Topic); err == nil {
		b.duplicates += c.Duplicates
	}
	b.disk = b.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[b.random.IntN(3)], RNG: b.random})
	n, srv := b.nic, b.srv
	b.nic = nil
	b.mu.Unlock()
	n.kill()
	w.wg.Go(func() { _ = srv.Close() })
	return true
}

func (b *busPart) close() {
	b.mu.Lock()
	srv := b.srv
	b.mu.Unlock()
	if srv != nil {
		_ = srv.Close()
	}
}

// accepted returns the number of messages that the broker has accepted since the world began,
// without duplicates.
func (b *busPart) accepted() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.srv.Counters(Topic)
	if err != nil {
		return b.kept
	}
	return b.kept + c.Accepted - c.Duplicates
}

// restore resets the status and the quota of the topic.
func (b *busPart) restore(w *World) {
	w.SetStatus(busemu.StatusActive)
	w.SetQuota(0)
}

// FaultBus installs a hook of the Service Bus emulator. It stays installed across restarts of the
// emulator. It runs on the emulator's connections and must not block.
func (w *World) FaultBus(hook func(*busemu.Call) *busemu.Fault) (remove func()) {
	return w.bus.hooks.add(hook)
}

// SetStatus disables or enables the topic. While the emulator is down, the status is
// set when it starts.
func (w *World) SetStatus(status busemu.Status) {
	w.bus.mu.Lock()
	w.bus.status = status
	w.bus.mu.Unlock()
	if w.bus.current() != nil {
		w.trace.Add(PartBus, "STATUS %s: %v", status, w.applyStatus(status))
	}
}

func (w *World) applyStatus(status busemu.Status) error {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	return w.Bus().SetStatus(ctx, Topic, status)
}

// SetQuota sets the size in bytes at which the topic is full; 0 restores the default. It stays set
// across restarts.
func (w *World) SetQuota(bytes int64) {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	w.bus.quota = bytes
	if w.bus.nic != nil {
		err := w.bus.srv.SetQuota(Topic, bytes)
		w.trace.Add(PartBus, "QUOTA %d: %v", bytes, err)
	}
}

// Duplicates returns the number of messages that the broker has accepted and dropped since the
// world began.
func (w *World) Duplicates() int64 {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	c, err := w.bus.srv.Counters(Topic)
	if err != nil {
		return w.bus.duplicates
	}
	if w.bus.nic == nil {
		return w.bus.duplicates // counted when it crashed
	}
	return w.bus.duplicates + c.Duplicates
}

// Accepted returns the number of messages that the broker has accepted since the world began,
// without duplicates. It is safe for concurrent use.
func (w *World) Accepted() int64 { return w.bus.accepted() }
