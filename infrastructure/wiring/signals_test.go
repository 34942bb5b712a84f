package wiring

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

func TestSecondSignalAbandonsTheStop(t *testing.T) {
	kill := killer(t)
	abandoned := make(chan struct{})
	ctx, stop := UntilSignal(t.Context(), func() { close(abandoned) })
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("the context has ended before a signal")
	}
	kill()
	<-ctx.Done()
	select {
	case <-abandoned:
		t.Fatal("abandoned after one signal")
	case <-time.After(50 * time.Millisecond):
	}
	began := time.Now()
	kill()
	<-abandoned
	if took := time.Since(began); took < hurry {
		t.Errorf("abandoned %s after the second signal, want %s", took, hurry)
	}
}

func TestStopInTimeIsNotAbandoned(t *testing.T) {
	kill := killer(t)
	ctx, stop := UntilSignal(t.Context(), func() { t.Error("abandoned although the stop ended in time") })
	kill()
	<-ctx.Done()
	kill()
	stop()
}

// killer returns a function that sends SIGTERM to this process and waits for its delivery.
// A signal that arrives after the test has ended would kill the process.
func killer(t *testing.T) (kill func()) {
	t.Helper()
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGTERM)
	t.Cleanup(func() { signal.Stop(came) })
	return func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-came
	}
}
