package pipenet_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/pipenet"
)

func TestHTTPOverPipesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		l, err := network.Listen("emulator.test:80")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Hour) // in the fake time of the bubble
			_, _ = io.WriteString(w, "late")
		})}
		done := make(chan error, 1)
		go func() { done <- server.Serve(l) }()

		transport := &http.Transport{DialContext: network.DialContext}
		resp, err := (&http.Client{Transport: transport}).Get("http://emulator.test:80/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(body) != "late" {
			t.Fatalf("body %q, %v", body, err)
		}
		transport.CloseIdleConnections()
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Fatal(err)
		}
	})
}

func TestDialWithoutListenerIsRefused(t *testing.T) {
	network := pipenet.New()
	if _, err := network.DialContext(context.Background(), "tcp", "nobody:1"); !errors.Is(err, pipenet.ErrRefused) {
		t.Fatalf("got %v, want ErrRefused", err)
	}
	l, err := network.Listen("somebody:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := network.Listen("somebody:1"); err == nil {
		t.Fatal("a taken address was bound twice")
	}
	_ = l.Close()
	if _, err := network.DialContext(context.Background(), "tcp", "somebody:1"); !errors.Is(err, pipenet.ErrRefused) {
		t.Fatalf("after Close: got %v, want ErrRefused", err)
	}
	if _, err := network.Listen("somebody:1"); err != nil {
		t.Fatalf("a closed address stays taken: %v", err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		if _, err := network.Listen("busy:1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := network.DialContext(ctx, "tcp", "busy:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want deadline exceeded", err)
		}
	})
}
