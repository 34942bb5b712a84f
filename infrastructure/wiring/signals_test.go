package wiring

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestUntilSignal(t *testing.T) {
	abandoned := make(chan struct{})
	ctx, stop := UntilSignal(t.Context(), func() { close(abandoned) })
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("the context has ended before a signal")
	}
	kill(t)
	<-ctx.Done()
	select {
	case <-abandoned:
		t.Fatal("abandoned after one signal")
	case <-time.After(50 * time.Millisecond):
	}
	began := time.Now()
	kill(t)
	<-abandoned
	if took := time.Since(began); took < hurry {
		t.Errorf("abandoned %s after the second signal, want %s", took, hurry)
	}
}

func TestUntilSignalIsStopped(t *testing.T) {
	ctx, stop := UntilSignal(t.Context(), func() { t.Error("abandoned although it ended in time") })
	kill(t)
	<-ctx.Done()
	kill(t)
	stop()
}

func kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
