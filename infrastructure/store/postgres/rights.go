package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rights has, by process, the privileges on tables and sequences that its statements need. Both
// processes verify the schema and the origin of the events when they start. Only the relay and its
// operators delete, edit and park.
var rights = map[string]map[string]string{
	"api": {
		"schema_version": "SELECT", "aggregates": "SELECT, INSERT, UPDATE", "events": "SELECT, INSERT",
		"requests": "SELECT, INSERT, DELETE", "audits": "SELECT, INSERT",
	},
	"relay": {
		"schema_version": "SELECT", "aggregates": "SELECT, UPDATE, DELETE", "events": "SELECT, UPDATE, DELETE",
		"requests": "SELECT, DELETE", "audits": "SELECT, DELETE",
		"leases": "SELECT, INSERT, UPDATE, DELETE", "gates": "SELECT, INSERT, UPDATE, DELETE", "parked": "SELECT, INSERT, UPDATE, DELETE",
		"tags": "USAGE", "consumer_gates": "SELECT, INSERT, UPDATE, DELETE", "consumer_parked": "SELECT, INSERT, UPDATE, DELETE",
	},
	"consumer": { // one that parks events
		"consumer_gates": "SELECT, INSERT, UPDATE, DELETE", "consumer_parked": "SELECT, INSERT, UPDATE, DELETE", "tags": "USAGE",
	},
}

// Roles returns the SQL script that creates the roles feedbox_api and feedbox_relay with exactly the
// rights that each process needs on schema. It can be repeated, and takes away what a role has
// beyond that.
func Roles(schema string) string {
	var b strings.Builder
	in := pgx.Identifier{schema}.Sanitize()
	b.WriteString(`-- Roles of Feedbox. Run this after each feedbox migrate, as a superuser or as the role that owns the
-- schema and may create roles. Then set the passwords, which this script does not contain: in psql,
-- \password feedbox_api and \password feedbox_relay do not show them to the server's log.
BEGIN;
`)
	for _, process := range slices.Sorted(maps.Keys(rights)) {
		role := "feedbox_" + process
		fmt.Fprintf(&b, `
DO $$ BEGIN CREATE ROLE %[1]s LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
REVOKE ALL ON SCHEMA %[2]s FROM %[1]s;
REVOKE ALL ON ALL TABLES IN SCHEMA %[2]s FROM %[1]s;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA %[2]s FROM %[1]s;
GRANT USAGE ON SCHEMA %[2]s TO %[1]s;
`, role, in)
		for _, object := range slices.Sorted(maps.Keys(rights[process])) {
			b.WriteString(grant(in, object, rights[process][object], role) + ";\n")
		}
	}
	b.WriteString("\nCOMMIT;\n\n-- A role that emits events in its own transactions needs nothing but:\n-- " + emitGrants(in, "<role>") + ";\n")
	return b.String()
}

// grant returns the statement that gives a role privileges on an object of the schema.
func grant(schema, object, privileges, role string) string {
	kind := ""
	if privileges == "USAGE" {
		kind = "SEQUENCE "
	}
	return fmt.Sprintf("GRANT %s ON %s%s.%s TO %s", privileges, kind, schema, object, role)
}

// Rights compares the role of the connection with what a process, api or relay, needs. Missing are
// the statements that grant what it lacks. Surplus lists what it has beyond that.
func (db *DB) Rights(ctx context.Context, process string) (missing, surplus []string, err error) {
	type right struct{ Role, Object, Privilege string }
	held, err := all[right](ctx, db, "examine the rights of the role", `SELECT quote_ident(current_user) AS role, c.relname::text AS object, p AS privilege
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'USAGE']) AS p
		WHERE n.nspname = $1 AND CASE WHEN c.relkind = 'S' THEN p = 'USAGE' AND has_sequence_privilege(c.oid, p) WHEN c.relkind = 'r' THEN p <> 'USAGE' AND has_table_privilege(c.oid, p) END
		ORDER BY object, privilege`, db.options.Schema)
	if err != nil {
		return nil, nil, err
	}
	role := "<user>"
	lacks := map[string][]string{}
	for object, privileges := range rights[process] {
		lacks[object] = strings.Split(privileges, ", ")
	}
	for _, one := range held {
		role = one.Role
		if at := slices.Index(lacks[one.Object], one.Privilege); at >= 0 {
			lacks[one.Object] = slices.Delete(lacks[one.Object], at, at+1)
		} else {
			surplus = append(surplus, one.Privilege+" on "+one.Object)
		}
	}
	for _, object := range slices.Sorted(maps.Keys(lacks)) {
		if len(lacks[object]) > 0 {
			missing = append(missing, grant(db.schema(), object, strings.Join(lacks[object], ", "), role))
		}
	}
	return missing, surplus, nil
}
