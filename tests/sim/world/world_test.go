package world_test

import (
	"testing"
	"time"

	"feedbox/tests/sim/world"
)

func TestTheSystemKeepsItsPromisesWithoutFaults(t *testing.T) {
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

// Each part fails once in the ways it can, while the system works.
func TestEachPartFails(t *testing.T) {
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

func judge(t *testing.T, w *world.World) {
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
}
