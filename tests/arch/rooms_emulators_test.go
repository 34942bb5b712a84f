package arch

// busemuRooms are the parts of package busemu, from the top.
var busemuRooms = []room{
	{"server", []string{"server", "admin", "counters", "health", "client", "tb", "direct", "events", "detach_updated"}},
	{"operations", []string{
		"management", "mgmt_batch_delete_messages", "mgmt_peek_message", "mgmt_receive_by_sequence_number", "mgmt_renew_lock",
		"mgmt_add_rule", "mgmt_remove_rule", "mgmt_enumerate_rules", "mgmt_schedule_message", "mgmt_cancel_scheduled_message", "mgmt_renew_session_lock", "mgmt_session_state", "mgmt_get_message_sessions", "mgmt_update_disposition",
	}},
	{"links", []string{
		"conn", "conn_end", "conn_frame", "conn_loop", "conn_read", "conn_transport", "conn_write", "mailbox", "handshake",
		"sasl", "websocket", "idle", "grants", "session", "link", "link_drain", "link_incoming", "link_incoming_finish",
		"link_incoming_transfer", "link_outgoing", "link_outgoing_end", "link_outgoing_send", "link_session",
		"link_settle", "settlement_run", "reply", "perform", "jms", "cbs", "transaction", "transaction_partition",
	}},
	{"namespace", []string{"namespace", "topology", "jms_subscription", "jms_selector", "credits"}},
	{"values", []string{
		"fault", "entities", "message_change", "message_in", "message_out", "conditions", "outcome", "options",
		"config_json", "rights", "sas", "jwt", "certificate", "uuid", "doc",
	}},
}

// brokerRooms are the parts of busemu's package broker, from the top.
var brokerRooms = []room{
	{"api", []string{
		"broker", "open_receiver", "accept", "locked_message", "renew_session_lock",
		"send_to_path", "schedule", "peek", "delete", "receive_by_sequence", "state", "transaction", "counters", "dump",
		"load", "load_message",
	}},
	{"catalog", []string{
		"catalog", "entities", "queue", "topic", "subscription", "rule", "administer", "validate", "idle", "status",
		"lookup", "forwardable", "detach",
	}},
	{"intake", []string{"inlet", "send", "take_over", "activate", "duplicate", "partition", "limits", "match"}},
	{"holder", []string{
		"holder", "receiver", "line", "waiters", "credit", "deliver", "browse", "session_grant", "locks", "settle",
		"deadletter", "forward", "receive_and_delete", "cancellation", "holder_alarm",
	}},
	{"stock", []string{"stock", "session_table", "swap", "readback", "remains"}},
	{"engine", []string{"engine", "timers"}},
	{"storage", []string{"store", "op", "writer", "record", "keys", "release"}},
	{"messages", []string{"held_message", "session", "lists", "heaps", "ready", "sequences", "index", "index_table", "wake", "numbering", "shares"}},
	{"contract", []string{"doc", "errors", "options", "message", "outcome", "properties"}},
}

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
