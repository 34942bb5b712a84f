package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"feedbox/infrastructure/emulator/busemu"
)

// certificateName is the file of the data folder that keeps certificate and key.
const certificateName = "tls.pem"

// certificate is that of both emulators, nil if none is to serve TLS. It is kept in the
// data folder, so that who trusts it once does so after a restart; the files named by
// flags have it without its key.
func (o *options) certificate(l *listeners) (*busemu.Certificate, error) {
	if o.cosmosCert == "" && o.serviceBusCert == "" {
		return nil, nil
	}
	hosts := []string{reachable(l.serviceBus)} // go-amqp verifies it with its port
	for _, l := range []net.Listener{l.cosmos, l.serviceBusAdmin} {
		if host, _, err := net.SplitHostPort(reachable(l)); err == nil {
			hosts = append(hosts, host)
		}
	}
	made, err := o.makeCertificate(hosts)
	if err != nil {
		return nil, err
	}
	for flag, file := range map[string]string{"cosmos-certificate": o.cosmosCert, "servicebus-certificate": o.serviceBusCert} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, made.PEM, 0o644); err != nil {
			return nil, usageError{fmt.Errorf("--%s: %w; name a file that can be written", flag, err)}
		}
	}
	return made, nil
}

func (o *options) makeCertificate(hosts []string) (*busemu.Certificate, error) {
	if o.ephemeral {
		return busemu.NewCertificate(hosts...)
	}
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	return busemu.KeepCertificate(filepath.Join(o.dataDir, certificateName), hosts...)
}

// reachable is the address that clients on this machine use: a listener on all addresses
// is reached at the loopback one.
func reachable(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return l.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
