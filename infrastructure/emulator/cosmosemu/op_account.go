package cosmosemu

import (
	"fmt"
	"net"
	"net/http"
)

// region is the one region of the emulated account.
const region = "South Central US"

// readAccount answers GET /: the account, its regions and consistency level.
//
// The client goes on with the endpoint it is told here, so that is the host it
// called; the name localhost becomes 127.0.0.1, as with the official emulator.
func readAccount(x *request) (*reply, error) {
	host := x.req.Host
	if name, port, err := net.SplitHostPort(host); err == nil && name == "localhost" {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	location := fmt.Sprintf(`[{"name":%q,"databaseAccountEndpoint":%q}]`, region, x.srv.scheme()+host+"/")
	body := fmt.Appendf(nil, `{"_self":"","id":"feedbox-emulator","_rid":"feedbox-emulator.sql.cosmosdb.azure.com",`+
		`"media":"//media/","addresses":"//addresses/","_dbs":"//dbs/","writableLocations":%s,"readableLocations":%s,`+
		`"enableMultipleWriteLocations":false,"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":%q},"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},"queryEngineConfiguration":%q}`,
		location, location, x.srv.options.Consistency, queryEngineConfiguration)
	return ok(http.StatusOK, body, metadataCharge), nil
}

// queryEngineConfiguration is read by SDKs that plan queries themselves.
const queryEngineConfiguration = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":5,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,` +
	`"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,` +
	`"sqlAllowSubQuery":false,"sqlAllowScalarSubQuery":false,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":false}`
