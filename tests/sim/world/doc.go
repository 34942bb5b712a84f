// Package world runs the whole system in one process and in virtual time: API and
// relay processes as cmd/feedbox runs them (package wiring), consumers with the
// consumer kit, both emulators, and the real azcosmos and azservicebus between them
// over in-memory connections. A test injects faults into any part and then lets the shared
// verifier (package verify) check the invariants of the outbox.
//
//	world.Bubble(t, func(t *testing.T) {
//		w := world.New(t, 1, world.Topology{Relays: 3})
//		load := w.StartLoad(world.LoadOptions{Writers: 4, Pace: time.Second})
//		w.Sleep(10 * time.Second)
//		w.Crash("relay-0")              // its state is lost; its peers see a reset
//		w.Sleep(30 * time.Second)       // virtual: takes no time
//		w.Start("relay-0")
//		remove := w.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault { ... })
//		w.Sleep(time.Minute)
//		remove()
//		load.Stop()
//		run := w.Settle()               // ends all faults, waits until all events arrived
//		for _, v := range run.Verify() { t.Error(v) }
//	})
//
// # Parts
//
// A part is a process or an emulator, by name: api-0, api-1, ..., relay-0, ...,
// consumer-0, ..., cosmos and bus. All connections of a part go through its own network
// interface, on which faults act:
//
//	Crash    cuts its connections and prevents new ones. An emulator on disk loses data
//	         that was not fsynced. The remains of a crashed process in memory cannot
//	         reach anything, and its goroutines end eventually.
//	Start    starts a crashed or stopped part as a new process.
//	Stop     ends a process as SIGTERM does; it drains.
//	Freeze   blocks its reads and writes until Thaw; then it sends pending data. Its clock
//	         and timers continue, as those of a process that gets SIGSTOP do.
//	Reset    breaks its connections; it can open new ones.
//
// A process that exits is restarted after two seconds, as an orchestrator does. Every new process
// uses its own address for the Cosmos DB emulator, because azcosmos shares its caches within a Go
// process by address.
//
// Consumers have a shared inbox in memory, and their handlers accept everything. With Topology.Parking
// they are what a user runs: an inbox and parked events in the store, policies by action, and a handler
// that stores its effect together with the mark of the event. moods.go decides for each event how often
// its handler refuses, fails, panics or waits, in whatever process. SetDependency, RetryConsumer and
// SkipFirst act on these consumers.
//
// FaultCosmos and FaultBus install hooks of the emulators (cosmosemu.Hook,
// busemu.Hook) that stay installed across restarts of the emulator. Cosmos and Bus return the
// running emulators with their other controls: Split, SetStatus, ExpireSession, ...
//
// # Observations
//
// The topic has a second subscription without a consumer, "archive". It holds all messages that
// the broker accepted, in order, for I1 to I5. The messages handled by the consumers are verified,
// too, and with Topology.Parking the effects in the store. Every write of a lease is recorded with the number of
// messages accepted so far (I6).
//
// # Bubbles
//
// A world lives in a testing/synctest bubble, created by [Bubble]: virtual time passes when all
// goroutines wait, and a goroutine that is left over fails the test (I9). Worlds in different
// bubbles may run in parallel. Methods of World must be called by one goroutine of the bubble,
// unless documented otherwise.
//
// A seed fixes all random choices made here. It does not fix how goroutines interleave, nor the
// random ids and jitter of the product and the SDKs. So a seed repeats the workload and the
// faults, but not every step.
package world
