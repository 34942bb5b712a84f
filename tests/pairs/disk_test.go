//go:build faults

package pairs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// The disk of PostgreSQL fills up under load and later has space again. The server refuses
// writes or stops; every acknowledged change is stored and arrives.
func TestDiskFull(t *testing.T) {
	const disk = 320 << 20
	seed := testkit.Seed(t, 4)
	cycles := testkit.Count(t, 20)
	mount := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=1777", disk), "tmpfs", mount).CombinedOutput(); err != nil {
		t.Skipf("a disk of %d MB needs the right to mount a tmpfs: %v: %s", disk>>20, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.Background(), "umount", "-l", mount).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	must(t, os.Chmod(filepath.Dir(mount), 0o755)) //nolint:gosec // the server is another user
	broker := openRabbitMQ(t)
	testkit.Build(t)
	before := os.Getenv("TMPDIR")
	t.Setenv("TMPDIR", mount) // for PostgreSQL only
	server := servers.StartPostgres(t)
	t.Setenv("TMPDIR", before)
	w := newWorld(t, inPostgres(t, server), broker)
	owning(t, w.relay(t))
	filler := filepath.Join(mount, "filler")
	ended := 0
	load := w.load(t, seed)
	w.under(t, load, func(changed func()) {
		for range cycles {
			refused := refusals(load)
			fill(t, filler)
			switchLog(t, w.store.url)
			testkit.Eventually(t, 90*time.Second, "refusals on a full disk", func() bool { return refusals(load) > refused || server.Ended() })
			must(t, os.Remove(filler))
			if server.Ended() {
				ended++
			}
			server.Await(t) // it may restart automatically
			changed()
		}
	})
	t.Logf("the server ended by itself %d times of %d", ended, cycles)
}

// switchLog makes the server start a new log segment, for which the disk has no space.
func switchLog(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return // the server has stopped already
	}
	defer func() { _ = conn.Close(ctx) }()
	_, _ = conn.Exec(ctx, `SELECT pg_switch_wal()`) // the server may stop during the call
}

// refusals returns the number of failed requests so far.
func refusals(load *testkit.Workload) int {
	_, unknown, _ := load.History()
	sum := load.LostCreates() + load.Refused()
	for _, n := range unknown {
		sum += n
	}
	return sum
}

// fill writes to the file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close() // it is full
}
