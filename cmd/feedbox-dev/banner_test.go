package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"feedbox/infrastructure/process/console"
)

// The commands of the banner can be copied: each is complete, on its own lines, and valid
// for a shell.
func TestBannerCommandsCanBeCopied(t *testing.T) {
	e := endpoints{
		API: "http://127.0.0.1:1", Ops: "http://127.0.0.1:2", Page: "http://127.0.0.1:6", CosmosEndpoint: "http://127.0.0.1:3/", ServiceBusAdmin: "http://127.0.0.1:4",
		ServiceBusConnectionString: "Endpoint=sb://127.0.0.1:5;SharedAccessKeyName=n;SharedAccessKey=k",
	}
	if err := e.choose("", "", nil); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                                   `feedbox-dev env)"`,
		"--data-dir it's":                    `feedbox-dev env --data-dir 'it'\''s')"`,
		"--ephemeral":                        "",
		"--ephemeral --ready-file here.json": `feedbox-dev env --ready-file 'here.json')"`,
	} {
		opts := &options{}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		opts.register(flags, true)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		e.print(&out, console.Style{}, opts)
		var commands strings.Builder
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "curl ") || strings.HasPrefix(line, "  -d") || strings.HasPrefix(line, "eval ") {
				commands.WriteString(line)
			}
		}
		if said, err := exec.Command("sh", "-nc", commands.String()).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", args, err, said, commands.String())
		}
		if want == "" && strings.Contains(out.String(), "eval") || !strings.Contains(strings.ReplaceAll(out.String(), "feedbox-dev.test", "feedbox-dev"), want) {
			t.Errorf("%q: %s\nwant %s", args, out.String(), want)
		}
		if strings.Contains(out.String(), "...") || !strings.Contains(out.String(), e.API+"/docs") {
			t.Errorf("a part is missing:\n%s", out.String())
		}
	}
	for _, one := range []struct {
		play       bool
		want, lack string
	}{{false, "feedbox-dev --play\n", "/play\n"}, {true, e.Page + "/play\n", "appears below"}} {
		var out bytes.Buffer
		e.print(&out, console.Style{}, &options{ephemeral: true, play: playing{on: one.play}})
		if text := strings.ReplaceAll(out.String(), "feedbox-dev.test", "feedbox-dev"); !strings.Contains(text, one.want) || strings.Contains(text, one.lack) {
			t.Errorf("the banner must contain %q, not %q:\n%s", one.want, one.lack, out.String())
		}
	}
	for path, want := range map[string]string{
		"bin/feedbox-dev":                             "bin/feedbox-dev",
		"/tmp/go-build12/b001/exe/feedbox-dev":        "go run ./cmd/feedbox-dev",
		"/home/x/.cache/go/3c/3cd0a1f2-d/feedbox-dev": "go run ./cmd/feedbox-dev",
	} {
		if got := program(path); got != want {
			t.Errorf("the command of %s is %q, want %q", path, got, want)
		}
	}
}
