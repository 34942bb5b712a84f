package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/wiring"
)

func (p *program) migrateCommand() *cobra.Command {
	printRoles := false
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or migrate the schema of PostgreSQL",
		Long: `Create the schema of FEEDBOX_POSTGRES_URL, or migrate it to the version of this program.
Run it with a role of its own, which owns the schema, before a new version of API and
relay starts. They need no right to change the schema: --print-roles prints the SQL
script for their roles. Run the script after each migration.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadRelay(p.environ)
			// This comes first: the faults of another store are of no use here.
			if cfg.Store.Kind != config.StorePostgres {
				return usage(cmd, errors.New("FEEDBOX_STORE is "+cfg.Store.Kind+": only PostgreSQL has a schema; set FEEDBOX_STORE=postgres and FEEDBOX_POSTGRES_URL"))
			}
			if err = config.WithoutBroker(err); err != nil {
				return err
			}
			if printRoles {
				_, err := io.WriteString(p.out, wiring.PostgresRoles(cfg.Postgres))
				return err
			}
			return p.migrate(cmd.Context(), cfg)
		},
	}
	cmd.Flags().BoolVar(&printRoles, "print-roles", false, "print the SQL script for the roles and change nothing")
	return cmd
}

func (p *program) migrate(ctx context.Context, cfg *config.Relay) error {
	version, err := wiring.MigratePostgres(ctx, cfg.Postgres)
	if err != nil {
		return console.Advise(err, "check FEEDBOX_POSTGRES_URL; a new schema needs GRANT CREATE ON DATABASE for its role, a migration the role that owns the schema")
	}
	p.say(console.FormatTable, "schema %s has version %d", cfg.Postgres.Schema, version)
	return nil
}
