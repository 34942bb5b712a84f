package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// listeners has all sockets of the process. They are bound before anything starts, so that a
// port in use ends the process before it has state to clean up.
type listeners struct {
	api, ops, page, cosmos, serviceBus, serviceBusAdmin net.Listener
}

// bind opens every socket. If a port is in use, it takes a free one and prints it on out.
// If the user gave the address as a flag, it returns an error instead.
func bind(ctx context.Context, opts *options, out io.Writer) (*listeners, error) {
	l := &listeners{}
	for _, s := range []struct {
		flag, addr string
		into       *net.Listener
	}{
		{"cosmos", opts.cosmos, &l.cosmos},
		{"servicebus", opts.serviceBus, &l.serviceBus},
		{"servicebus-admin", opts.serviceBusAdmin, &l.serviceBusAdmin},
		{"api", opts.api, &l.api},
		{"ops", opts.ops, &l.ops},
		{"page", opts.page, &l.page},
	} {
		if s.addr == "" {
			continue
		}
		bound, err := bindOne(ctx, s.flag, s.addr, opts.set(s.flag), out)
		if err != nil {
			l.close()
			return nil, err
		}
		if addr, ok := bound.Addr().(*net.TCPAddr); ok && addr.IP.IsUnspecified() {
			_, _ = fmt.Fprintf(out, "%s listens on all addresses (%s): other machines can reach it\n", s.flag, addr)
		}
		*s.into = bound
	}
	return l, nil
}

func bindOne(ctx context.Context, flag, addr string, asked bool, out io.Writer) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err == nil {
		return l, nil
	}
	if asked || !errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s %s: %w; stop the process that uses it, or give another address", flag, addr, err)
	}
	host, _, splitErr := net.SplitHostPort(addr)
	if splitErr != nil {
		return nil, splitErr
	}
	l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("--%s: no free port on %s: %w", flag, host, err)
	}
	_, _ = fmt.Fprintf(out, "%s is in use; %s is at %s instead\n", addr, flag, l.Addr())
	return l, nil
}

// close closes the listeners. It is for starts that failed before serving, because a server
// closes its own listener.
func (l *listeners) close() {
	for _, one := range []net.Listener{l.cosmos, l.serviceBus, l.serviceBusAdmin, l.api, l.ops, l.page} {
		if one != nil {
			_ = one.Close()
		}
	}
}
