// Package scenarios runs scripts of clients in other languages against a Service Bus
// endpoint: @azure/service-bus and rhea in node, azure-servicebus and Qpid Proton in
// Python, Celery on kombu, azure-messaging-servicebus and Qpid JMS in Java, of the versions in
// package.json, requirements.txt, java.xml, jms.xml and below, installed into a temporary directory.
//
// Config.json has the entities for the scripts in the format of the official emulator, so
// it can configure both busemu and the official emulator.
package scenarios

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"feedbox/infrastructure/emulator/busemu"
)

//go:embed package.json suite.mjs rhea.mjs requirements.txt suite.py proton_suite.py celery_suite.py java.xml Suite.java jms.xml JmsSuite.java Config.json
var files embed.FS

// ErrNotInstalled means that the language or its packages are not available, so the scripts
// did not run.
var ErrNotInstalled = errors.New("not installed")

// Language is a language with scripts.
type Language struct {
	Name    string
	SDK     string
	tools   []string
	install [][]string
	run     []string
	host    string // at which the SDK must find its emulator, on the ports of the service; empty: any
	tls     bool   // the SDK dials the port of AMQP over TLS
}

// Languages lists all languages.
var Languages = []Language{
	{
		Name: "javascript", SDK: "@azure/service-bus 7.9.5", tools: []string{"node", "npm"},
		install: [][]string{{"npm", "install", "--no-audit", "--no-fund", "--loglevel=error"}},
		run:     []string{"node", "suite.mjs"},
	},
	{
		Name: "python", SDK: "azure-servicebus 7.15.0", tools: []string{"python3"},
		install: [][]string{{"python3", "-m", "venv", "venv"}, {"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"}},
		run:     []string{"venv/bin/python", "suite.py"},
	},
	{
		Name: "proton", SDK: "Qpid Proton 0.40.0", tools: []string{"python3", "cc"}, // to build a C library
		install: [][]string{{"python3", "-m", "venv", "venv"}, {"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "python-qpid-proton==0.40.0"}},
		run:     []string{"venv/bin/python", "proton_suite.py"},
	},
	{
		Name: "celery", SDK: "Celery 5.7.0 on kombu 5.7.0", tools: []string{"python3", "sh"}, host: celeryHost, tls: true,
		install: [][]string{
			{"python3", "-m", "venv", "venv"},
			{"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "celery==5.7.0", "kombu==5.7.0", "azure-servicebus==7.15.0"},
			{"sh", "-c", "cat " + rootsFile + ` >> "$(venv/bin/python -m certifi)"`},
		},
		run: []string{"venv/bin/python", "celery_suite.py"},
	},
	{
		Name: "java", SDK: "azure-messaging-servicebus 7.17.13", tools: []string{"java", "mvn", "keytool"}, host: javaHost,
		install: [][]string{
			{"mvn", "-q", "-B", "-f", "java.xml", "dependency:copy-dependencies", "-DoutputDirectory=lib"},
			{"keytool", "-importcert", "-noprompt", "-file", rootsFile, "-keystore", "trust.p12", "-storepass", "changeit"},
		},
		run: []string{"java", "@" + javaOptions, "-cp", "lib/*", "Suite.java"},
	},
	{
		Name: "jms", SDK: "Qpid JMS 2.7.0", tools: []string{"java", "mvn"},
		install: [][]string{{"mvn", "-q", "-B", "-f", "jms.xml", "dependency:copy-dependencies", "-DoutputDirectory=lib"}},
		run:     []string{"java", "-cp", "lib/*", "JmsSuite.java"},
	},
	{
		Name: "rhea", SDK: "rhea 3.0.5", tools: []string{"node", "npm"},
		install: [][]string{{"npm", "install", "--no-audit", "--no-fund", "--loglevel=error"}},
		run:     []string{"node", "rhea.mjs"},
	},
}

const (
	// javaHost and celeryHost are otherwise unused loopback addresses, because the SDKs always dial the
	// ports of the service, 5672 or 5671, and 443.
	javaHost    = "127.0.56.72"
	celeryHost  = "127.0.56.74"
	javaOptions = "options" // a file
	rootsFile   = "roots.pem"
)

// Run runs the scripts whose name contains only ("" means all) and reports whether all
// passed. They use the endpoint of the connection string, which must have the empty
// entities of Config.json; "" means a new emulator.
func (l Language) Run(ctx context.Context, w io.Writer, connection, only string) (bool, error) {
	for _, tool := range l.tools {
		if _, err := exec.LookPath(tool); err != nil {
			return false, fmt.Errorf("%s is %w", tool, ErrNotInstalled)
		}
	}
	dir, err := os.MkdirTemp("", "service-bus-"+l.Name+"-*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, files); err != nil {
		return false, err
	}
	certificate, err := busemu.NewCertificate(l.host, l.host+".net")
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(dir, rootsFile), certificate.PEM, 0o600); err != nil {
		return false, err
	}
	for _, command := range l.install {
		if out, err := l.command(ctx, dir, command).CombinedOutput(); err != nil {
			return false, fmt.Errorf("%s of %s: %w: %w: %s", command[0], l.SDK, ErrNotInstalled, err, out)
		}
	}
	java := "" // Java knows the certificate of the real service
	if connection == "" {
		srv, err := l.serve(dir, certificate)
		if err != nil {
			return false, err
		}
		defer func() { _ = srv.Close() }()
		connection, java = srv.ConnectionString(), "-Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"
	}
	if err := os.WriteFile(filepath.Join(dir, javaOptions), []byte(java), 0o600); err != nil {
		return false, err
	}
	command := l.run
	if only != "" {
		command = append(command[:len(command):len(command)], only)
	}
	run := l.command(ctx, dir, command)
	run.Stdout, run.Stderr = w, w
	run.Env = append(os.Environ(), "SERVICEBUS_CONNECTION_STRING="+connection)
	err = run.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return false, ctx.Err()
	}
	return err == nil, err
}

// serve starts an emulator.
func (l Language) serve(dir string, c *busemu.Certificate) (*busemu.Server, error) {
	topology, err := busemu.LoadConfig(filepath.Join(dir, "Config.json"))
	if err != nil {
		return nil, err
	}
	o := &busemu.Options{Topology: topology}
	if l.host != "" {
		o.Addr, o.AdminAddr, o.AdminTLS = l.host+":5672", l.host+":443", c.Config()
	}
	if l.tls {
		o.Addr, o.TLS, o.AllowedHosts = l.host+":5671", c.Config(), []string{l.host + ".net"}
	}
	srv, err := busemu.Start(o)
	if err != nil && l.host != "" {
		return nil, fmt.Errorf("a broker on the ports of the service at %s is %w: %w", l.host, ErrNotInstalled, err)
	}
	return srv, err
}

func (Language) command(ctx context.Context, dir string, command []string) *exec.Cmd {
	program := command[0]
	if local := filepath.Join(dir, program); filepath.Dir(program) != "." {
		program = local
	}
	cmd := exec.CommandContext(ctx, program, command[1:]...)
	cmd.Dir = dir
	return cmd
}
