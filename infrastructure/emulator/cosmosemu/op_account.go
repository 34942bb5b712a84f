package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
)

// readAccount answers GET /: the account, its regions and consistency level.
//
// The client goes on with the endpoint it is told here, so that of the first region is
// the host it called, if it called there; the name localhost becomes 127.0.0.1, as with the official emulator.
func readAccount(x *request) (*reply, error) {
	host := x.req.Host
	if x.region > 0 {
		host = x.srv.host
	}
	if name, port, err := net.SplitHostPort(host); err == nil && name == "localhost" {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	readable, err := json.Marshal(x.srv.locations(host))
	if err != nil {
		return nil, fmt.Errorf("encode regions: %w", err)
	}
	writable, err := json.Marshal(x.srv.locations(host)[:x.srv.writeRegions()])
	if err != nil {
		return nil, fmt.Errorf("encode regions: %w", err)
	}
	body := fmt.Appendf(nil, `{"_self":"","id":"feedbox-emulator","_rid":"feedbox-emulator.sql.cosmosdb.azure.com",`+
		`"media":"//media/","addresses":"//addresses/","_dbs":"//dbs/","writableLocations":%s,"readableLocations":%s,`+
		`"enableMultipleWriteLocations":%t,"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":%q},"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},"queryEngineConfiguration":%q}`,
		writable, readable, x.srv.options.MultipleWriteRegions, x.srv.options.Consistency, queryEngineConfiguration)
	return ok(http.StatusOK, body, metadataCharge), nil
}

// queryEngineConfiguration is read by SDKs that plan queries themselves.
const queryEngineConfiguration = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":5,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,` +
	`"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,` +
	`"sqlAllowSubQuery":false,"sqlAllowScalarSubQuery":false,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":false}`
