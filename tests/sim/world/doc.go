// Package world runs the whole system in one process and in virtual time: API and
// relay processes as cmd/feedbox runs them (package wiring), consumers with the
// consumer kit, both emulators, and the real azcosmos and azservicebus between them
// over in-memory connections. A test makes anything of it fail and then asks the
// shared verifier (package verify) whether the promises of the outbox were kept.
//
//	world.Bubble(t, func(t *testing.T) {
//		w := world.New(t, 1, world.Topology{Relays: 3})
//		load := w.StartLoad(world.LoadOptions{Writers: 4, Pace: time.Second})
//		w.Sleep(10 * time.Second)
//		w.Crash("relay-0")              // everything it has is gone; others see a reset
//		w.Sleep(30 * time.Second)       // virtual: takes no time
//		w.Start("relay-0")
//		remove := w.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault { ... })
//		w.Sleep(time.Minute)
//		remove()
//		load.Stop()
//		run := w.Settle()               // ends all faults, waits until all has arrived
//		for _, v := range run.Verify() { t.Error(v) }
//	})
//
// # Parts
//
// A part is a process or an emulator, by name: api-0, api-1, ..., relay-0, ...,
// consumer-0, ..., cosmos and bus. Each has a network interface of its own, through
// which all its connections go, and which is what a fault acts on:
//
//	Crash    its connections are cut and it can make no more. Of an emulator on disk,
//	         what was not fsynced is gone. What is left of a crashed process in
//	         memory cannot reach anything; its goroutines end by themselves.
//	Start    starts a part that was crashed or stopped, as a new process.
//	Stop     ends a process as SIGTERM does; it drains.
//	Freeze   its reads and writes block until Thaw, however long that is; then it
//	         sends what it was about to send. Its clock and timers go on, as those of
//	         a process that gets SIGSTOP do.
//	Reset    its connections break; it can make new ones.
//
// A process that ends by itself is started again after two seconds, as an
// orchestrator does. Every new process reaches the Cosmos DB emulator under an
// address of its own, because azcosmos shares its caches in a Go process by address.
//
// FaultCosmos and FaultBus install hooks of the emulators (cosmosemu.Hook,
// busemu.Hook) that outlive a restart of the emulator. Cosmos and Bus are the
// running emulators, for what else they offer: Split, SetStatus, ExpireSession, ...
//
// # What is observed
//
// The topic has a second subscription, "archive", that nobody receives from: what the
// broker accepted, in the order in which it did. It is what I1 to I5 are about; what
// the handlers of the consumers got is judged beside it. Every write of a lease is
// noted with the number of messages the broker had accepted then (I6).
//
// # Bubbles
//
// A world lives in a testing/synctest bubble, which [Bubble] makes: virtual time
// passes when everything waits, and a goroutine that is left over fails the test
// (I9). Worlds in different bubbles may run in parallel. Methods of World are called
// by one goroutine of the bubble, unless they say otherwise.
//
// A seed fixes all random choices that are made here. It does not fix how goroutines
// interleave, nor the random ids and jitter of the product and the SDKs: a seed
// repeats the workload and the faults, not every step.
package world
