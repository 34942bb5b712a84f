package main

import (
	"context"
	"embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/conformance/servicebus/scenarios"
)

// The tests of azure-servicebus (Python) are in its source distribution. ./pythonsuite has
// replacements for the repository's tools that they import, and for the entities that Azure
// Resource Manager would create. The tests always dial the ports of the service, so they
// use an otherwise unused loopback address.
const (
	pythonHost   = "127.0.56.73"
	pythonPassed = 200 // at least
)

//go:embed all:pythonsuite
var pythonFiles embed.FS

// slowPython is the reason for tests that wait for minutes, mostly for locks and schedules.
// Their results are unknown.
const slowPython = "takes longer than 35 s"

// pythonExceptions lists tests that are not run, with the reason.
var pythonExceptions = map[string]string{
	"test_queues.py::TestServiceBusQueue::test_github_issue_6178[pyamqp]":                                                        slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_by_queue_client_conn_str_receive_handler_receiveanddelete_prefetch[pyamqp]": slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_by_queue_client_conn_str_receive_handler_release_messages[pyamqp]":          slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_by_queue_client_conn_str_receive_handler_with_auto_autolockrenew[pyamqp]":   slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_by_queue_client_conn_str_receive_handler_with_autolockrenew[pyamqp]":        slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_by_servicebus_client_renew_message_locks[pyamqp]":                           slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_cancel_scheduled_messages[pyamqp]":                                          slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_message_expiry[pyamqp]":                                                     slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_message_lock_renew[pyamqp]":                                                 slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_message_time_to_live[pyamqp]":                                               slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_operation_negative[pyamqp]":                                                 "replaces a method of the SDK by one with fewer parameters than it is called with",
	"test_queues.py::TestServiceBusQueue::test_queue_receive_handler_with_autolockrenew_many_msgs[pyamqp]":                       slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_receive_keep_conn_alive[pyamqp]":                                            slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_receiver_sender_resume_after_link_timeout[pyamqp]":                          slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_schedule_message[pyamqp]":                                                   slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_schedule_multiple_messages[pyamqp]":                                         slowPython,
	"test_queues.py::TestServiceBusQueue::test_queue_send_twice[pyamqp]":                                                         slowPython,
	"test_sb_client.py::TestServiceBusClient::test_sb_client_incorrect_queue_conn_str[pyamqp]":                                   "needs keys of single entities, which only Azure Resource Manager makes",
	"test_sessions.py::TestServiceBusSession::test_next_available_session_timeout_value[pyamqp]":                                 "waits 65 s for a session; the SDK asks the broker for less",
	"test_sessions.py::TestServiceBusSession::test_session_by_conn_str_receive_handler_with_auto_autolockrenew[pyamqp]":          slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_by_queue_client_conn_str_receive_handler_receiveanddelete[pyamqp]":    slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_by_servicebus_client_renew_client_locks[pyamqp]":                      slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_by_session_client_conn_str_receive_handler_peeklock[pyamqp]":          slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_cancel_scheduled_messages[pyamqp]":                                    slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_connection_failure_is_idempotent[pyamqp]":                             slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_schedule_message[pyamqp]":                                             slowPython,
	"test_sessions.py::TestServiceBusSession::test_session_schedule_multiple_messages[pyamqp]":                                   slowPython,
	"test_topic.py::TestServiceBusTopics::test_topic_by_servicebus_client_send_large_messages_w_sleep[pyamqp]":                   slowPython,
}

// pythonWorkers is the number of files that run in parallel; most tests wait.
const pythonWorkers = 16

// runPython runs the suite. ErrNotInstalled means that it could not run.
func runPython(ctx context.Context, w io.Writer, o *options) (code int, err error) {
	dir, err := os.MkdirTemp("", "azure-servicebus-*")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := installPython(ctx, dir); err != nil {
		return 1, err
	}
	certificate, err := busemu.NewCertificate(pythonHost)
	if err != nil {
		return 1, err
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, certificate.PEM, 0o600); err != nil {
		return 1, err
	}
	srv, err := busemu.Start(&busemu.Options{
		Addr: pythonHost + ":5671", AdminAddr: pythonHost + ":443", TLS: certificate.Config(), AdminTLS: certificate.Config(),
		Keys: []busemu.SASKey{
			{Name: busemu.DefaultKeyName, Key: busemu.DefaultKey},
			{Name: "ListenOnly", Key: busemu.DefaultKey, Rights: busemu.RightListen},
			{Name: "SendOnly", Key: busemu.DefaultKey, Rights: busemu.RightSend},
		},
	})
	if err != nil {
		return 1, fmt.Errorf("a broker on the ports of the service at %s is %w: %w", pythonHost, scenarios.ErrNotInstalled, err)
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	env := append(os.Environ(),
		"SERVICEBUS_CONNECTION_STRING=Endpoint=sb://"+pythonHost+"/;SharedAccessKeyName="+busemu.DefaultKeyName+";SharedAccessKey="+busemu.DefaultKey,
		"SERVICEBUS_CERTIFICATE="+roots, "SSL_CERT_FILE="+roots,
		"PYTHONPATH="+strings.Join([]string{filepath.Join(dir, "pythonsuite"), filepath.Join(dir, "tests"), filepath.Join(dir, "tests", "mgmt_tests"), filepath.Join(dir, "tests", "async_tests")}, ":"),
	)
	passed, failed := 0, 0
	// The tests of the admin clients run in turn, because each expects a namespace of its own.
	for i, part := range [][]string{
		{"mgmt_tests"},
		{"-n", strconv.Itoa(pythonWorkers), "test_queues.py", "test_sessions.py", "test_subscriptions.py", "test_topic.py", "test_sb_client.py", "test_list_sessions.py"},
	} {
		p, f, err := pytest(ctx, w, dir, env, fmt.Sprintf("%d.xml", i), part, o)
		if err != nil {
			return 1, err
		}
		passed, failed = passed+p, failed+f
	}
	for name, reason := range pythonExceptions {
		fmt.Fprintf(w, "not run  %s: %s\n", name, reason)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d not run\n", passed, failed, len(pythonExceptions))
	if failed > 0 || o.run == "" && passed < pythonPassed {
		code = 1
	}
	return code, nil
}

func installPython(ctx context.Context, dir string) error {
	if err := os.CopyFS(dir, pythonFiles); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", `set -e
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check -r pythonsuite/requirements.txt
venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: azure-servicebus==7.15.0
tar xzf azure_servicebus-*.tar.gz
mv azure_servicebus-*/tests tests
rm -f tests/servicebus_preparer.py`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("azure-servicebus is %w: %w: %s", scenarios.ErrNotInstalled, err, out)
	}
	return nil
}

// pytest runs some of the tests and prints those that failed.
func pytest(ctx context.Context, w io.Writer, dir string, env []string, report string, part []string, o *options) (passed, failed int, err error) {
	args := []string{"-m", "pytest", "-p", "emulator_plugin", "-o", "asyncio_mode=auto", "-q", "--no-header", "--tb=short", "--timeout=100", "--junitxml=" + report}
	if o.run != "" {
		args = append(args, "-k", o.run)
	}
	for name := range pythonExceptions {
		args = append(args, "--deselect", name)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "venv", "bin", "python"), append(args, part...)...)
	cmd.Dir, cmd.Env = filepath.Join(dir, "tests"), env
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() > 1 && exit.ExitCode() != 5) {
		return 0, 0, fmt.Errorf("pytest %v: %w: %s", part, err, out)
	}
	text, err := fs.ReadFile(os.DirFS(cmd.Dir), report)
	if err != nil {
		return 0, 0, err
	}
	var suites struct {
		Cases []struct {
			Class   string    `xml:"classname,attr"`
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil {
		return 0, 0, err
	}
	for _, c := range suites.Cases {
		switch {
		case c.Failure != nil || c.Error != nil:
			failed++
			fmt.Fprintf(w, "FAIL  %s.%s\n", c.Class, c.Name)
		case c.Skipped == nil:
			passed++
		}
	}
	if failed > 0 && o.verbose {
		fmt.Fprintf(w, "%s\n", out)
	}
	return passed, failed, nil
}
