package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/spf13/pflag"

	"feedbox/infrastructure/emulator/busemu"
)

// When the disk of the broker fails, feedbox-dev ends with the cause and the next step. It
// does not continue as a broker that refuses everything.
func TestDiskFailureEndsTheProcess(t *testing.T) {
	var broken atomic.Bool
	full := errors.New("no space left on device")
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if broken.Load() && sync && filepath.Ext(op.Path) == ".log" {
			return full
		}
		return nil
	}))
	opts := &options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.register(flags, false)
	ready := filepath.Join(t.TempDir(), "ready.json")
	if err := flags.Parse([]string{
		"--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0",
		"--data-dir", t.TempDir(), "--ready-file", ready,
	}); err != nil {
		t.Fatal(err)
	}
	opts.tuneBus = func(o *busemu.Options) { o.FS = fs }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- dev(ctx, opts, io.Discard, io.Discard, nil) }()
	e := awaitReady(t, ready)
	broken.Store(true)
	reply, err := http.Get(e.ServiceBusAdmin + "/health") // sends a message
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	err = <-ended
	if !errors.Is(err, errDisk) || !errors.Is(err, full) || !strings.Contains(err.Error(), "start again") {
		t.Errorf("ended with %v", err)
	}
}

// startDev runs feedbox-dev in this process until the test ends, and returns once it is ready.
func startDev(t *testing.T, opts *options, environ ...string) *endpoints {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- dev(ctx, opts, io.Discard, io.Discard, environ) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return awaitReady(t, opts.readyFile)
}

// awaitReady polls for the ready file of a feedbox-dev in this process.
func awaitReady(t *testing.T, path string) *endpoints {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		e, err := readEndpoints(path)
		if err == nil {
			return e
		}
		if time.Now().After(deadline) {
			t.Fatalf("feedbox-dev is not ready: %v", err)
		}
	}
}
