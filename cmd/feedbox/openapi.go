package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/contacts"
	"feedbox/infrastructure/process/config"
)

func (p *program) openAPICommand() *cobra.Command {
	options := &httpapi.Options{PublicURL: p.variable("FEEDBOX_API_PUBLIC_URL")}
	mode := cmp.Or(p.variable("FEEDBOX_AUTH"), "none")
	cmd := &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI 3.1 document of the contacts API",
		Long: `Print the OpenAPI 3.1 document of the contacts API, as feedbox api serves it at
/openapi.json with the same environment. Flags override the environment.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ok bool
			if options.Auth, ok = documented[mode]; !ok {
				return usage(cmd, fmt.Errorf("--auth %q: give none, apikey or entra", mode))
			}
			return p.printOpenAPI(cmd.Context(), options)
		},
	}
	isSet := func(name string) bool { set, _ := strconv.ParseBool(p.variable(name)); return set }
	cmd.Flags().StringVar(&mode, "auth", mode, "authentication: none, apikey or entra (FEEDBOX_AUTH)")
	cmd.Flags().BoolVar(&options.Audit, "audit", isSet("FEEDBOX_AUDIT"), "include the audit trail (FEEDBOX_AUDIT)")
	cmd.Flags().BoolVar(&options.RequirePrecondition, "require-precondition", isSet("FEEDBOX_API_REQUIRE_PRECONDITION"), "require If-Match (FEEDBOX_API_REQUIRE_PRECONDITION)")
	return cmd
}

// documented has the modes of authentication, without keys and issuer, which the document
// does not contain.
var documented = map[string]auth.Authenticator{"none": auth.Open{}, "apikey": &auth.APIKeys{}, "entra": &auth.Entra{}}

// variable returns a variable of the environment.
func (p *program) variable(name string) string {
	value, _ := config.Lookup(p.environ, name)
	return value
}

func (p *program) printOpenAPI(ctx context.Context, options *httpapi.Options) error {
	server, err := httpapi.New([]httpapi.Resource{contacts.Resource(mediator.New())}, options)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/openapi.json", nil)
	if err != nil {
		return fmt.Errorf("request the OpenAPI document: %w", err)
	}
	reply := recorder{header: http.Header{}, status: http.StatusOK}
	server.Handler().ServeHTTP(&reply, r)
	if reply.status != http.StatusOK {
		return fmt.Errorf("request the OpenAPI document: status %d", reply.status)
	}
	_, err = p.out.Write(append(bytes.TrimSpace(reply.body.Bytes()), '\n'))
	return err
}

// recorder is a http.ResponseWriter that keeps the reply in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
