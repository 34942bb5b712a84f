package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"feedbox/infrastructure/process/console"
)

// print writes the endpoints and the first commands to try. Each command is on its own
// lines, so that it can be copied.
func (e *endpoints) print(out io.Writer, style console.Style, opts *options) {
	row := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			_, _ = fmt.Fprintf(out, "%s  %s\n", style.Bold(fmt.Sprintf("%-20s", pairs[i])), pairs[i+1])
		}
	}
	_, _ = fmt.Fprintln(out)
	if e.API != "" {
		if opts.play.on {
			row("playground", e.Page+"/play")
		} else {
			row("playground", playCommand())
		}
		row("page", e.Page+"/")
		row("contacts API", e.API+"/api/contacts")
		row("its description", e.API+"/docs")
		row("operations", e.Ops+"/readyz")
	}
	row(e.store.rows(e)...)
	row(e.broker.rows(e)...)
	row("data", opts.storage())
	if opts.alone {
		_, _ = fmt.Fprintf(out, `
The connection strings, for the SDK of any language (gateway mode for Cosmos DB):

%s
%s
`, e.cosmosConnectionString(), e.ServiceBusConnectionString)
	}
	if opts.play.on {
		_, _ = fmt.Fprint(out, "\nOpen the playground and press Kill a relay. The verdict counts what is lost, doubled or out of order.\n")
	} else if e.API != "" {
		_, _ = fmt.Fprintf(out, "\nCreate a contact in another terminal; its event appears below and on the page:\n\n%s\n", e.curl())
	}
	if flag := opts.findFlags(); flag != nil {
		_, _ = fmt.Fprintf(out, "\nPoint feedbox and curl to this process:\n\neval \"$(%s)\"\n", strings.Join(append([]string{program(os.Args[0]), "env"}, flag...), " "))
	}
	_, _ = fmt.Fprintln(out)
}

// curl returns a shell command that creates a contact.
func (e *endpoints) curl() string {
	return `curl -i -X POST ` + e.API + `/api/contacts -H 'Content-Type: application/json' \
  -d '{"firstName":"John","lastName":"Doe","email":"johndoe@contoso.com","companyName":"Contoso"}'`
}

// cosmosConnectionString returns the form that the SDKs of all languages accept.
func (e *endpoints) cosmosConnectionString() string {
	return "AccountEndpoint=" + e.CosmosEndpoint + ";AccountKey=" + e.CosmosKey + ";"
}

// findFlags returns the flags with which other commands find this process; empty if they
// need none, nil if they cannot find it.
func (o *options) findFlags() []string {
	switch {
	case o.readyFile != "":
		return []string{"--ready-file", quote(o.readyFile)}
	case o.ephemeral:
		return nil
	case o.dataDir != defaultDataDir:
		return []string{"--data-dir", quote(o.dataDir)}
	}
	return []string{}
}

// program returns the command that starts this program. `go run` builds it in a temporary
// folder, or in a cache folder whose name ends in -d; then the path is no useful command.
func program(path string) string {
	folder := filepath.ToSlash(filepath.Dir(path))
	if strings.Contains(folder, "/go-build") || strings.HasSuffix(folder, "-d") {
		return "go run ./cmd/feedbox-dev"
	}
	return path
}

// playCommand returns the command that starts the playground.
func playCommand() string { return program(os.Args[0]) + " --play" }

// brokerOf returns the endpoint of a connection string, which is enough for the banner:
// `feedbox-dev env` and the ready file have the whole string.
func brokerOf(connectionString string) string {
	for part := range strings.SplitSeq(connectionString, ";") {
		if address, ok := strings.CutPrefix(part, "Endpoint="); ok {
			return strings.Trim(address, "/")
		}
	}
	return connectionString
}
