package main

import (
	"net"
	"os"
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
