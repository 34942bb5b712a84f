package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"feedbox/infrastructure/emulator/busemu"
)

// namespaces has the emulators for the tests: one namespace per tier, with the keys and
// queues that the SDK's test-resources template creates in Azure.
type namespaces struct {
	standard, premium *busemu.Server
	roots             string // certificate file for the clients
}

func startNamespaces(dir string) (*namespaces, error) {
	one, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	two, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	tlsConfig, roots, err := selfSigned(dir, one.Addr().String(), two.Addr().String())
	if err != nil {
		return nil, err
	}
	keys := []busemu.SASKey{
		{Name: busemu.DefaultKeyName, Key: busemu.DefaultKey},
		{Name: "NoManage", Key: "no-manage", Rights: busemu.RightSend | busemu.RightListen},
		{Name: "SendOnly", Key: "send-only", Rights: busemu.RightSend},
		{Name: "ListenOnly", Key: "listen-only", Rights: busemu.RightListen},
	}
	topology := func() *busemu.Topology {
		return &busemu.Topology{Queues: []busemu.Queue{
			{Name: "testQueue", LockDuration: 5 * time.Minute},
			{Name: "testQueueWithSessions", LockDuration: 5 * time.Minute, RequiresSession: true},
		}}
	}
	standard, err := busemu.Start(&busemu.Options{Listener: one, Keys: keys, Topology: topology(), TLS: tlsConfig})
	if err != nil {
		return nil, err
	}
	premium, err := busemu.Start(&busemu.Options{Listener: two, Keys: keys, Topology: topology(), TLS: tlsConfig, Premium: true})
	if err != nil {
		_ = standard.Close()
		return nil, err
	}
	return &namespaces{standard, premium, roots}, nil
}

func (n *namespaces) close() {
	_ = n.standard.Close()
	_ = n.premium.Close()
}

// env returns the environment of the SDK's tests. They connect with TLS, because some of
// them rebuild connection strings and expect it.
func (n *namespaces) env() []string {
	return append(os.Environ(),
		"SSL_CERT_FILE="+n.roots,
		"AZURE_RECORD_MODE=live",
		"SERVICEBUS_ENDPOINT="+n.standard.Addr(),
		"SERVICEBUS_ENDPOINT_PREMIUM="+n.premium.Addr(),
		"SERVICEBUS_CONNECTION_STRING="+n.standard.ConnectionString(),
		"SERVICEBUS_CONNECTION_STRING_PREMIUM="+n.premium.ConnectionString(),
		"SERVICEBUS_CONNECTION_STRING_NO_MANAGE="+n.standard.ConnectionStringFor("NoManage"),
		"SERVICEBUS_CONNECTION_STRING_SEND_ONLY="+n.standard.ConnectionStringFor("SendOnly"),
		"SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY="+n.standard.ConnectionStringFor("ListenOnly"),
		"ADMIN_HTTP="+n.standard.Addr()+"="+n.standard.AdminAddr()+" "+n.premium.Addr()+"="+n.premium.AdminAddr(),
	)
}

// selfSigned creates a certificate for the loopback address and writes it to a file
// for the clients' SSL_CERT_FILE. hosts include ports, because the SDK verifies both.
func selfSigned(dir string, hosts ...string) (*tls.Config, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "busemu"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return nil, "", err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, path, nil
}
