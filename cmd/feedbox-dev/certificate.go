package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"feedbox/infrastructure/emulator/busemu"
)

// certificateName is the file in the data folder with certificate and key.
const certificateName = "tls.pem"

// certificate returns the certificate of both emulators, nil if none serves TLS. It is kept
// in the data folder, so that clients still trust it after a restart. The files named by
// flags contain the certificate without its key.
func (o *options) certificate(l *listeners) (*busemu.Certificate, error) {
	if o.cosmosCert == "" && o.serviceBusCert == "" {
		return nil, nil
	}
	hosts := []string{reachable(l.serviceBus)} // with the port, because go-amqp verifies host:port
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
			return nil, usageError{fmt.Errorf("--%s: %w; name a writable file", flag, err)}
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

// reachable returns the address for clients on this machine: the loopback address for a
// listener on all addresses.
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
