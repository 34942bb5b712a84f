package config_test

import (
	"fmt"

	"feedbox/infrastructure/process/config"
)

// A wrong configuration is reported as a whole.
func ExampleLoadAPI() {
	_, err := config.LoadAPI([]string{"FEEDBOX_EVENT_TTL=10 days", "FEEDBOX_API_LISTN=:80"})
	fmt.Println(err)
	// Output:
	// wrong configuration, 3 faults:
	//   FEEDBOX_COSMOS_ENDPOINT is not set: URL of the Cosmos DB account, for example https://contoso.documents.azure.com:443/
	//   FEEDBOX_EVENT_TTL "10 days" is not a duration: write a number with a unit, for example 500ms, 30s, 5m or 240h
	//   FEEDBOX_API_LISTN is not a known variable: did you mean FEEDBOX_API_LISTEN?
}
