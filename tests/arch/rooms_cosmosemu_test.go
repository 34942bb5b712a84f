package arch

// cosmosemuRooms are the layers of package cosmosemu, from the top.
var cosmosemuRooms = []room{
	{"server", []string{"server", "listen", "provision", "topology", "failover", "inspect", "control_http", "client"}},
	{"dispatch", []string{"dispatch", "handlers", "fault"}},
	{"operations", []string{
		"op_account", "op_database", "op_container", "op_user", "op_permission", "op_offer", "op_pkranges", "op_conflict",
		"op_item", "op_patch", "op_partition", "op_batch", "op_bulk", "op_changefeed", "op_query",
	}},
	{"pages", []string{"metadata_page", "query_run"}},
	{"query", []string{
		"query_scope", "query_plan", "query_resume", "query_page", "query_order", "query_group", "query_reverse", "continuation", "indexing",
	}},
	{"writes", []string{"write", "batch_run", "batch_wire", "patch", "item", "precondition"}},
	{"request", []string{"reply", "request", "session_token", "partition_key"}},
	{"access", []string{"auth", "resource_token", "gateway_kind", "route", "route_rid", "header_check", "paging", "body"}},
	{"account", []string{"account", "regions", "throttle", "definition", "definition_keys", "computed"}},
	{"contract", []string{"doc", "options", "operation", "control", "errors", "headers", "charge"}},
}
