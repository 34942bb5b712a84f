package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
)

// readAccount answers GET / with the account: its regions, consistency level and query limits.
//
//   - Supports: clients that reach the emulator under another name than Options.Host. They
//     continue with the endpoint of this answer, so in the first region it is the host that
//     was called. localhost becomes 127.0.0.1, as in the official emulator. After a failover
//     the answer lists the earlier regions until Server.AdvertiseRegions.
//   - Refuses: nothing.
//   - Source: REST reference, Get a Database Account; the fields that the Rust SDK's driver
//     records of live accounts (tests/in_memory_emulator_tests/dynamic_topology.rs).
func readAccount(x *request) (*reply, error) {
	host := x.req.Host
	if x.region > 0 {
		host = x.account.hosts[0]
	}
	if name, port, err := net.SplitHostPort(host); err == nil && name == "localhost" {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	read, write := x.account.regions.listed(x.account.options.MultipleWriteRegions)
	readable, err := json.Marshal(x.account.locations(host, read))
	if err != nil {
		return nil, fmt.Errorf("encode regions: %w", err)
	}
	writable, err := json.Marshal(x.account.locations(host, write))
	if err != nil {
		return nil, fmt.Errorf("encode regions: %w", err)
	}
	body := fmt.Appendf(nil, `{"_self":"","id":"feedbox-emulator","_rid":"feedbox-emulator.sql.cosmos.azure.com",`+
		`"media":"//media/","addresses":"//addresses/","_dbs":"//dbs/","writableLocations":%s,"readableLocations":%s,`+
		`"enableMultipleWriteLocations":%t,"continuousBackupEnabled":%t,"enableNRegionSynchronousCommit":false,`+
		`"enablePerPartitionFailoverBehavior":false,"disableCrossRegionalHedging":false,"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":%q},"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},"queryEngineConfiguration":%q}`,
		writable, readable, x.account.options.MultipleWriteRegions, x.account.options.VersionRetention > 0, x.account.options.Consistency, queryEngineConfiguration)
	return ok(http.StatusOK, body, metadataCharge), nil
}

// queryEngineConfiguration is for SDKs that plan queries themselves.
const queryEngineConfiguration = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":5,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,` +
	`"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,` +
	`"sqlAllowSubQuery":false,"sqlAllowScalarSubQuery":false,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":false}`
