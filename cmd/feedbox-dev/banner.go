package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// print shows where everything is and what to try first.
func (e *endpoints) print(out io.Writer, opts *options) {
	storage := "in memory, gone at exit"
	if !opts.ephemeral {
		storage = opts.dataDir
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, value string) { _, _ = fmt.Fprintf(w, "%s\t%s\n", name, value) }
	if e.API != "" {
		row("contacts API", e.API+"/api/contacts")
		row("operations", e.Ops+"/readyz")
	}
	row("Cosmos DB emulator", e.CosmosEndpoint)
	row("Service Bus emulator", mask(e.ServiceBusConnectionString))
	row("Service Bus admin", e.ServiceBusAdmin)
	row("data", storage)
	_ = w.Flush()
	if e.API == "" {
		return
	}
	_, _ = fmt.Fprintf(out, `
Try it in another terminal; the events appear below.

curl -i -X POST %s/api/contacts -H 'Content-Type: application/json' \
  -d '{"firstName":"John","lastName":"Doe","email":"johndoe@contoso.com","companyName":"Contoso"}'

`, e.API)
}
