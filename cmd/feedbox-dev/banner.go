package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"feedbox/infrastructure/process/console"
)

// print shows where everything is and what to try first. Each command stands on lines
// of its own, ready to be copied.
func (e *endpoints) print(out io.Writer, style console.Style, opts *options) {
	row := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			_, _ = fmt.Fprintf(out, "%s  %s\n", style.Bold(fmt.Sprintf("%-20s", pairs[i])), pairs[i+1])
		}
	}
	_, _ = fmt.Fprintln(out)
	if e.API != "" {
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
	if e.API != "" {
		_, _ = fmt.Fprintf(out, "\nIn another terminal, a contact; its event appears below, and on the page:\n\n%s\n", e.curl())
	}
	if flag := opts.found(); flag != nil {
		_, _ = fmt.Fprintf(out, "\nWhat points feedbox and curl here:\n\neval \"$(%s)\"\n", strings.Join(append([]string{program(os.Args[0]), "env"}, flag...), " "))
	}
	_, _ = fmt.Fprintln(out)
}

// curl is a shell line that creates a contact.
func (e *endpoints) curl() string {
	return `curl -i -X POST ` + e.API + `/api/contacts -H 'Content-Type: application/json' \
  -d '{"firstName":"John","lastName":"Doe","email":"johndoe@contoso.com","companyName":"Contoso"}'`
}

// cosmosConnectionString is in the form that the SDKs of all languages read.
func (e *endpoints) cosmosConnectionString() string {
	return "AccountEndpoint=" + e.CosmosEndpoint + ";AccountKey=" + e.CosmosKey + ";"
}

// found is the flag by which other commands find this process, none if they find it
// without. It is nil if they cannot find it.
func (o *options) found() []string {
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

// program is how this program is called: what `go run` builds has a name that nobody
// types, in a cache whose folders end in -d or in a temporary one.
func program(path string) string {
	folder := filepath.ToSlash(filepath.Dir(path))
	if strings.Contains(folder, "/go-build") || strings.HasSuffix(folder, "-d") {
		return "go run ./cmd/feedbox-dev"
	}
	return path
}

// brokerOf is the host of a connection string. Its key is no secret, but nothing to
// read either: `feedbox-dev env` and the ready file have all of it.
func brokerOf(connectionString string) string {
	for part := range strings.SplitSeq(connectionString, ";") {
		if address, ok := strings.CutPrefix(part, "Endpoint="); ok {
			return strings.Trim(address, "/")
		}
	}
	return connectionString
}
