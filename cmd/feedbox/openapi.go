package main

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
)

func (p *program) openAPICommand() *cobra.Command {
	var audit bool
	cmd := &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI 3.1 document of the contacts API",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := httpapi.New(mediator.New(), &httpapi.Options{Audit: audit})
			if err != nil {
				return err
			}
			r, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, "/openapi.json", nil)
			if err != nil {
				return fmt.Errorf("ask for the document: %w", err)
			}
			reply := recorder{header: http.Header{}, status: http.StatusOK}
			server.Handler().ServeHTTP(&reply, r)
			if reply.status != http.StatusOK {
				return fmt.Errorf("the API answers with %d for its own document", reply.status)
			}
			_, err = p.out.Write(append(bytes.TrimSpace(reply.body.Bytes()), '\n'))
			return err
		},
	}
	cmd.Flags().BoolVar(&audit, "audit", false, "with the audit trail (FEEDBOX_AUDIT)")
	return cmd
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
