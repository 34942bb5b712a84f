package world_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
	"feedbox/tests/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestSystemKeepsInvariantsWithoutFaults(t *testing.T) {
	world.Bubble(t, func(t *testing.T) {
		w := world.New(t, 1, world.Topology{OnDisk: true})
		load := w.StartLoad(world.LoadOptions{})
		w.Sleep(2 * time.Minute)
		if err := w.Poison("a", 2); err != nil {
			t.Error(err)
		}
		load.Stop()
		judge(t, w)
		t.Log(load.Requests(), w.Requests())
	})
}

// Handlers refuse, fail, panic and wait. Each consumer crashes, then freezes for longer than the lock of
// a session, and operators retry and skip.
func TestParkingConsumersHandleEachEventOnce(t *testing.T) {
	world.Bubble(t, func(t *testing.T) {
		w := world.New(t, 5, world.Topology{OnDisk: true, Shops: 1, Parking: true})
		w.StartLoad(world.LoadOptions{})
		for _, name := range w.Kind("consumer") {
			w.Sleep(30 * time.Second)
			w.Crash(name)
			w.SetDependency(false)
			w.Sleep(15 * time.Second)
			w.Start(name)
			w.SetDependency(true)
			if err := w.SkipFirst(func() bool { return true }); err != nil {
				t.Error(err)
			}
			w.Freeze(name)
			w.Sleep(40 * time.Second)
			w.Thaw(name)
			if err := w.RetryConsumer(); err != nil {
				t.Error(err)
			}
		}
		run := judge(t, w)
		if len(run.Skipped) == 0 {
			t.Error("no event was skipped, so none was refused")
		}
	})
}

// Each consumer freezes again and again with a request to park an event on its way. The request reaches the
// store after another consumer has handled or parked the event.
func TestLateRequestsToParkRepeatNoEvent(t *testing.T) {
	world.Bubble(t, func(t *testing.T) {
		w := world.New(t, 5, world.Topology{OnDisk: true, Shops: 1, Parking: true})
		w.StartLoad(world.LoadOptions{})
		for n := range 24 {
			name := w.Kind("consumer")[n%2]
			w.FreezeParking(name)
			w.Sleep(4 * time.Second)
			w.Thaw(name)
			w.Sleep(4 * time.Second)
			if err := w.RetryConsumer(); err != nil {
				t.Error(err)
			}
		}
		judge(t, w)
	})
}

// Contacts and orders share a container and its relays, or each have their own, or share the relays. They
// share the topic and its consumers.
func TestContactsAndOrdersShareTopic(t *testing.T) {
	for name, topology := range map[string]world.Topology{
		"one container": {}, "two containers": {OrdersApart: true}, "two containers, one relay": {OrdersApart: true, OneRelay: true},
	} {
		t.Run(name, func(t *testing.T) {
			world.Bubble(t, func(t *testing.T) {
				apart := topology.OrdersApart
				topology.OnDisk, topology.Shops = true, 1
				w := world.New(t, 3, topology)
				w.StartLoad(world.LoadOptions{})
				for _, name := range slices.Concat(w.Kind("relay"), w.Kind("shoprelay"), w.Kind("shop")) {
					w.Sleep(10 * time.Second)
					w.Crash(name)
					w.Sleep(15 * time.Second)
					w.Start(name)
				}
				w.Split("a")
				w.Sleep(20 * time.Second)
				run := judge(t, w)
				feeds, added, several := map[string]bool{}, map[string]int{}, false
				for _, e := range run.Events {
					feeds[e.Feed] = true
					if e.Action == "OrderLineAddedEvent" {
						commit := fmt.Sprint(e.Key, e.Version)
						added[commit]++
						several = several || added[commit] > 1
					}
				}
				want := 1
				if apart {
					want = 2
				}
				if len(feeds) != want || len(run.Settled.Others) != want-1 || w.Sold() == 0 || !several {
					t.Errorf("events of %v, leases %+v, %d changes of orders, several lines in one commit %t", feeds, run.Settled, w.Sold(), several)
				}
				leases := map[string]bool{}
				for _, c := range run.Checkpoints {
					leases[c.Feed] = true
				}
				if len(leases) != want {
					t.Errorf("positions in %v", leases)
				}
			})
		})
	}
}

// Each part fails once in every way while the load runs.
func TestSystemSurvivesFailureOfEachPart(t *testing.T) {
	world.Bubble(t, func(t *testing.T) {
		w := world.New(t, 2, world.Topology{OnDisk: true, Relays: 3, StaleReads: 2 * time.Second})
		w.StartLoad(world.LoadOptions{Pace: time.Second})
		for _, name := range append(w.Processes(), world.PartCosmos, world.PartBus) {
			w.Sleep(3 * time.Second)
			if !w.Crash(name) {
				t.Errorf("%s did not run", name)
			}
			w.Sleep(15 * time.Second)
			w.Start(name)
			w.Sleep(5 * time.Second)
			if !w.Freeze(name) {
				t.Errorf("%s did not run", name)
			}
			w.Sleep(25 * time.Second)
			w.Thaw(name)
			w.Sleep(3 * time.Second)
			w.Reset(name)
		}
		for _, name := range w.Processes() {
			w.Stop(name)
			w.Sleep(time.Second)
			w.Start(name)
		}
		w.Split("a")
		w.Sleep(10 * time.Second)
		w.Merge("a")
		judge(t, w)
	})
}

func judge(t *testing.T, w *world.World) *verify.Run {
	t.Helper()
	run := w.Settle()
	violations := run.Verify()
	for _, v := range violations {
		t.Error(v)
	}
	t.Log(run.Summary(), "duplicates:", w.Duplicates(), "repeats:", run.Repeats)
	if len(violations) > 0 {
		_, _ = w.Trace().WriteTo(t.Output())
	}
	return run
}
