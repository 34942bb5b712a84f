//go:build faults

package crash

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testkit"
)

// F5: the disk of the emulators fills up under load. A store that could not write its log accepts no
// further requests, because the content of the log is unknown: it refuses or exits. Restarted with
// free space, it has every acknowledged change.
func TestDiskFull(t *testing.T) {
	// Both logs are preallocated with the size of a memtable, and after a restart the old
	// ones exist besides the new ones.
	const full, disk = 5, 192 << 20
	times := testkit.Count(t, full)
	seed := testkit.Seed(t, 5)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", disk), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: a disk of 192 MB needs the right to mount a tmpfs: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	flags := append([]string{"--data-dir", filepath.Join(dir, "data")}, fixedPorts(t)...)
	w := start(t, plan{seed: seed, relays: 2, contacts: 60, rate: 200, emulator: flags})
	filler := filepath.Join(dir, "filler")
	died := 0
	for n := range times {
		fill(t, filler)
		refused := w.refusals()
		testkit.Eventually(t, 2*patience, "refusals on a full disk", func() bool { return w.refusals() > refused || w.dev.Ended() })
		time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if w.dev.Ended() {
			died++
		}
		w.dev.Kill()
		w.dev, _ = testkit.StartDev(t, w.binaries, testkit.EmulatorPorts(flags...)...)
		all := w.strikeAll()
		w.await(all, patience)
		t.Logf("full disk %d: events arrive after space was freed", n)
	}
	r := testkit.Result{
		Fault: "F5", Name: "disk of the emulators full under load", Seed: seed, Injections: int64(times), Of: full,
		Note: fmt.Sprintf("the emulators ended by themselves %d times and refused work %d times, until they were started again", died, times-died),
	}
	r.Recovery = w.finish(&r).Seconds()
	w.drain()
	testkit.Record(t, r)
}

// refusals returns the number of requests without a successful answer.
func (w *world) refusals() int {
	_, unknown, _ := w.load.History()
	sum := w.load.LostCreates() + w.load.Refused()
	for _, n := range unknown {
		sum += n
	}
	return sum
}

// fill writes the file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if err := f.Close(); err != nil {
		t.Logf("close the filler: %v", err)
	}
}

// F5: after kill -9, a bit of a file is flipped or the file is truncated, and the emulators are started
// on it. They refuse to start, or serve all that was acknowledged.
func TestDamagedFiles(t *testing.T) {
	const full = 100
	times := testkit.Count(t, full)
	seed := testkit.Seed(t, 51)
	origin := filepath.Join(t.TempDir(), "origin")
	w := start(t, plan{seed: seed, relays: 1, contacts: 40, rate: 300, emulator: []string{"--data-dir", origin}})
	testkit.Eventually(t, time.Minute, "some data", func() bool { return w.load.Done() > 1500 })
	w.dev.Kill()
	w.stop()
	w.history.Add(w.load)
	for _, relay := range w.relays {
		relay.Kill()
	}
	arrived := w.consumer.Messages()
	w.consumer.Stop()

	refused, harmless := 0, 0
	r := testkit.Result{Fault: "F5", Name: "files of the emulators damaged after kill -9", Seed: seed, Injections: int64(times), Of: full}
	for n := range times {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
			t.Fatal(err)
		}
		what := w.damage(dir)
		dev, e, started := tryDev(t, w.binaries, testkit.EmulatorPorts("--data-dir", dir))
		if !started {
			refused++
			continue
		}
		// It started, so every acknowledged change must be there, and the relay must be able
		// to send its events.
		run := w.history.Run()
		run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, e.ContainerClient(t, e.Container))
		run.Messages = everyEvent(run.Events)
		harmless++
		report := run.Report()
		for _, breach := range report.Lines() {
			t.Errorf("round %d, %s: %s", n, what, breach)
		}
		for _, broken := range report.Broken {
			r.Lost += int64(broken)
		}
		r.Events = max(r.Events, int64(len(run.Events)))
		dev.Kill()
	}
	r.Note = fmt.Sprintf("%d refused at the start; %d harmless, all that was acknowledged was read back", refused, harmless)
	t.Logf("%s; %d messages had arrived before", r.Note, len(arrived))
	if times >= 20 && refused == 0 {
		t.Error("no damage was detected: the test proves nothing")
	}
	testkit.Record(t, r)
}

// everyEvent returns a message for each event, so that only the store is verified.
func everyEvent(events []verify.Event) []verify.Message {
	messages := make([]verify.Message, len(events))
	for i, e := range events {
		messages[i] = verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.Version, Sequence: e.Sequence}
	}
	return messages
}

// damage flips a bit of a file below dir or truncates the file. It returns a description.
func (w *world) damage(dir string) (what string) {
	w.t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if info, infoErr := os.Stat(path); err == nil && infoErr == nil && !d.IsDir() && info.Size() > 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	file := files[w.rnd.IntN(len(files))]
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	at := w.rnd.IntN(len(data))
	name, _ := filepath.Rel(dir, file)
	what = fmt.Sprintf("%s cut off at %d of %d", name, at, len(data))
	if w.rnd.IntN(2) == 0 {
		what = fmt.Sprintf("bit flipped in byte %d of %d of %s", at, len(data), name)
		data = bytes.Clone(data)
		data[at] ^= 1 << w.rnd.IntN(8)
	} else {
		data = data[:at]
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return what
}

// tryDev starts the emulators, which may refuse to start.
func tryDev(t *testing.T, b testkit.Binaries, args []string) (dev *testkit.Process, e testkit.Endpoints, started bool) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	dev = testkit.Start(t, "feedbox-dev", b.Dev, nil, append(args, "--ready-file", ready)...)
	testkit.Eventually(t, time.Minute, "the emulators start or refuse", func() bool {
		var err error
		e, err = testkit.ReadEndpoints(ready)
		started = err == nil
		return started || dev.Ended()
	})
	if !started {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if code := dev.Wait(ctx); code == 0 {
			t.Errorf("the emulators refused with exit code 0")
		}
	}
	return dev, e, started
}
